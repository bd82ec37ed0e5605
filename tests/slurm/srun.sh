#!/usr/bin/env bash
# srun with a task per rank and with a task per node gives the losses of tycho launch.
set -euo pipefail
# shellcheck source=tests/slurm/story.sh
source "$(dirname "$0")/story.sh" 2

check "four ranks of a launcher, to compare with" 0 "" tycho launch -n 4 run tiny.lua run_dir=launched --plain
check "one task for each rank" 0 "ranks=4" srun -N2 --ntasks-per-node=2 tycho run tiny.lua run_dir=tasks --plain
check "gives the losses of the launcher" 0 "" cmp <(losses launched) <(losses tasks)
check "which are there" 0 "12 " losses tasks
check "GPUs of the node change nothing on a CPU build" 0 "ranks=2" srun -N2 --ntasks-per-node=1 --gpus-per-node=2 tycho run tiny.lua run_dir=gpus --plain device=cpu
# shellcheck disable=SC2016
check "one task for each node, with ranks started inside" 0 "ranks=4" env TYCHO_PORT=$((21000 + $$ % 10000)) TYCHO_TOKEN=0123456789abcdef \
  srun -N2 --ntasks-per-node=1 bash -c 'exec tycho launch -n 2 --nodes $SLURM_NNODES --node $SLURM_NODEID run tiny.lua run_dir=nodes --plain'
check "gives the same losses" 0 "" cmp <(losses launched) <(losses nodes)
check "a batch that the tasks cannot share" 11 "cannot be divided evenly" srun -n3 -N2 tycho run tiny.lua run_dir=uneven --plain
# shellcheck disable=SC2016
check "tasks with different arguments" 11 "has a different configuration" srun -N1 -n2 --kill-on-bad-exit=0 \
  bash -c 'exec tycho run tiny.lua run_dir=unequal --plain seed=$SLURM_PROCID'
finish
