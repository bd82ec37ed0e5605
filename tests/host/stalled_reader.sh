#!/bin/bash
# What prints goes on when nothing reads: a run, two ranks, a sweep and what follows a run, before a pipe that is full.
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
r.seq_len, r.global_batch, r.max_duration, r.threads = 16, "2sp", "40ba", 1
r.train_data, r.eval_data.val = t.data.mds { local_dir = "data" }, t.data.mds { local_dir = "data" }
r.eval = { every = "20ba", batches = 4 }
r.optimizer = t.optim.adamw { lr = 1e-3 }
r.ckpt, r.log.every = { every = "20ba", keep = 0 }, "1ba"
return r
END
cat >sweep.lua <<'END'
local t = require "tycho"
local s = t.sweep "s"
s.recipe, s.metric.name, s.search = "tiny.lua", "loss", t.search.grid()
s.space["optimizer.lr"] = t.space.choice { 1e-3, 1e-2 }
return s
END
passed=0 failed=0
check() { if "${@:2}"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $1"; fi; }

# A pipe that nobody reads and that takes not a byte more; this shell keeps it open.
mkfifo full
exec 9<>full
for size in 4096 1; do dd if=/dev/zero of=full bs=$size oflag=nonblock status=none 2>/dev/null || true; done
code_of() { local status=0; timeout -k 5 300 "$@" >&9 2>&9 || status=$?; echo $status; }
steps() { grep -c ' step=[0-9]' "$1/log.txt"; }

check 'a run ends' test "$(code_of tycho run tiny.lua run_dir=one)" = 0
check 'with every step in log.txt' test "$(steps one)" = 40
check 'two ranks end' test "$(code_of tycho launch -n 2 run tiny.lua run_dir=two)" = 0
check 'with every step in log.txt' test "$(steps two)" = 40
check 'an evaluation of every checkpoint ends' test "$(code_of tycho eval one --follow)" = 0
check 'with all its numbers' test "$(wc -l <one/evals.jsonl)" = 2
check 'a sweep ends' test "$(code_of tycho sweep sweep.lua)" = 0
check 'with all its trials' test "$(tycho sweep table s --json | grep -c '"finished"')" = 2

# A signal is taken while nothing reads, by what trains and by what only prints.
cpu_time() { awk '{ print $14 + $15 }' "/proc/$1/stat" 2>/dev/null; }
rests() { local before; before=$(cpu_time "$1"); sleep 1; [[ $before == "$(cpu_time "$1")" ]]; }
has_lines() { [[ -s $2 ]]; }
stopped() {  # CONDITION [FILE] -- COMMAND...: SIGTERM when the condition holds, of the process and the file
  local condition=() status=0
  while [[ $1 != -- ]]; do condition+=("$1"); shift; done
  shift
  "$@" >&9 2>&9 & local pid=$!
  for ((i = 0; i < 1200; ++i)); do
    if "${condition[0]}" $pid "${condition[@]:1}"; then break; fi
    sleep 0.1
  done
  kill -TERM $pid
  wait $pid || status=$?
  [[ $status == 143 ]] || { echo "ended with $status"; return 1; }
}
check 'SIGTERM stops a run' stopped has_lines long/metrics.jsonl -- tycho run tiny.lua run_dir=long max_duration=1000000ba
check 'which saved' test -n "$(ls long/checkpoints/*/COMMIT)"
check 'SIGTERM stops two ranks' stopped has_lines longer/metrics.jsonl -- tycho launch -n 2 run tiny.lua run_dir=longer max_duration=1000000ba
check 'which saved' test -n "$(ls longer/checkpoints/*/COMMIT)"
check 'SIGTERM ends an answer that nobody reads' stopped rests -- tycho config
check 'SIGTERM ends a text that nobody reads' stopped rests -- tycho generate one --prompt a --ignore-eos --max-tokens 4

# Every other verb does its work before such a pipe, and ends by itself or, when it only waits for its reader, by SIGTERM.
ends() {  # FILE COMMAND...: FILE is what the verb writes, or a file that is there
  local file=$1 status=0; shift
  "$@" >&9 2>&9 <"${input:-/dev/null}" & local pid=$!
  for ((i = 0; i < 1200; ++i)); do
    if [[ ! -d /proc/$pid/fd ]] || { [[ -e $file ]] && rests $pid; }; then break; fi
    sleep 0.1
  done
  kill -TERM $pid 2>/dev/null || true
  for ((i = 0; i < 100; ++i)); do [[ -d /proc/$pid/fd ]] || break; sleep 0.1; done
  if [[ -d /proc/$pid/fd ]]; then echo "SIGTERM does not end: $*"; kill -KILL $pid; fi
  wait $pid || status=$?
  [[ -e $file && ($status == 0 || $status == 143) ]] || { echo "ended with $status: $*"; return 1; }
}
seq 2000 >numbers.txt
check 'tokenizer train' ends made.json tycho tokenizer train numbers.txt --vocab-size 300 --out made.json
check 'tokenizer encode' ends made.json tycho tokenizer encode made.json "$(cat numbers.txt)"
check 'data convert' ends converted/train/index.json tycho data convert numbers.txt --tokenizer made.json --concat-tokens 16 --out converted
check 'data verify' ends made.json tycho data verify converted/train
check 'convert' ends hf/config.json tycho convert one hf
check 'convert back' ends back tycho convert hf back
check 'ckpt ls' ends one/log.txt tycho ckpt ls one
check 'ckpt verify' ends one/log.txt tycho ckpt verify one
check 'report' ends one/log.txt tycho report one two
check 'report --json' ends one/log.txt tycho report one two --json
check 'sweep ls' ends one/log.txt tycho sweep ls
check 'sweep table' ends one/log.txt tycho sweep table s
check 'ls' ends one/log.txt tycho ls .
check 'config' ends one/log.txt tycho config tiny.lua
check 'help' ends one/log.txt tycho help keys
yes hello | head -n 200 >messages.txt || true
input=messages.txt check 'chat' ends one/log.txt tycho chat one --max-tokens 4
refused() { local status; status=$(code_of "${@:2}"); [[ $status == "$1" ]] || { echo "ended with $status: ${*:2}"; return 1; }; }
check 'log sync' refused 12 tycho log sync one
# An address where nothing listens is tried for 40 s: SIGTERM ends the wait.
a_while() { sleep 2; }
check 'fetch' stopped a_while -- env HF_ENDPOINT=http://127.0.0.1:1 HF_HOME="$scratch/cache" tycho fetch hf://someone/model
tycho run tiny.lua run_dir=live max_duration=1000000ba >&9 2>&9 & live=$!
for ((i = 0; i < 1200; ++i)); do [[ -s live/metrics.jsonl ]] && break; sleep 0.1; done
check 'attach' ends live/metrics.jsonl tycho attach live -e ctx.loss -e 'string.rep("x", 100000)'
check 'ctl plot' ends live/metrics.jsonl tycho ctl live plot loss
kill -TERM $live
wait $live || true

echo "$passed passed, $failed failed" | tee "${TYCHO_RESULT:-/dev/null}"
((failed == 0))
