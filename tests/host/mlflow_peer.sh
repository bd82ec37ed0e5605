#!/bin/bash
# A run on a tracking server of MLflow and in a folder, killed and resumed, read back with MLflow itself. Skipped unless
# TYCHO_MLFLOW_PYTHON names a Python with mlflow:
#   python3 -m venv v && v/bin/pip install mlflow==3.17.2 && TYCHO_MLFLOW_PYTHON=v/bin/python ctest -R mlflow_peer
set -euo pipefail
[[ -n ${TYCHO_MLFLOW_PYTHON:-} ]] || { echo "skipped: TYCHO_MLFLOW_PYTHON names no Python with mlflow"; exit 77; }
root=$(realpath "${TYCHO_SOURCE_DIR:-$(dirname "$0")/../..}")
python=$(realpath -s "$TYCHO_MLFLOW_PYTHON")
export PATH=${TYCHO_BUILD:-$root/build/cpu}/bin:$PATH
scratch=$(mktemp -d)
cd "$scratch"
server=
trap 'kill -- $(jobs -p) $server 2>/dev/null || true; rm -rf "$scratch"' EXIT
export no_proxy=127.0.0.1 NO_PROXY=127.0.0.1
unset MLFLOW_TRACKING_URI MLFLOW_TRACKING_TOKEN MLFLOW_TRACKING_USERNAME MLFLOW_TRACKING_PASSWORD

"$root/tests/make_tiny_data" 16
cat >tiny.lua <<'LUA'
local t = require "tycho"
local r = t.recipe "tiny"
r.model, r.tokenizer = t.model.llama { layers = 1, width = 16, heads = 2, ffn_width = 32, vocab_size = 384 }, "data/tokenizer.json"
r.seq_len, r.global_batch, r.max_duration = 16, "2sp", "400ba"
r.train_data = t.data.mds { local_dir = "data" }
r.optimizer = t.optim.adamw { lr = 1e-3 }
r.ckpt = { every = "50ba" }
r.log.sinks = { t.log.jsonl {}, t.log.mlflow { tracking_uri = t.env("TRACKING"), experiment = "my words", tags = { team = "a" } } }
r.icl = { outputs = true, tasks = { { label = "words", path = "words.jsonl", type = "language_modeling" } } }
return r
LUA
printf '{"context": "1 2", "continuation": "3"}\n{"context": "7 8", "continuation": "9"}\n' >words.jsonl

port=$((20000 + RANDOM % 12000))
MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false "$python" -m mlflow server --backend-store-uri "sqlite:///$scratch/mlflow.db" --artifacts-destination "$scratch/artifacts" \
  --host 127.0.0.1 --port $port --workers 1 >server.txt 2>&1 &
server=$!
for _ in $(seq 600); do
  grep -q "Application startup complete" server.txt && break
  kill -0 $server || { cat server.txt; exit 1; }
  sleep 0.2
done

passed=0 failed=0
check() { if "${@:2}"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $1"; fi; }
read_back() { "$python" "$root/tests/golden/loggers/read_mlflow.py" "$@"; }

# Killed between two checkpoints, when the logger has sent something, and started again.
trained() {
  local run=runs/$1
  tycho run tiny.lua run_name="$1" max_duration=100000ba >first.txt 2>&1 &
  local victim=$!
  until [[ -s $run/mlflow_run_id.txt ]] && (($(wc -l <$run/metrics.jsonl) > 170)); do
    kill -0 $victim || { cat first.txt; return 1; }
    sleep 0.1
  done
  kill -9 $victim
  wait $victim 2>/dev/null || true
  tycho run tiny.lua run_name="$1" max_duration=$(($(wc -l <$run/metrics.jsonl) + 100))ba >again.txt 2>&1 || { cat again.txt; return 1; }
}
export TRACKING=http://127.0.0.1:$port
check 'a run on a server' trained served
check 'MLflow reads it there' read_back runs/served $TRACKING FINISHED
export TRACKING=$scratch/mlruns
check 'a run in a folder' trained filed
check 'MLflow reads it there' read_back runs/filed "$TRACKING" FINISHED
export TRACKING=http://127.0.0.1:$port/nothing
status=0; tycho run tiny.lua run_name=lost >lost.txt 2>&1 || status=$?
check 'an address that is not right ends a run before its first step' test $status = 15
check 'with the reason' grep -q 't.log.mlflow cannot start' lost.txt
echo "$passed passed, $failed failed" | tee "${TYCHO_RESULT:-/dev/null}"
((failed == 0))
