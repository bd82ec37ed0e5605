#!/bin/bash
# Trains under kill -9: no committed checkpoint may be lost, and the weights at the end must equal those of an undisturbed
# run bit for bit. A run that reaches its end is started afresh until enough kills have been dealt.
#   run_kill9.sh TYCHO [TRIALS]        200 trials take about five minutes
set -eum   # with job control: a job that has ended cannot be signalled, whoever has its number now
tycho=$(realpath "$1") trials=${2:-200}
here=$(dirname "$(realpath "$0")")
work=$(mktemp -d "${TMPDIR:-/tmp}/tycho-kill9-XXXXXX")
cd "$work"
"$tycho" tokenizer train "$here/../../trainer" --ext .h,.cpp --vocab-size 512 --out data/tokenizer.json >/dev/null
"$tycho" data convert "$here/../../trainer" --ext .h,.cpp --tokenizer data/tokenizer.json --concat-tokens 64 --eos-text '<|endoftext|>' --out data >/dev/null
# --force: several kills in a row before anything was saved are meant here.
train() { exec "$tycho" run "$here/tiny.lua" run_dir="$work/$1" threads=1 --force; }
(train undisturbed) >undisturbed.log

final_shard() { ls -d "$work/$1"/checkpoints/step-000000600.*/rank-00000.safetensors 2>/dev/null || true; }
killed=0 finished=0
while ((killed < trials || finished == 0)); do
  train victim >victim.log 2>&1 &
  pid=$!
  # From before the first instruction of training to well into it.
  ((killed < trials)) && { sleep "0.$((RANDOM % 9))$((RANDOM % 10))"; sleep "$((RANDOM % 2))"; kill -9 %% 2>/dev/null || true; }
  status=0
  wait "$pid" 2>/dev/null || status=$?
  if ((status == 137)); then
    killed=$((killed + 1))
    if compgen -G "$work/victim/checkpoints/step-*/COMMIT" >/dev/null; then
      "$tycho" ckpt verify "$work/victim" >verify.log || { echo "kill9: kill $killed lost a checkpoint"; cat verify.log; exit 1; }
    fi
  elif ((status != 0)); then
    echo "kill9: the run failed by itself with status $status"; tail -5 victim.log; exit 1
  fi
  if [[ -n $(final_shard victim) ]]; then
    cmp "$(final_shard undisturbed)" "$(final_shard victim)" || { echo "kill9: final weights differ, see $work"; exit 1; }
    finished=$((finished + 1))
    rm -rf "$work/victim"
  fi
done
echo "kill9: $killed kills, $finished runs came to the same bits as the undisturbed one"
rm -rf "$work"
