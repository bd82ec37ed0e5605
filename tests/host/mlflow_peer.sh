#!/bin/bash
# A run on a tracking server of MLflow and in a folder, killed and resumed, read back with MLflow itself. Skipped unless
# TYCHO_MLFLOW_PYTHON names a Python with mlflow. With moto, which is an S3 on this machine, also on a server whose artifacts are in S3:
#   python3 -m venv v && v/bin/pip install mlflow==3.17.2 'moto[server,s3]==5.2.5' boto3
#   TYCHO_MLFLOW_PYTHON=v/bin/python ctest -R mlflow_peer
set -euo pipefail
[[ -n ${TYCHO_MLFLOW_PYTHON:-} ]] || { echo "skipped: TYCHO_MLFLOW_PYTHON names no Python with mlflow"; exit 77; }
root=$(realpath "${TYCHO_SOURCE_DIR:-$(dirname "$0")/../..}")
python=$(realpath -s "$TYCHO_MLFLOW_PYTHON")
export PATH=${TYCHO_BUILD:-$root/build/cpu}/bin:$PATH
scratch=$(mktemp -d)
cd "$scratch"
servers=
trap 'kill -- $(jobs -p) $servers 2>/dev/null || true; rm -rf "$scratch"' EXIT
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
r.log.loss_by_position = "40ba"
r.icl = { outputs = true, tasks = { { label = "words", path = "words.jsonl", type = "language_modeling" } } }
return r
LUA
printf '{"context": "1 2", "continuation": "3"}\n{"context": "7 8", "continuation": "9"}\n' >words.jsonl

# serve ARGUMENT...: a tracking server at $url.
serve() {
  local port=$((20000 + RANDOM % 12000)) log=server$SECONDS.txt
  url=http://127.0.0.1:$port
  MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false "$python" -m mlflow server --host 127.0.0.1 --port $port --workers 1 "$@" >"$log" 2>&1 &
  servers+=" $!"
  for _ in $(seq 600); do
    grep -q "Application startup complete" "$log" && return
    kill -0 $! || { cat "$log"; exit 1; }
    sleep 0.2
  done
}
serve --backend-store-uri "sqlite:///$scratch/mlflow.db" --artifacts-destination "$scratch/artifacts"

passed=0 failed=0
check() { if "${@:2}"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $1"; fi; }
read_back() { "$python" "$root/tests/golden/loggers/read_mlflow.py" "$@"; }

# Killed between two checkpoints, when the logger has sent something, and started again.
trained() {
  local run=runs/$1
  tycho run tiny.lua run_name="$1" max_duration=100000ba >first.txt 2>&1 &
  local victim=$!
  until [[ -s $run/mlflow_run_id.txt ]] && (($(wc -l <"$run/metrics.jsonl") > 170)); do
    kill -0 $victim || { cat first.txt; return 1; }
    sleep 0.1
  done
  kill -9 $victim
  wait $victim 2>/dev/null || true
  tycho run tiny.lua run_name="$1" max_duration=$(($(wc -l <"$run/metrics.jsonl") + 100))ba >again.txt 2>&1 || { cat again.txt; return 1; }
}
export TRACKING=$url
check 'a run on a server' trained served
check 'MLflow reads it there' read_back runs/served "$TRACKING" FINISHED
export TRACKING=$scratch/mlruns
check 'a run in a folder' trained filed
check 'MLflow reads it there' read_back runs/filed "$TRACKING" FINISHED
export TRACKING=$url/nothing
status=0; tycho run tiny.lua run_name=lost >lost.txt 2>&1 || status=$?
check 'an address that is not right ends a run before its first step' test $status = 15
check 'with the reason' grep -q 't.log.mlflow cannot start' lost.txt
if "$python" -c 'import moto' 2>/dev/null; then
  export AWS_ACCESS_KEY_ID=key AWS_SECRET_ACCESS_KEY=secret AWS_DEFAULT_REGION=us-east-1
  export MLFLOW_S3_ENDPOINT_URL=http://127.0.0.1:$((15000 + RANDOM % 5000))
  "$python" -m moto.server -p "${MLFLOW_S3_ENDPOINT_URL##*:}" >moto.txt 2>&1 &
  servers+=" $!"
  until "$python" -c 'import boto3, os; boto3.client("s3", endpoint_url=os.environ["MLFLOW_S3_ENDPOINT_URL"]).create_bucket(Bucket="lab")' 2>/dev/null; do
    kill -0 $! || { cat moto.txt; exit 1; }
    sleep 0.2
  done
  serve --backend-store-uri "sqlite:///$scratch/s3.db" --no-serve-artifacts --default-artifact-root s3://lab/mlflow
  export TRACKING=$url
  check 'a run on a server whose artifacts are in S3' trained in_s3
  check 'MLflow reads it there' read_back runs/in_s3 "$TRACKING" FINISHED
  export AWS_ACCESS_KEY_ID='' AWS_SECRET_ACCESS_KEY='' AWS_SHARED_CREDENTIALS_FILE=/nowhere AWS_EC2_METADATA_DISABLED=true
  check 'a run without credentials goes on' tycho run tiny.lua run_name=no_keys max_duration=50ba
fi
echo "$passed passed, $failed failed" | tee "${TYCHO_RESULT:-/dev/null}"
((failed == 0))
