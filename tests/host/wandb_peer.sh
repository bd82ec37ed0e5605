#!/bin/bash
# Runs of W&B against a small server of our own: offline ones, killed and resumed, which `wandb sync` uploads; and one online, killed and
# resumed, which wandb.Api reads back beside a run that the official client has sent. Passed with wandb 0.31.0 on 28 November 2026.
# Skipped unless TYCHO_WANDB_PYTHON names a Python with wandb; TYCHO_WANDB_GOLDEN=FILE writes tests/golden/loggers/wandb_calls.json anew:
#   python3 -m venv v && v/bin/pip install wandb==0.31.0 && TYCHO_WANDB_PYTHON=v/bin/python ctest -R wandb_peer
set -euo pipefail
[[ -n ${TYCHO_WANDB_PYTHON:-} ]] || { echo "skipped: TYCHO_WANDB_PYTHON names no Python with wandb"; exit 77; }
root=$(realpath "${TYCHO_SOURCE_DIR:-$(dirname "$0")/../..}")
python=$(realpath -s "$TYCHO_WANDB_PYTHON")
wandb=$(dirname "$python")/wandb
export PATH=${TYCHO_BUILD:-$root/build/cpu}/bin:$PATH
scratch=$(mktemp -d)
cd "$scratch"
trap 'kill -- $(jobs -p) 2>/dev/null || true; rm -rf "$scratch"' EXIT
unset "${!WANDB_@}"
port=$((20000 + RANDOM % 12000))
export no_proxy=127.0.0.1 NO_PROXY=127.0.0.1 HOME=$scratch
export WANDB_BASE_URL=http://127.0.0.1:$port WANDB_API_KEY=0123456789012345678901234567890123456789 WANDB__SERVICE_WAIT=300 WANDB_ERROR_REPORTING=false

seq 2000 >a.txt
tycho tokenizer train a.txt --vocab-size 260 --out tok.json >/dev/null
tycho data convert a.txt --tokenizer tok.json --no-separator --concat-tokens 16 --out data >/dev/null
cat >tiny.lua <<'LUA'
local t = require "tycho"
local r = t.recipe "tiny"
r.model, r.tokenizer = t.model.llama { layers = 1, width = 16, heads = 2, ffn_width = 32, vocab_size = 512 }, "tok.json"
r.seq_len, r.global_batch, r.max_duration = 16, "2sp", "400ba"
r.train_data = t.data.mds { local_dir = "data" }
r.optimizer = t.optim.adamw { lr = 1e-3 }
r.ckpt, r.log.loss_by_position = { every = "50ba" }, "40ba"
r.log.sinks = { t.log.jsonl {}, t.log.wandb { project = "words", group = "g", tags = { "a", "small" } } }
r.icl = { outputs = true, tasks = { { label = "words", path = "words.jsonl", type = "language_modeling" } } }
return r
LUA
printf '{"context": "1 2", "continuation": "3"}\n{"context": "7 8", "continuation": "9"}\n' >words.jsonl
"$python" "$root/tests/golden/loggers/wandb_server.py" $port state.json transcript.jsonl >server.txt 2>&1 &

passed=0 failed=0
check() { if "${@:2}"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $1"; fi; }
# Versions before 0.2x send a second attempt in place of the first one unless they are told to append.
options=()
! "$wandb" sync --help | grep -q -- --append || options=(--append)
upload() { "$wandb" sync "${options[@]}" "$@" >sync.txt 2>&1 || { cat sync.txt; return 1; }; }
read_back() { "$python" "$root/tests/golden/loggers/read_wandb.py" "$@" state.json "$num_attempts"; }

num_attempts=1
check 'a run in one attempt' tycho run tiny.lua run_name=plain max_duration=80ba >plain.txt
check 'is uploaded' upload runs/plain/wandb/offline-run-*
check 'completely' read_back runs/plain

num_attempts=3
for stop in 130 270; do
  tycho run tiny.lua run_name=killed max_duration=100000ba >first.txt 2>&1 &
  victim=$!
  until [[ -s runs/killed/metrics.jsonl ]] && (($(wc -l <runs/killed/metrics.jsonl) > stop)); do
    kill -0 $victim || { cat first.txt; exit 1; }
    sleep 0.05
  done
  kill -9 $victim
  wait $victim 2>/dev/null || true
done
check 'a run that was killed twice' tycho run tiny.lua run_name=killed max_duration=$(($(wc -l <runs/killed/metrics.jsonl) + 100))ba >again.txt
check 'is uploaded, too' upload runs/killed/wandb/offline-run-*
check 'every step once' read_back runs/killed

judge() { "$python" "$root/tests/golden/loggers/judge_wandb.py" "$@" >judge.txt 2>&1 || { cat judge.txt; return 1; }; }
known() { "$python" -c 'import json; unknown = json.load(open("state.json"))["unknown"]; assert not unknown, unknown'; }
# Versions without x_... settings of 0.31 are judged by `wandb sync` alone.
if "$python" -c 'import sys, wandb; sys.exit(tuple(map(int, wandb.__version__.split(".")[:2])) < (0, 31))'; then
  online=(run_name=online 'log.sinks=[log.jsonl{},log.wandb{project=words,mode=online}]' '+callbacks.shapes=cb.histograms{every=20ba}')
  tycho run tiny.lua "${online[@]}" max_duration=100000ba >online.txt 2>&1 &
  victim=$!
  until [[ -s runs/online/metrics.jsonl ]] && (($(wc -l <runs/online/metrics.jsonl) > 150)); do
    kill -0 $victim || { cat online.txt; exit 1; }
    sleep 0.05
  done
  kill -9 $victim
  wait $victim 2>/dev/null || true
  check 'an online run that was killed' tycho run tiny.lua "${online[@]}" max_duration=$(($(wc -l <runs/online/metrics.jsonl) + 100))ba >online.txt
  check 'what a busy machine kept from being sent' tycho log sync runs/online >sync.txt
  ! judge send kill
  check 'the official client, resumed' judge send
  check 'wandb.Api reads both' judge read runs/online
  cat judge.txt
  [[ -z ${TYCHO_WANDB_GOLDEN:-} ]] || check 'the golden' judge golden runs/online transcript.jsonl "$TYCHO_WANDB_GOLDEN"
fi
check 'no call was unknown' known
echo "$passed passed, $failed failed" | tee "${TYCHO_RESULT:-/dev/null}"
((failed == 0))
