#!/usr/bin/env bash
# Runs under a real Slurm of two nodes on this machine: srun with a task per rank and a task per node, the batch scripts of
# containers/ without a container, signals, and jobs that go back into the queue and continue. Skipped without Slurm, or not as root.
set -euo pipefail
root=$(realpath "${TYCHO_SOURCE_DIR:-$(dirname "$0")/../..}")
for program in slurmctld slurmd munged sbatch; do
  command -v $program >/dev/null || { echo "skipped: there is no $program (apt-get install slurm-wlm munge)"; exit 77; }
done
((EUID == 0)) || { echo "skipped: Slurm's daemons need root"; exit 77; }
# shellcheck source=tests/containers/script_cases.sh
source "$root/tests/containers/script_cases.sh"
"$root/tests/slurm/cluster" up "$scratch/slurm" 2 >/dev/null
trap '"$root/tests/slurm/cluster" down "$scratch/slurm"; sleep 1; rm -rf "$scratch"' EXIT
export SLURM_CONF=$scratch/slurm/etc/slurm.conf TYCHO_ADDRESS=127.0.0.1
export PATH=$root/containers:${TYCHO_BUILD:-$root/build/cpu}/bin:$PATH TYCHO_RECIPES=$root/recipes

# ---- a tiny data set and recipe ----
for i in $(seq 200); do echo "{\"text\": \"Job $i counts from $i to $((3 * i)) and ends.\"}"; done >train.jsonl
tycho tokenizer train train.jsonl --vocab-size 300 --out tokenizer.json >setup.log
for split in train val; do
  tycho data convert train.jsonl --tokenizer tokenizer.json --eos-text '<|endoftext|>' --concat-tokens 32 --out data --split $split >>setup.log
done
cat >tiny.lua <<'LUA'
local t = require "tycho"
local r = t.recipe "tiny"
r.seq_len, r.global_batch, r.max_duration, r.threads = 32, "8sp", "12ba", 1
r.model = t.model.llama { width = 32, layers = 2, heads = 4, kv_heads = 2, ffn_width = 64, vocab_size = 300 }
r.optimizer = t.optim.adamw { lr = 5e-3 }
r.tokenizer = "tokenizer.json"
r.train_data = t.data.mds { local_dir = t.env("TYCHO_DATA", "data") }
r.ckpt.every = "4ba"
return r
LUA
losses() { sed -n 's/.*"step":\([0-9]*\).*"loss":\([-0-9.e]*\).*/\1 \2/p; t; s/.*"loss":\([-0-9.e]*\).*"step":\([0-9]*\).*/\2 \1/p' "$1/metrics.jsonl" | sort -n | uniq; }
# job STATE SBATCH_ARGUMENT...: submits a job, waits until it has this state, and prints its log.
job() {
  local wanted=$1 number state=''; shift
  number=$(sbatch --parsable --output="$scratch/job-%j.out" "$@")
  echo "$number" >"$scratch/job"
  for _ in $(seq 400); do
    state=$(scontrol show job "$number" | sed -n 's/.*JobState=\([A-Z]*\).*/\1/p')
    case $state in COMPLETED | FAILED | CANCELLED | TIMEOUT | NODE_FAIL) break ;; esac
    [[ $state != "$wanted" ]] || break
    sleep 0.25
  done
  cat "$scratch/job-$number.out" 2>/dev/null || true
  echo "state $state"
  [[ $state == "$wanted" ]]
}

# ---- srun ----
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

# ---- the batch scripts ----
launch=$root/containers/launch.sb
check "launch.sb" 0 "in 4 ranks
ranks=4
state COMPLETED" job COMPLETED -N2 --ntasks-per-node=2 "$launch" -c ./tiny.lua -i none -d "$scratch/data" -s -I 4 -N 2 -F "$scratch/wrapped"
check "saves where -F says" 0 "8
12" sh -c "tycho ckpt ls '$scratch/wrapped/tiny' | awk '{ print \$1 }'"
check "a mistake ends the job on one node" 1 "unknown key  optimizer.lrr
state FAILED" job COMPLETED -N2 --ntasks-per-node=2 "$launch" -c ./tiny.lua -i none -d "$scratch/data" -y optimizer.lrr=1
CONFIG_FILE=./tiny.lua check "multinode_trainer.slurm" 0 "ranks=4
state COMPLETED" job COMPLETED --partition=low --nodes=2 --ntasks-per-node=2 --cpus-per-task=1 "$root/containers/multinode_trainer.slurm" run_dir=titan
mkdir -p logs
TYCHO_EDF=none check "run_tiny_llama.sbatch" 0 "ranks=4
state COMPLETED" job COMPLETED --nodes=2 --ntasks-per-node=2 --error=/dev/null "$root/containers/run_tiny_llama.sbatch" ./tiny.lua run_dir=nanotron

# ---- jobs that are stopped, and continue by themselves ----
# The first start of a job is slow enough to be stopped; the numbers do not depend on it.
cat >slow.lua <<'LUA'
local t = require "tycho"
local r = require "tiny" :extend "slow"
r.max_duration = "60ba"
local loops = t.env("SLURM_JOB_ID", "") ~= "" and t.env("SLURM_RESTART_COUNT", "") == "" and 12e6 or 1
r.callbacks.slow = t.observe { batch_end = function() local x = 0; for i = 1, loops do x = x + i end end }
return r
LUA
long=(-c ./slow.lua -i none -d "$scratch/data" -s -I 50 -N 1)
# stopped NAME FOLDER ACTION...: starts a job of two ranks, acts when it trains, and waits for its end.
stopped() {
  local name=$1 number state='' ; shift
  number=$(sbatch --parsable --output="$scratch/$name.out" --open-mode=append -N1 --ntasks-per-node=2 "$launch" "${long[@]}" -F "$scratch/$name")
  for _ in $(seq 240); do
    if grep -q '"step":5' "$scratch/$name/slow/metrics.jsonl" 2>/dev/null; then break; fi
    sleep 0.25
  done
  "$@" "$number"
  for _ in $(seq 480); do
    state=$(scontrol show job "$number" | sed -n 's/.*JobState=\([A-Z]*\).*/\1/p')
    case $state in COMPLETED | FAILED | CANCELLED | TIMEOUT) break ;; esac
    sleep 0.25
  done
  cat "$scratch/$name.out"
  scontrol show job "$number" | grep -o 'Restarts=[0-9]*'
  echo "state $state"
}
check "to compare with, a run that nothing stops" 0 "" tycho launch -n 2 run slow.lua run_dir=whole --plain ckpt.every=50ba
check "SIGUSR1, as before a time limit" 0 "resumed from step
Restarts=1
state COMPLETED" stopped usr1 scancel --signal=USR1
check "the losses are those of the run that nothing stopped" 0 "" cmp <(losses whole) <(losses usr1/slow)
check "SIGTERM" 0 "resumed from step
Restarts=1
state COMPLETED" stopped term scancel --signal=TERM
check "the same losses" 0 "" cmp <(losses whole) <(losses term/slow)
# preempt JOB: another job takes both nodes for a moment.
preempt() { sbatch --parsable --partition=high -N2 --exclusive --output=/dev/null --wrap 'sleep 1' >/dev/null; }
check "a job of a higher priority" 0 "resumed from step
Restarts=1
state COMPLETED" stopped preempted preempt
check "and the same losses" 0 "" cmp <(losses whole) <(losses preempted/slow)
finish
