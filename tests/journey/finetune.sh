#!/usr/bin/env bash
# Pretraining, finetuning on a task that can be learnt, adapters, export, and answers: the share of right ones rises from that of
# a guess.
set -euo pipefail
root=$(realpath "${TYCHO_SOURCE_DIR:-$(dirname "$0")/../..}")
export PATH=${TYCHO_BUILD:-$root/build/cpu}/bin:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "finetune: $1"; [[ ! -e out ]] || tail -30 out; exit 1; }
step() { "$@" >out 2>&1 || fail "$* ended with $?"; }

# The task: which letter comes next. Numbers that mean nothing stand before the question; those of the test are not in the training.
rows() { # FIRST LAST: for each number a question about each letter
  for n in $(seq "$1" "$2"); do
    for i in $(seq 0 25); do
      printf '{"prompt": "item %d: after %s comes", "response": " %s"}\n' "$n" "${letters:i:1}" "${letters:(i + 1) % 26:1}"
    done
  done
}
letters=abcdefghijklmnopqrstuvwxyz
mkdir data
rows 10 69 >data/train.jsonl
rows 77 78 >data/test.jsonl
"$root/tests/make_text" 1 1200 >text.txt
{ cat text.txt; sed 's/.*"prompt": "\([^"]*\)".*/\1/' data/train.jsonl; for i in $(seq 0 25); do printf ' %s' "${letters:i:1}"; done; } >words.txt

step tycho tokenizer train words.txt --vocab-size 512 --out data/tokenizer.json
step tycho data convert text.txt --tokenizer data/tokenizer.json --concat-tokens 64 --eos-text '<|endoftext|>' --out data
cat >base.lua <<'END'
local t = require "tycho"
local r = t.recipe "base"
r.model = t.model.mpt { layers = 2, width = 64, heads = 2, vocab_size = 512, max_seq_len = 64, positions = "alibi" }
r.tokenizer, r.train_data = "data/tokenizer.json", t.data.mds { local_dir = "data" }
r.seq_len, r.global_batch, r.max_duration = 64, "8sp", "200ba"
r.optimizer, r.log.every = t.optim.adamw { lr = 3e-3 }, "20ba"
return r
END
cat >tuned.lua <<'END'
local t = require "tycho"
local r = t.recipe "tuned"
r.model, r.tokenizer = t.model.hf { path = "base-hf" }, "data/tokenizer.json"
r.seq_len, r.global_batch, r.max_duration = 64, "8sp", "30ep"
r.train_data, r.eval_data.test = t.data.chat { path = "data/train.jsonl", pack = true }, t.data.chat { path = "data/test.jsonl" }
r.eval, r.ckpt.every, r.log.every = { every = "15ep", first = true }, "0.5dur", "20ba"
r.optimizer, r.scheduler = t.optim.adamw { lr = 4e-3 }, t.sched.linear {}
return r
END
step tycho run base.lua
step tycho convert runs/base base-hf
step tycho run tuned.lua
step tycho run tuned.lua run_name=adapters lora.rank=16 lora.alpha=32 optimizer.lr=3e-3 max_duration=40ep ema.half_life=20ba

# right MODEL [OPTION...]: how many of the 52 questions of the test it answers; a letter may be two tokens, the blank and itself.
sed 's/, "response".*/}/' data/test.jsonl >questions.jsonl
right() {
  tycho generate "$@" --prompts questions.jsonl --max-tokens 2 -t 0 --json >answers.json 2>err.txt || { cat err.txt; fail "generate $1"; }
  local wanted given n=0
  while read -r wanted && read -r given <&3; do [[ $wanted == "$given" ]] && n=$((n + 1)); done \
    < <(sed 's/.*"response": " \(.\)".*/\1/' data/test.jsonl) 3< <(grep -o '"text": *"[^"]*"' answers.json | sed 's/.*: *" *\([^"]\{0,1\}\).*/\1/')
  echo $n
}
before=$(right runs/base) after=$(right runs/tuned) adapters=$(right runs/adapters) without=$(right runs/adapters --without-adapters)
step tycho convert runs/tuned tuned-hf
# The run and its export answer alike in a conversation; the first answer is generate's.
talk() { printf 'item 77: after c comes\nitem 78: after f comes\n' | tycho chat "$1" --template none -t 0 -n 2 2>/dev/null; }
talk runs/tuned >talk.txt || fail "chat ended with $?"
talk tuned-hf | cmp - talk.txt || fail "the export talks otherwise than the run"
[[ $(head -1 talk.txt) == "$(tycho generate runs/tuned -p 'item 77: after c comes' -n 2 -t 0 | sed 's/.*comes//')" ]] || fail "chat answers otherwise than generate"
step tycho convert tuned-hf runs/again
exported=$(right runs/again)
step tycho convert runs/adapters merged-hf --merge
step tycho convert merged-hf runs/merged
merged=$(right runs/merged)
step tycho convert runs/adapters averaged-hf --merge --ema
step tycho convert averaged-hf runs/averaged
average=$(right runs/adapters --ema) averaged=$(right runs/averaged)
step tycho convert runs/adapters adapters-peft
step tycho convert runs/adapters averaged-peft --ema
echo "finetune: of 52 questions, right before $before, after $after, from the export $exported; with adapters $adapters, without them $without, merged $merged; with their average $average, merged $averaged"
# A guess is right twice in 52.
((before <= 8)) || fail "the base model knows the task already"
((after >= 40)) || fail "finetuning did not teach the task"
((adapters >= 30)) || fail "adapters did not learn the task"
((exported == after)) || fail "the export answers otherwise than the run"
((merged == adapters)) || fail "the merged model answers otherwise than the run with adapters"
((averaged == average && average >= 30)) || fail "the merged average answers otherwise than the run's, or did not learn the task"
! cmp -s adapters-peft/adapter_model.safetensors averaged-peft/adapter_model.safetensors || fail "the average of the adapters is what was trained"
cmp adapters-peft/adapter_config.json averaged-peft/adapter_config.json || fail "the average has another adapter_config.json"
((without == before)) || fail "without its adapters the model is not the base"
