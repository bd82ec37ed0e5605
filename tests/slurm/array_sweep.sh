#!/usr/bin/env bash
# A sweep as a job array: a worker that is killed comes back, one that is cancelled does not, and all trials end with the
# losses of runs outside of Slurm. Then one whose trials take two nodes each.
set -euo pipefail
# shellcheck source=tests/slurm/story.sh
source "$(dirname "$0")/story.sh" 3
cat >patient.lua <<'LUA'
local t = require "tycho"
local r = require "tiny" :extend "patient"
r.max_duration = "40ba"
local is_first = t.env("SLURM_JOB_ID", "") ~= "" and t.env("SLURM_RESTART_COUNT", "") == ""
r.callbacks.slow = t.observe { batch_end = function() local x = 0; for i = 1, is_first and 3e7 or 1 do x = x + i end end, time_limit = "1000s" }
return r
LUA
cat >rates.lua <<'LUA'
local t = require "tycho"
local s = t.sweep "rates"
s.recipe = "patient.lua"
s.metric.name, s.heartbeat = "loss", "2s"
s.space["optimizer.lr"] = t.space.choice { 1e-3, 2e-3, 3e-3, 4e-3, 5e-3, 6e-3 }
s.search = t.search.grid()
s.launch = t.launch.slurm_array { gpus = 0, time = "10m", max_running = 3, options = { "--cpus-per-task=1" } }
return s
LUA
check "the array is submitted" 0 "submitted as job" tycho sweep rates.lua
array=$(squeue --noheader --format %F | head -1)
# worker TASK: the process of a task of the array.
worker() {
  local pid
  for pid in $(on_nodes 'tycho sweep resume'); do ! grep -qzx "SLURM_ARRAY_TASK_ID=$1" "/proc/$pid/environ" || echo "$pid"; done
}
started() { [[ $(grep -c '"type":"running"' sweeps/rates/ledger.jsonl) -ge $1 ]]; }
check "three trials run at once" 0 "" wait_until 60 started 3
has_worker() { [[ -n $(worker 0) ]]; }
wait_until 60 has_worker
kill -KILL "$(worker 0)"
scancel "${array}_1"
over() { [[ -z $(squeue --noheader --job "$array") ]]; }
check "the array ends" 0 "" wait_until 200 over
check "the task whose worker was killed started again" 0 "Restarts=1" scontrol show job "${array}_0"
check "the one that was cancelled did not" 0 "JobState=CANCELLED
Restarts=0" scontrol show job "${array}_1"
check "all trials finished" 0 "6" grep -c '"state":"finished"' <(tycho sweep table rates --json | tr -d ' ' | tr '{' '\n')
for rate in 1e-3 2e-3 6e-3; do
  run=$(grep -lE "\"lr\": ?${rate/e-/.0e-}|\"lr\": ?0.00${rate%e-3}" sweeps/rates/trials/*/recipe.json | head -1)
  check "a run outside of Slurm, $rate" 0 "" tycho run patient.lua run_dir="plain-$rate" --plain optimizer.lr=$rate
  check "has the losses of the trial" 0 "" cmp <(losses "plain-$rate") <(losses "$(dirname "$run")")
done

# ---- trials of several nodes ----
sed -e 's/t.sweep "rates"/t.sweep "wide"/' -e 's/{ 1e-3, .* 6e-3 }/{ 2e-3, 6e-3 }/' -e 's/gpus = 0,/gpus = 0, nodes = 2,/' -e 's/patient.lua/tiny.lua/' rates.lua >wide.lua
check "a sweep whose trials take two nodes" 0 "submitted as job" tycho sweep wide.lua
array=$(squeue --noheader --format %F | head -1)
check "its array ends" 0 "" wait_until 200 over
wide_trials() { cat sweeps/wide/trials/*/log.txt | grep -oE 'ranks=2|done, 12 steps' | sort | uniq -c; }
check "each of the two trials has two ranks, and ends" 0 "2 ranks=2
2 done, 12 steps" wide_trials
finish
