# shellcheck shell=bash
# How each story of this folder begins: a Slurm of several nodes on this machine (cluster), a tiny data set, two recipes, and
# functions that wait for what becomes of a job. Skipped without Slurm, where it does not start, or not as root. Sourced, with the arguments of `cluster up`:
#   source "$(dirname "$0")/story.sh" NODES [CPUS]
root=$(realpath "${TYCHO_SOURCE_DIR:-$(dirname "$0")/../..}")
for program in slurmctld slurmd munged sbatch; do
  command -v $program >/dev/null || { echo "skipped: there is no $program (apt-get install slurm-wlm munge)"; exit 77; }
done
((EUID == 0)) || { echo "skipped: Slurm's daemons need root"; exit 77; }
# shellcheck source=tests/containers/script_cases.sh
source "$root/tests/containers/script_cases.sh"
cluster=$root/tests/slurm/cluster
if ! "$cluster" up "$scratch/slurm" "$@" >/dev/null 2>cluster.log; then
  cat cluster.log
  echo "skipped: Slurm did not start on this machine"
  exit 77
fi
trap '"$cluster" down "$scratch/slurm"; rm -rf "$scratch"' EXIT
export SLURM_CONF=$scratch/slurm/etc/slurm.conf TYCHO_ADDRESS=127.0.0.1
export PATH=$root/containers:${TYCHO_BUILD:-$root/build/cpu}/bin:$PATH TYCHO_RECIPES=$root/recipes

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
# The first start of a job does not end by itself: something has to stop it. The numbers do not depend on that.
cat >slow.lua <<'LUA'
local t = require "tycho"
local r = require "tiny" :extend "slow"
r.max_duration = "60ba"
local is_first = t.env("SLURM_JOB_ID", "") ~= "" and t.env("SLURM_RESTART_COUNT", "") == ""
local function wait(ctx)
  local x = 0
  for i = 1, is_first and (ctx.step < 30 and 5e7 or 4e9) or 1 do x = x + i end
end
r.callbacks.slow = t.observe { batch_end = wait, time_limit = "1000s" }
return r
LUA
launch=$root/containers/launch.sb
# start NAME SBATCH_OPTION...: submits the slow recipe, waits until it trains, and sets `job`.
start() {
  local name=$1; shift
  # shellcheck disable=SC2034  # for the stories
  job=$(sbatch --parsable --output="$scratch/$name.out" --open-mode=append "$@" "${script:-$launch}" -c ./slow.lua -i none -d "$scratch/data" \
    -s -I "${interval:-50}" -N 1 -F "$scratch/$name")
  wait_until 120 has_step "$name/slow" 3
}

# losses RUN: one line a step.
losses() { sed -n 's/.*"step":\([0-9]*\).*"loss":\([-0-9.e]*\).*/\1 \2/p; t; s/.*"loss":\([-0-9.e]*\).*"step":\([0-9]*\).*/\2 \1/p' "$1/metrics.jsonl" | sort -n | uniq; }
has_step() { losses "$1" 2>/dev/null | grep -q "^$2 "; }
has_checkpoint() { tycho ckpt ls "$1" 2>/dev/null | grep -qE '^ *[1-9]'; }
# wait_until SECONDS COMMAND...: fails when the command does not succeed in this time, and says what the jobs did instead.
wait_until() {
  local tries=$(($1 * 4)); shift
  until "$@"; do
    ((tries-- > 0)) || { echo "waited in vain for: $*"; show_jobs; return 1; }
    sleep 0.25
  done
}
# show_jobs: the states and logs of all jobs and daemons.
show_jobs() {
  scontrol show job | grep -E 'JobId=|JobState=|Restarts=|NodeList=|Time=' || true
  sinfo --Node --long || true
  tail -n 15 "$scratch"/*.out "$scratch"/slurm/log/* || true
}
state_of() { scontrol show job "$1" | sed -n 's/.*JobState=\([A-Z_]*\).*/\1/p'; }
is_over() { [[ $(state_of "$1") =~ ^(COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL)$ ]]; }
# outcome JOB LOG: waits for the end of a job; prints its log, how often it was started again, and its last state.
outcome() {
  wait_until 150 is_over "$1" || true
  cat "$2"
  scontrol show job "$1" | grep -o 'Restarts=[0-9]*'
  echo "state $(state_of "$1")"
}
# on_nodes PATTERN: processes with such a command line that the nodes of this cluster started.
on_nodes() {
  local pid
  for pid in $(pgrep -f -- "$1"); do
    if grep -qzxF "SLURM_CONF=$SLURM_CONF" "/proc/$pid/environ" && grep -qz '^SLURMD_NODENAME=' "/proc/$pid/environ"; then echo "$pid"; fi
  done 2>/dev/null
}
