#!/usr/bin/env bash
# A node that goes down: the ranks on the other one say so and end, and the job goes back into the queue and continues on other
# nodes, also when the lost node had the batch script. A job that may not be requeued says what to do.
set -euo pipefail
# shellcheck source=tests/slurm/story.sh
source "$(dirname "$0")/story.sh" 8 1,1,1,1,1,1,1,1
batch_host() { scontrol show job "$1" | sed -n 's/.*BatchHost=//p'; }
# other_host JOB: of its two nodes, the one without the batch script.
other_host() { scontrol show hostnames "$(scontrol show job "$1" | sed -n 's/^ *NodeList=//p')" | grep -vx "$(batch_host "$1")"; }

export interval=2
start away -N2 --ntasks-per-node=1; away=$job
start batch -N2 --ntasks-per-node=1; batch=$job
start once -N2 --ntasks-per-node=1 --no-requeue; once=$job
for name in away batch once; do wait_until 60 has_checkpoint "$name/slow"; done
"$cluster" lose "$scratch/slurm" "$(other_host "$away")"
"$cluster" lose "$scratch/slurm" "$(batch_host "$batch")"
"$cluster" lose "$scratch/slurm" "$(other_host "$once")"
check "to compare with, a run that loses nothing" 0 "" tycho launch -n 2 run slow.lua run_dir=whole --plain ckpt.every=2ba

check "a node is lost" 0 "rank 1 (
has died
resumed from step
Restarts=1
state COMPLETED" outcome "$away" away.out
check "the losses are those of a run that lost nothing" 0 "" cmp <(losses whole) <(losses away/slow)
check "the node with the batch script is lost" 0 "resumed from step
Restarts=1
state COMPLETED" outcome "$batch" batch.out
check "the same losses" 0 "" cmp <(losses whole) <(losses batch/slow)
check "a job that may not be requeued" 0 "has died
The same command resumes from the newest checkpoint
Restarts=0" outcome "$once" once.out
check "has failed" 1 "" grep -qx "state COMPLETED" <(outcome "$once" once.out)
SLURM_RESTART_COUNT=1 start again -N2 --ntasks-per-node=1
finish
