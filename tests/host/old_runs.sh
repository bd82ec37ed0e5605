#!/usr/bin/env bash
# Run folders of released versions (tests/golden/releases, by tests/golden/make_release_run.sh) still work: they are listed,
# verified, evaluated, sampled from and resumed to their end with the losses that the release itself had.
set -euo pipefail
releases=$TYCHO_SOURCE_DIR/tests/golden/releases scratch=$(mktemp -d "${TMPDIR:-/tmp}/tycho-old-runs-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
export PATH=$TYCHO_BUILD/bin:$PATH
passed=0
fail() { echo "$*"; echo "$passed passed, 1 failed" >"$TYCHO_RESULT"; exit 1; }
# expect TEXT COMMAND...: the command ends well and says TEXT.
expect() {
  local text=$1; shift
  local status=0
  "$@" >log.txt 2>&1 </dev/null || status=$?
  ((status == 0)) || { cat log.txt; fail "$version: exit status $status of: $*"; }
  grep -qF -- "$text" log.txt || { cat log.txt; fail "$version: expected \"$text\" of: $*"; }
  passed=$((passed + 1))
}

version=$(tycho version --json | sed -n 's/.*"tycho": "\([0-9.]*\)".*/\1/p')
[[ -d $releases/$version ]] || fail "expected tests/golden/releases/$version, a run of this version, found none: make_release_run.sh makes it"
for folder in "$releases"/*/; do
  version=$(basename "$folder")
  mkdir -p "$scratch/$version/runs"
  cd "$scratch/$version"
  cp -r "$folder" runs/tiny
  cp "$releases/tiny.lua" .
  "$TYCHO_SOURCE_DIR/tests/make_tiny_data" 32
  expect tiny tycho ls runs
  expect 1 tycho ckpt verify runs/tiny
  expect perplexity tycho eval runs/tiny --data data --split train
  expect class tycho generate runs/tiny --prompt class --max-tokens 4
  expect 'step=8 ' tycho run tiny.lua --plain
  ! grep -q '^step=4 ' log.txt || fail "$version: the run began again"
  sed -n 's/.*"loss": *\([0-9.e-]*\).*/\1/p' runs/tiny/metrics.jsonl | paste - "$folder/losses.txt" |
    awk '{ if (NF != 2 || ($1 - $2)^2 > 1e-6) { print "expected loss " $2 ", got " $1; wrong = 1 } } END { exit wrong || NR != 8 }' ||
    fail "$version: other losses (above), expected eight"
  passed=$((passed + 1))
done
echo "$passed passed, 0 failed" | tee "$TYCHO_RESULT"
