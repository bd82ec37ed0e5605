#!/usr/bin/env bash
# The journey of a user: a base recipe and a short one over it, its model out to Hugging Face's format, finetuned
# with a schedule and a guard of one's own, and a sweep by three methods.
set -euo pipefail
root=$(realpath "${TYCHO_SOURCE_DIR:-$(dirname "$0")/../..}")
tycho=${TYCHO_BUILD:-$root/build/cpu}/bin/tycho
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$root/tests/journey/." "$work"
cd "$work"
fail() { echo "journey: $1"; [[ ! -e out ]] || cat out; exit 1; }
step() { "$@" >out 2>&1 || fail "$* ended with $?"; }
wants() { grep -qF -- "$1" "$2" || { cat "$2" | tail -40; fail "wanted \"$1\" in $2"; }; }

"$root/tests/make_text" 1 1200 >train.txt
"$root/tests/make_text" 2 40 >val.txt
step "$tycho" tokenizer train train.txt --vocab-size 1024 --out data/tokenizer.json
step "$tycho" data convert train.txt --tokenizer data/tokenizer.json --concat-tokens 64 --eos-text '<|endoftext|>' --out data
step "$tycho" data convert val.txt --tokenizer data/tokenizer.json --concat-tokens 64 --eos-text '<|endoftext|>' --split val --out data

# One argument changes all that depends on it: the factor applies to what the recipe writes, and the name follows.
step "$tycho" config mpt-small.lua seq_len=128 'optimizer.lr*=0.5'
wants 'mpt-small-lr0.003' out
step "$tycho" config mpt-small.lua seq_len=128 model.max_seq_len
wants 128 out
if "$tycho" check mpt-small.lua max_duration=2000ba >out 2>&1; then fail "the rule of the recipe did not hold"; fi
wants 'is max_duration right?' out

step "$tycho" run mpt-small.lua
run=runs/mpt-small-lr0.006
ls "$run"/profile/*.pt.trace.json >out || fail "no trace"
wants 'evaluated on c4' "$run/events.jsonl"
step "$tycho" convert "$run" hf

# Finetuning: each instruction quotes the first words of a sentence, the answer is the sentence.
"$root/tests/make_text" 3 40 | sed -n 's/^\([^.]*\.\).*/\1/p' | while read -r sentence; do
  printf '{"messages": [{"role": "user", "content": "How does \\"%s\\" go on?"}, {"role": "assistant", "content": "%s"}]}\n' \
    "$(cut -d ' ' -f 1-3 <<<"$sentence")" "$sentence"
done >sft.jsonl
head -n 4 sft.jsonl >dev.jsonl
step "$tycho" run sft.lua
for kind in '"eval"' best; do wants "$kind" runs/sft/events.jsonl; done
first=$(grep '"kind":"eval"' runs/sft/events.jsonl | head -n 1 | sed 's/.*"loss":\([0-9.]*\).*/\1/')
last=$(grep '"kind":"eval"' runs/sft/events.jsonl | tail -n 1 | sed 's/.*"loss":\([0-9.]*\).*/\1/')
awk -v a="$first" -v b="$last" 'BEGIN { exit !(b < a) }' || fail "the loss went from $first to $last"

for method in asha random grid; do
  step "$tycho" sweep lr-sweep.lua method=$method --name "by-$method" --workers 1  # here, where a cluster's sbatch is too
  step "$tycho" sweep table "by-$method"
  wants 'eval.c4.loss' out
  step "$tycho" sweep best "by-$method"
done
echo "journey: a base recipe, a model in and out, finetuning and three sweeps"
