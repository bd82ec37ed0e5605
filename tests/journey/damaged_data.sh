#!/usr/bin/env bash
# One flipped byte in data of every format, met by a run: training, evaluation, a remote folder, two ranks, and the probe of a
# plan. Each ends with 12 and the file's name, as `data verify` does; none with a signal.
set -euo pipefail
root=$(realpath "${TYCHO_SOURCE_DIR:-$(dirname "$0")/../..}")
export PATH=${TYCHO_BUILD:-$root/build/cpu}/bin:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
passed=0 failed=0
fail() { failed=$((failed + 1)); echo "FAILED: $1"; tail -5 out; }

# flip FILE [BYTE]: changes one byte, by default the middle one.
flip() {
  local at=${2:-$(($(stat -c %s "$1") / 2))} byte
  byte=$(od -An -tu1 -j "$at" -N 1 "$1")
  printf "\\x$(printf %02x $((byte ^ 255)))" | dd of="$1" bs=1 seek="$at" conv=notrunc status=none
}

# as_run COMMAND...: sets `command`, where `run NAME=VALUE` stands for a run with this variable.
as_run() {
  command=("$@")
  [[ $1 != run ]] || command=(env "${@:2}" tycho run tiny.lua run_dir=run threads=1)
}

# refused FILE WHAT COMMAND...: the command ends with 12 and names the file.
refused() {
  local file=$1 what=$2 status=0; shift 2
  as_run "$@"; set -- "${command[@]}"
  timeout 240 "$@" >out 2>&1 </dev/null || status=$?
  if ((status == 12)) && grep -qF "$file" out; then
    passed=$((passed + 1))
  else
    fail "$what: ended with $status, expected 12 and the name $file"
  fi
}

"$root/tests/make_text" 1 400 >text.txt
tycho tokenizer train text.txt --vocab-size 384 --out tokenizer.json >out
cat >tiny.lua <<'END'
local t = require "tycho"
local r = t.recipe "tiny"
r.model, r.tokenizer = t.model.llama { layers = 1, width = 16, heads = 2, ffn_width = 32, vocab_size = 384 }, "tokenizer.json"
r.seq_len, r.global_batch, r.max_duration = 16, "2sp", "2ba"
local remote, eval, text = t.env("REMOTE", ""), t.env("EVAL", ""), t.env("TEXT", "")
r.train_data = remote ~= "" and t.data.mds { remote = remote, local_dir = "cache" } or t.data.mds { local_dir = t.env("DATA", "plain") }
if text ~= "" then r.train_data = t.data.text { path = text } end
if t.env("TOKENS", "") ~= "" then r.train_data = t.data.tokens { path = t.env("TOKENS", "") } end
if t.env("CHAT", "") ~= "" then r.train_data = t.data.chat { path = t.env("CHAT", ""), template = "chatml" } end
if eval ~= "" then r.eval_data.val, r.eval = t.data.mds { local_dir = eval }, { every = "1ba" } end
r.optimizer = t.optim.adamw { lr = 1e-3 }
return r
END
convert() { tycho data convert text.txt --tokenizer tokenizer.json --concat-tokens 16 --eos-text '<|endoftext|>' --hashes xxh64 "$@" >out; }

convert --out plain
DATA=plain tycho run tiny.lua run_dir=whole threads=1 >out 2>&1 || { cat out; exit 1; }
for kind in raw zstd gz bz2 br snappy; do
  if [[ $kind == raw ]]; then convert --out $kind; else convert --out $kind --compression $kind; fi
  path=$(find $kind -name 'shard.00000.mds*')
  shard=$(basename "$path")
  flip "$path"
  refused "$shard" "$kind: verify" tycho data verify $kind
  refused "$shard" "$kind: train" run DATA=$kind
  refused "$shard" "$kind: train from a remote folder" run REMOTE=$work/$kind
  refused "$shard" "$kind: evaluate in a run" run EVAL=$kind
  refused "$shard" "$kind: two ranks" env DATA=$kind tycho launch -n 2 run tiny.lua run_dir=run threads=1
  refused "$shard" "$kind: probe" env DATA=$kind tycho plan tiny.lua --probe threads=1
  rm -rf run cache
done

# survives WHAT COMMAND...: a format without checksums may give other text, but nothing ends by a signal.
survives() {
  local what=$1 status=0; shift
  as_run "$@"; set -- "${command[@]}"
  timeout 240 "$@" >out 2>&1 </dev/null || status=$?
  if ((status == 0 || status == 12)); then passed=$((passed + 1)); else fail "$what: ended with $status, wanted 0 or 12"; fi
}

# The tokens that a run does not know, and what a header says wrongly.
golden=$root/tests/golden
mkdir tokens
for file in llmc_gpt2.bin megatron_uint16.bin nanoset.ds; do
  cp "$golden/token_files/${file%.*}".* tokens/
  damaged=$file at=0
  case $file in megatron*) damaged=${file%.bin}.idx ;; nanoset*) damaged=$file.metadata ;; esac
  [[ $damaged != *.metadata ]] || at=$(($(grep -abo '|' tokens/$damaged | head -1 | cut -d: -f1) + 1))
  flip tokens/$damaged $at
  refused "$damaged" "$file: train" run TOKENS=tokens/$file
  refused "$damaged" "$file: probe" env TOKENS=tokens/$file tycho plan tiny.lua --probe threads=1
  rm -rf run tokens/*
done

awk '{ gsub(/["\\]/, ""); printf "{\"text\":\"%s\"}\n", $0 }' text.txt | gzip >rows.jsonl.gz
flip rows.jsonl.gz
refused rows.jsonl.gz "gzip text: train" run TEXT=rows.jsonl.gz
refused rows.jsonl.gz "gzip text: two ranks" env TEXT=rows.jsonl.gz tycho launch -n 2 run tiny.lua run_dir=run threads=1
refused rows.jsonl.gz "gzip text: probe" env TEXT=rows.jsonl.gz tycho plan tiny.lua --probe threads=1
for kind in zstd gzip brotli snappy lz4; do
  size=$(stat -c %s "$golden/parquet/$kind.parquet")
  for at in 20 60 $((size / 2)) $((size - 20)) $((size - 5)); do
    cp "$golden/parquet/$kind.parquet" rows.parquet
    flip rows.parquet $at
    survives "$kind Parquet, byte $at" run TEXT=rows.parquet
    rm -rf run
  done
done
printf '{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}\n%.0s' $(seq 50) >chat.jsonl
flip chat.jsonl 0
refused chat.jsonl "chat: train" run CHAT=chat.jsonl

echo "damaged_data: $passed passed, $failed failed" | tee "${TYCHO_RESULT:-/dev/null}"
((failed == 0))
