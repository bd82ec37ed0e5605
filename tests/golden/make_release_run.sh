#!/usr/bin/env bash
# Makes tests/golden/releases/VERSION, a run folder as this release leaves it when it is stopped after four of eight steps, with
# the losses of all eight. tests/host/old_runs.sh resumes it with every later version. Run once for each release, from a tree that
# was built with the release's version:
#   TYCHO_BUILD=build/cpu tests/golden/make_release_run.sh
# 0.1.0 was made on 2026-11-27.
set -euo pipefail
root=$(realpath "$(dirname "$0")/../..")
bin=$(realpath "${TYCHO_BUILD:-$root/build/cpu}")/bin
export PATH=$bin:/usr/bin:/bin
version=$(tycho version --json | sed -n 's/.*"tycho": "\([0-9.]*\)".*/\1/p')
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp "$root/tests/golden/releases/tiny.lua" "$scratch"
cd "$scratch"
env -i PATH="$PATH" HOME="$scratch" LANG=C.UTF-8 "$root/tests/make_tiny_data" 32
run() { env -i PATH="$PATH" HOME="$scratch" LANG=C.UTF-8 OMP_NUM_THREADS=1 tycho run tiny.lua --plain "$@" >log.txt 2>&1 || { cat log.txt; exit 1; }; }
run run_name=whole
run --until 4ba
# Nothing of the machine that made it.
find runs/tiny -type f -not -name '*.safetensors' -not -name COMMIT -exec sed -i -E "s#$scratch#/work#g; s#$bin#/opt/tycho/bin#g; s#\"$(hostname)\"#\"machine\"#g
  s#\"boot_id\":\"[^\"]*\"#\"boot_id\":\"00000000-0000-0000-0000-000000000000\"#" {} +
! grep -rlE -- "$scratch|$bin|\"$(hostname)\"" runs/tiny || { echo "these name this machine (above)"; exit 1; }
rm -rf "$root/tests/golden/releases/$version"
mkdir -p "$root/tests/golden/releases/$version"
cp -r runs/tiny/. "$root/tests/golden/releases/$version"
sed -n 's/.*"loss": *\([0-9.e-]*\).*/\1/p' runs/whole/metrics.jsonl >"$root/tests/golden/releases/$version/losses.txt"
