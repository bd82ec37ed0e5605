#!/usr/bin/env bash
# Jobs that are stopped by signals, by hand or by a job of a higher priority go back into the queue, continue by themselves, and
# end with the losses of a run that nothing stopped. A job that is cancelled saves, and stays out of the queue.
set -euo pipefail
# shellcheck source=tests/slurm/story.sh
source "$(dirname "$0")/story.sh" 5 2,2,2,2,2
# One node each, at the same time: most of it is waiting for Slurm.
declare -A jobs
for name in usr1 term by_hand preempted cancelled; do
  start $name -N1 --ntasks-per-node=2
  jobs[$name]=$job
done
scancel --signal=USR1 "${jobs[usr1]}"
scancel --signal=TERM "${jobs[term]}"
scontrol requeue "${jobs[by_hand]}"
node=$(scontrol show job "${jobs[preempted]}" | sed -n 's/^ *NodeList=//p')
sbatch --partition=high -N1 --exclusive --nodelist="$node" --output=/dev/null --wrap 'sleep 1' >/dev/null
scancel "${jobs[cancelled]}"
check "to compare with, a run that nothing stops" 0 "" tycho launch -n 2 run slow.lua run_dir=whole --plain ckpt.every=50ba

check "SIGUSR1, as before a time limit" 0 "stopped by SIGUSR1" outcome "${jobs[usr1]}" usr1.out
check "SIGTERM" 0 "stopped by SIGTERM" outcome "${jobs[term]}" term.out
for name in usr1 term by_hand preempted; do
  check "$name: the job continues" 0 "resumed from step
Restarts=1
state COMPLETED" outcome "${jobs[$name]}" $name.out
  check "$name: the losses are those of the run that nothing stopped" 0 "" cmp <(losses whole) <(losses $name/slow)
done
check "cancelled: saved, and not started again" 0 "stopped by SIGTERM after step
Restarts=0
state CANCELLED" outcome "${jobs[cancelled]}" cancelled.out
check "with a checkpoint" 0 "" has_checkpoint cancelled/slow
finish
