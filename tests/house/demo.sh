#!/usr/bin/env bash
# A shorter demo, as a newcomer types it: it must learn, write, plot, and go on when the same command is typed again.
set -euo pipefail
root=$(realpath "${TYCHO_SOURCE_DIR:-$(dirname "$0")/../..}")
export TYCHO_BUILD=${TYCHO_BUILD:-$root/build/cpu}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
fail() { echo "demo: $*"; tail -40 demo.log; exit 1; }
"$root/scripts/demo" max_duration=24ba >demo.log 2>&1 </dev/null || fail "exit status $?"
loss() { sed -n "s/.*\"step\":$1,.*\"loss\":\([0-9.]*\).*/\1/p; s/.*\"loss\":\([0-9.]*\).*\"step\":$1,.*/\1/p" runs/demo/metrics.jsonl | head -1; }
first=$(loss 1) last=$(loss 24)
echo "demo: loss $first after 1 step, $last after 24"
# ln 4096 = 8.3 before anything is learnt. Bounds of what any machine's rounding may do to 24 steps.
awk -v a="$first" -v b="$last" 'BEGIN { exit !(a > 8.0 && a < 8.6 && b > 4.5 && b < 6.3) }' || fail "the loss is not what it should be"
grep -q "Resume:" demo.log || fail "it does not say how to resume"
"$TYCHO_BUILD/bin/tycho" run "$root/recipes/demo.lua" max_duration=26ba >more.log 2>&1 || fail "going on: $(tail -3 more.log)"
grep -q "resumed from step 24" more.log || fail "a longer run did not go on from step 24"
