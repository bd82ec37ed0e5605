#!/usr/bin/env bash
# Wrong arguments of the scripts: named at once with the script's help and exit status 2, before anything is set up or built.
set -euo pipefail
root=$(realpath "${TYCHO_SOURCE_DIR:-$(dirname "$0")/../..}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
passed=0 failed=0

# expect STATUS TEXT SCRIPT ARGUMENT...
expect() {
  local wanted=$1 text=$2 status=0 script=$3; shift 3
  timeout 20 "$root/scripts/$script" "$@" >out.log 2>err.log </dev/null || status=$?
  local said=err.log; ((wanted != 0)) || said=out.log
  if ((status == wanted)) && grep -qF -- "$text" "$said" && grep -qF -- "  scripts/$script " "$said"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "scripts/$script $*: exit status $status (expected $wanted), expected \"$text\" and the help in $said:"; cat out.log err.log
  fi
}

for script in setup demo test odr package precommit cross_aarch64; do
  expect 2 "[$script] unknown option: --nonsense" $script --nonsense
  expect 0 "scripts/$script" $script --help
  expect 0 "scripts/$script" $script -h
done
expect 2 "[setup] unknown option: cuda" setup cuda
expect 2 "[setup] expected one option at most, got 2: --cpu --cuda" setup --cpu --cuda
expect 2 "[cross_aarch64] expected one option at most, got 2: --cpu --setup" cross_aarch64 --cpu --setup
expect 2 "[demo] expected overrides such as max_duration=40ba, got: fast" demo max_duration=4ba fast
expect 2 "[test] unknown option: layering" test layering
expect 2 "[test] -R needs a pattern" test -R
expect 2 "[sum_up] expected a folder of results and ctest's exit status, got 1 arguments" sum_up results
expect 2 "[sum_up] there is no folder nowhere" sum_up nowhere 0
expect 0 "scripts/sum_up" sum_up --help
expect 2 "[make_man_page] expected the program, got 0 arguments" make_man_page

echo "$passed passed, $failed failed" | tee "${TYCHO_RESULT:-/dev/null}"
((failed == 0))
