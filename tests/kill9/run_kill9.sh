#!/bin/bash
# Trains under kill -9: no committed checkpoint may be lost, and at the end weights, their average and the optimizer's state must
# equal those of an undisturbed run bit for bit. A run that reaches its end is started afresh until enough kills have been dealt.
#   run_kill9.sh TYCHO [TRIALS [RANKS]]        200 trials of one rank take about five minutes
# Several ranks own a shard each (dp_shard); a kill hits one of them, or all of them and their launcher.
set -eum   # with job control: a job that has ended cannot be signalled, whoever has its number now
tycho=$(realpath "$1") trials=${2:-200} ranks=${3:-1}
here=$(dirname "$(realpath "$0")")
work=$(mktemp -d "${TMPDIR:-/tmp}/tycho-kill9-XXXXXX")
cd "$work"
"$tycho" tokenizer train "$here/../../trainer" --ext .h,.cpp --vocab-size 512 --out data/tokenizer.json >/dev/null
"$tycho" data convert "$here/../../trainer" --ext .h,.cpp --tokenizer data/tokenizer.json --concat-tokens 64 --eos-text '<|endoftext|>' --out data >/dev/null
launch=() && ((ranks == 1)) || launch=(launch -n "$ranks")
# --force: several kills in a row before anything was saved are meant here.
train() { exec "$tycho" "${launch[@]}" run "$here/tiny.lua" run_dir="$work/$1" threads=1 parallel.dp_shard="$ranks" --force; }
(train undisturbed) >undisturbed.log

shards() { ls "$work/$1"/checkpoints/step-000000600.*/rank-*.safetensors 2>/dev/null || true; }
mapfile -t wanted < <(shards undisturbed)
((${#wanted[@]} == ranks)) || { echo "kill9: ${#wanted[@]} shards of $ranks ranks, see $work"; exit 1; }
for shard in "${wanted[@]}"; do
  grep -aq '"ema.model.layers' "$shard" || { echo "kill9: no average of the weights is in $shard"; exit 1; }
done

strike() { # PID: that of the run or of its launcher, which is the newest job
  local victims=()
  ((ranks == 1)) || read -ra victims 2>/dev/null <"/proc/$1/task/$1/children" || true
  if ((${#victims[@]} > 0 && RANDOM % 2)); then
    kill -9 "${victims[RANDOM % ${#victims[@]}]}" 2>/dev/null || true
  else
    kill -9 %% 2>/dev/null || true
  fi
}
# Saves that were not finished: folders without COMMIT.
unfinished() { for folder in "$work"/victim/checkpoints/step-*; do [[ ! -d $folder || -e $folder/COMMIT ]] || echo "$folder"; done; }

killed=0 saving=0 finished=0
while ((killed < trials || finished == 0)); do
  before=$(unfinished)
  train victim >victim.log 2>&1 &
  pid=$!
  # From before the first instruction of training to well into it.
  ((killed < trials)) && { sleep "0.$((RANDOM % 9))$((RANDOM % 10))"; sleep "$((RANDOM % 2))"; strike "$pid"; }
  status=0
  wait "$pid" 2>/dev/null || status=$?
  if ((status == 137)); then
    killed=$((killed + 1))
    [[ -z $(comm -13 <(echo "$before") <(unfinished)) ]] || saving=$((saving + 1))
    if compgen -G "$work/victim/checkpoints/step-*/COMMIT" >/dev/null; then
      "$tycho" ckpt verify "$work/victim" >verify.log || { echo "kill9: kill $killed lost a checkpoint"; cat verify.log; exit 1; }
    fi
  elif ((status != 0)); then
    echo "kill9: the run failed by itself with status $status"; tail -5 victim.log; exit 1
  fi
  mapfile -t given < <(shards victim)
  if ((${#given[@]} > 0)); then
    for ((i = 0; i < ranks; ++i)); do cmp "${wanted[i]}" "${given[i]}" || { echo "kill9: what was trained differs, see $work"; exit 1; }; done
    finished=$((finished + 1))
    rm -rf "$work/victim"
  fi
done
echo "kill9: $killed kills, $saving of them during a save; $finished runs came to the same bits as the undisturbed one"
rm -rf "$work"
