#!/usr/bin/env bash
# srun dies: nothing of its step is left running, and a batch script goes back into the queue and continues.
set -euo pipefail
# shellcheck source=tests/slurm/story.sh
source "$(dirname "$0")/story.sh" 2
# kill_srun NAME: the srun that has this folder in its command line. It has a child that tidies up after it.
num_ranks() { on_nodes "tycho run .*$1" | wc -l; }
nothing_of() { [[ $(num_ranks "$1") == 0 ]]; }
kill_srun() { kill -KILL "$(pgrep -o -f "^srun .*$1")"; }
srun -N2 --ntasks-per-node=2 tycho run slow.lua run_dir="$scratch/alone" --plain >alone.out 2>&1 &
wait_until 120 has_step alone 3
check "four ranks" 0 "4" num_ranks "$scratch/alone"
kill_srun "$scratch/alone"
check "none of them is left" 0 "" wait_until 60 nothing_of "$scratch/alone"
no_job() { [[ -z $(squeue --noheader) ]]; }
check "nor is their job" 0 "" wait_until 60 no_job
check "the same command resumes or starts again" 0 "done, 60 steps" env SLURM_RESTART_COUNT=1 \
  srun -N2 --ntasks-per-node=2 tycho run slow.lua run_dir="$scratch/alone" --plain

start job -N2 --ntasks-per-node=1
kill_srun "$scratch/job"
check "the srun of a batch script" 0 "Restarts=1
state COMPLETED" outcome "$job" job.out
check "leaves nothing either" 0 "" nothing_of "$scratch/job"
check "to compare with, a run that nothing stops" 0 "" tycho launch -n 2 run slow.lua run_dir=whole --plain ckpt.every=50ba
check "the losses are the same" 0 "" cmp <(losses whole) <(losses job/slow)
finish
