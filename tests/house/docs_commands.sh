#!/usr/bin/env bash
# Runs every command that the README and the docs show: each ```sh block of a page in turn, in one scratch folder per page
# that looks like the checkout. A block under the comment <!-- not run: REASON --> is left out and counted aloud; one under
# <!-- in: FOLDER --> runs in a folder that has nothing but what earlier blocks of the page made there.
#   docs_commands.sh [PAGE...]
set -euo pipefail
root=$(realpath "${TYCHO_SOURCE_DIR:-$(dirname "$0")/../..}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export TYCHO_BUILD=${TYCHO_BUILD:-$root/build/cpu} TYCHO_DEMO_SHORT=1
export PATH=$TYCHO_BUILD/bin:$PATH

# Writes the blocks of a page as $scratch/block-NN.sh; the first line of each says where it stands, the second where it runs.
extract() {
  awk -v prefix="$scratch/block-" -v page="$1" '
    /^<!-- not run: .*-->$/ { reason = $0; next }
    /^<!-- in: .* -->$/ { folder = $3; next }
    /^```sh *$/ {
      inside = 1
      if (reason != "") { print page ":" NR ": " reason; skip = 1; next }
      file = sprintf("%s%03d.sh", prefix, ++count)
      print "# " page ":" NR > file
      print "# " (folder == "" ? "tree" : folder) > file
      folder = ""
      next
    }
    /^```/ { if (inside) { inside = 0; skip = 0; if (file != "") close(file) } reason = ""; next }
    inside && !skip { print > file; next }
    !inside && NF { reason = folder = "" }
  ' "$1"
}

run_page() {
  local page=$1 block name folder
  rm -rf "$scratch"/*
  extract "$page"
  local copy=$scratch/tree
  mkdir "$copy"
  for name in "$root"/*; do
    case $(basename "$name") in runs | build) ;; *) ln -s "$name" "$copy/" ;; esac
  done
  mkdir "$copy/build"; ln -s "$TYCHO_BUILD" "$copy/build/cpu"
  for block in "$scratch"/block-*.sh; do
    [[ -e $block ]] || continue
    echo "running $(head -1 "$block" | cut -c3-)"
    folder=$scratch/$(sed -n '2s/^# //p' "$block")
    mkdir -p "$folder"
    if ! (cd "$folder" && bash -euo pipefail "$block" >"$scratch/output" 2>&1 </dev/null); then
      echo "FAILED $(head -1 "$block" | cut -c3-):"; tail -n +3 "$block" | sed 's/^/    /'; echo "with:"; tail -20 "$scratch/output"
      failures=$((failures + 1))
    fi
  done
}

failures=0
cd "$root"
if (($#)); then pages=("$@"); else pages=(README.md CONTRIBUTING.md docs/*.md docs/*/*.md); fi
for page in "${pages[@]}"; do run_page "$page"; done
((failures == 0)) || { echo "$failures blocks failed"; exit 1; }
