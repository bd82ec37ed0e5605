#!/bin/bash
# Evaluations and exports of every checkpoint, by processes beside a run that started before it; and what becomes of
# them when the run is killed.
set -euo pipefail
root=$(realpath "${TYCHO_SOURCE_DIR:-$(dirname "$0")/../..}")
export PATH=${TYCHO_BUILD:-$root/build/cpu}/bin:$PATH
scratch=$(mktemp -d)
cd "$scratch"
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$scratch"' EXIT

"$root/tests/make_tiny_data" 16
cat >tiny.lua <<'END'
local t = require "tycho"
local r = t.recipe "tiny"
r.model, r.tokenizer = t.model.llama { layers = 1, width = 16, heads = 2, ffn_width = 32, vocab_size = 384 }, "data/tokenizer.json"
r.seq_len, r.global_batch, r.max_duration = 16, "2sp", "12ba"
r.train_data, r.eval_data.val = t.data.mds { local_dir = "data" }, t.data.mds { local_dir = "data" }
r.eval = { every = "4ba", batches = 4 }
r.optimizer = t.optim.adamw { lr = 1e-3 }
r.ckpt = { every = "4ba", keep = 0 }
return r
END
passed=0 failed=0
check() { if "${@:2}"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $1"; fi; }

# A run that is killed: what follows it notices in a minute, while the checks below run.
sed 's/"12ba"/"1000000ba"/' tiny.lua >killed.lua
tycho run killed.lua run_name=killed >killed.txt 2>&1 &
victim=$!
until [[ -n $(ls runs/killed/checkpoints/*/COMMIT 2>/dev/null) ]]; do
  kill -0 $victim || { cat killed.txt; exit 1; }
  sleep 0.1
done
kill -9 $victim
tycho convert runs/killed killed-exports --follow >follows.txt 2>&1 &
follows=$!

tycho eval runs/tiny --follow >eval.txt 2>&1 &
evaluates=$!
mkdir -p exports/.ba4.partial && echo torn >exports/.ba4.partial/model.safetensors  # of one that was killed
tycho convert runs/tiny exports --follow >convert.txt 2>&1 &
converts=$!
tycho run tiny.lua >run.txt 2>&1 || { cat run.txt; exit 1; }
check 'the evaluations end with the run' wait $evaluates
check 'the exports end with the run' wait $converts
steps() { grep -o '"step":[0-9]*' "$1" | tr '\n' ' '; }
check 'every checkpoint is evaluated once, in order' test "$(steps runs/tiny/evals.jsonl)" = '"step":4 "step":8 "step":12 '
# What the run measured itself on the same batches.
losses() { grep -o '"eval.val.loss":[0-9.]*' "$1" | cut -c1-22; }
check 'with the losses of the run' test "$(losses runs/tiny/evals.jsonl)" = "$(losses runs/tiny/metrics.jsonl)"
for step in 4 8 12; do check "an export of step $step" test -s exports/ba$step/config.json; done
check 'nothing is left of an export that was killed' test ! -e exports/.ba4.partial
before=$(cat runs/tiny/evals.jsonl)
tycho eval runs/tiny --follow >/dev/null
tycho convert runs/tiny exports --follow >/dev/null
check 'what is done is not done again' test "$before" = "$(cat runs/tiny/evals.jsonl)"
status=0; tycho eval tiny.lua --follow >not.txt 2>&1 || status=$?
check 'a file is refused' test $status = 2
check 'what follows a killed run ends' wait $follows
check 'and says why' grep -q "process $victim on host .* is gone, so this command ends too" follows.txt
check 'after it said that it waits' grep -q 'is gone: waiting 60 s' follows.txt
check 'and took the checkpoints' test -n "$(ls -d killed-exports/ba*)"
echo "$passed passed, $failed failed" | tee "${TYCHO_RESULT:-/dev/null}"
((failed == 0))
