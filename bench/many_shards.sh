#!/usr/bin/env bash
# What a data set of many shards costs: processor time of `tycho check` and of a run of two steps, five of each, with each of the
# programs in turns, for one shard to 300,000.
#   bench/many_shards.sh [TYCHO ...]
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
counts="1 75000 150000 300000"
programs=("${@:-build/cpu/bin/tycho}")
for i in "${!programs[@]}"; do programs[i]=$(realpath "${programs[i]}"); done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
seq 20000 >text.txt
"${programs[0]}" tokenizer train text.txt --vocab-size 400 --out tokenizer.json >/dev/null 2>&1
"${programs[0]}" data convert text.txt --tokenizer tokenizer.json --concat-tokens 64 --out one >/dev/null 2>&1
# The same shard as often as it takes: an entry of index.json is read as one of its own.
entry=$(tr -d '\n' <one/train/index.json | sed 's/^{"shards": *\[//; s/\], *"version": *2 *}$//; s/^ *//')
for shards in $counts; do
  mkdir -p "shards_$shards/train"
  ln one/train/shard.00000.mds "shards_$shards/train/"
  {
    printf '{"shards": [%s' "$entry"
    yes ", $entry" | head -n $((shards - 1)) | tr -d '\n'
    printf '], "version": 2}'
  } >"shards_$shards/train/index.json"
  cat >"$shards.lua" <<END
local t = require "tycho"
local r = t.recipe "shards"
r.model = t.model.llama { width = 64, layers = 2, heads = 4, kv_heads = 2, ffn_width = 128, vocab_size = 512, tied = true }
r.seq_len, r.global_batch, r.max_duration, r.threads = 64, "4sp", "2ba", 1
r.optimizer = t.optim.adamw { lr = 3e-3, weight_decay = 0.1 }
r.train_data = t.data.mds { local_dir = "shards_$shards" }
return r
END
done
grep -m1 'model name' /proc/cpuinfo | sed 's/.*: //'
stat -c '%s' shards_300000/train/index.json | awk '{ printf "index.json of 300,000 shards: %.0f MB\n", $1 / 1e6 }'
TIMEFORMAT='%U %S'
commands=()
for shards in $counts; do commands+=("check $shards.lua"); done
for shards in $counts; do commands+=("run $shards.lua --plain"); done
for command in "${commands[@]}"; do
  for round in 1 2 3 4 5; do
    for i in "${!programs[@]}"; do
      rm -rf runs
      { time "${programs[i]}" $command >/dev/null 2>said || { cat said; exit 1; }; } 2>&1 | awk -v program="$((i + 1))" '{ print program, $1 + $2 }'
    done
  done | sort -n | awk -v what="$command" '{ t[$1, ++count[$1]] = $2 }
    END { for (p = 1; (p, 1) in t; ++p) printf "program %d  %-24s median %.2f s of CPU, %.2f to %.2f\n", p, what, t[p, int((count[p] + 1) / 2)], t[p, 1], t[p, count[p]] }'
done
