#!/bin/bash
# Saves checkpoints under kill -9: no committed one may be lost, no byte may differ.
#   checkpoint_kill9.sh SAVE_LOOP [TRIALS]
set -eu
save_loop=$1 trials=${2:-200}
run=$(mktemp -d "${TMPDIR:-/tmp}/tycho-kill9-XXXXXX")
"$(dirname "$0")/kill9.sh" "$trials" 1 300 "'$save_loop' '$run/run'" "'$save_loop' '$run/run' check"
steps=$(tail -n 1 "$run/run/done")
folders=$(find "$run/run/checkpoints" -mindepth 1 -maxdepth 1 -type d | wc -l)
echo "kill9: $steps checkpoints were committed, $folders folders are left"
# Two kept, the one resumed from, and at most the one that the last kill interrupted and its predecessor.
[ "$steps" -ge $((trials / 4)) ] && [ "$folders" -le 5 ] || { echo "kill9: too few saves, or leftovers in $run"; exit 1; }
rm -rf "$run"
