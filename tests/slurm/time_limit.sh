#!/usr/bin/env bash
# A run that is longer than the time limit of its job goes on by itself: with a signal before the limit, without one, and when
# it is stopped more than once.
set -euo pipefail
# shellcheck source=tests/slurm/story.sh
source "$(dirname "$0")/story.sh" 3
# Slurm's shortest limit is a minute, which it notices up to half a minute late; so all jobs wait for it at once.
start warned --time=1 --signal=USR1@40 -N1 --ntasks-per-node=2
warned=$job
grep -v '^#SBATCH --signal' "$launch" >unwarned.sb
script=unwarned.sb start unwarned --time=1 -N1 --ntasks-per-node=2
unwarned=$job
# The script that docs/slurm.md shows.
awk '/^cat > long.sbatch/ { inside = 1; next } /^END$/ { inside = 0 } inside' "$root/docs/slurm.md" |
  sed -e 's#recipes/mpt-7b.lua#slow.lua run_dir=documented#' -e '/^#SBATCH --signal/d' >documented.sbatch
documented=$(sbatch --parsable --output=documented.out --time=1 -N1 --ntasks-per-node=2 --gpus-per-node=0 --cpus-per-task=1 documented.sbatch)
check "to compare with, a run that has time enough" 0 "" tycho launch -n 2 run slow.lua run_dir=whole --plain ckpt.every=50ba

check "SIGUSR1 before the limit" 0 "stopped by SIGUSR1
resumed from step
Restarts=1
state COMPLETED" outcome "$warned" warned.out
check "gives the losses of a run that has time enough" 0 "" cmp <(losses whole) <(losses warned/slow)
check "the limit itself" 0 "DUE TO TIME LIMIT
stopped by SIGTERM
resumed from step
Restarts=1
state COMPLETED" outcome "$unwarned" unwarned.out
check "the same losses" 0 "" cmp <(losses whole) <(losses unwarned/slow)
check "the limit itself, with the script of docs/slurm.md" 0 "DUE TO TIME LIMIT
resumed from step
Restarts=1
state COMPLETED" outcome "$documented" documented.out
check "the same losses again" 0 "" cmp <(losses whole) <(losses documented)
finish
