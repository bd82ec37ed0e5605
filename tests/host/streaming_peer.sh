#!/bin/bash
# Data sets between Tycho and the real mosaicml-streaming, both ways. Skipped unless TYCHO_STREAMING_PYTHON names a Python with it:
#   python3 -m venv v && v/bin/pip install mosaicml-streaming==0.13.0 && TYCHO_STREAMING_PYTHON=v/bin/python ctest -R streaming_peer
set -euo pipefail
[[ -n ${TYCHO_STREAMING_PYTHON:-} ]] || { echo "skipped: TYCHO_STREAMING_PYTHON names no Python with mosaicml-streaming"; exit 77; }
root=$(realpath "${TYCHO_SOURCE_DIR:-$(dirname "$0")/../..}")
export PATH=${TYCHO_BUILD:-$root/build/cpu}/bin:$PATH
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
peer() { "$TYCHO_STREAMING_PYTHON" "$root/tests/golden/streaming_peer.py" "$@"; }

seq 3000 >a.txt
tycho tokenizer train a.txt --vocab-size 300 --out tok.json >/dev/null
convert() { tycho data convert a.txt --tokenizer tok.json --no-separator --concat-tokens 16 --out "$@" >/dev/null; }
convert ours --hashes sha1,xxh64
rm ours/tokenizer.json

passed=0 failed=0
check() { if "${@:2}" >out.txt 2>&1; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $1"; cat out.txt; fi; }
they_read() { peer read "$1" | cmp - wanted; }
they_read_twice() { cat wanted wanted >twice && peer read "$1" | cmp - twice; }
we_read() { tycho data verify "$1" && tycho data sample "$1" --number 1000000 --json | peer tokens | cmp - wanted; }
we_train_on() {
  cat >recipe.lua <<EOF
local t = require "tycho"
local r = t.recipe "peer"
r.seq_len, r.global_batch, r.max_duration = 16, "8sp", "2ba"
r.model = t.model.llama { width = 32, layers = 1, heads = 2, ffn_width = 32, vocab_size = 512, max_seq_len = 16 }
r.optimizer = t.optim.adamw { lr = 1e-3 }
r.train_data = t.data.mds { remote = "$1", local_dir = "cache-$2", split = "" }
return r
EOF
  tycho bench data recipe.lua && ! ls "cache-$2"/*."$2" 2>/dev/null
}

tycho data sample ours/train --number 1000000 --json | peer tokens >wanted
check 'they read ours' they_read ours/train
for kind in zstd zstd:9 gz gz:1 br br:5 bz2 bz2:1 snappy; do
  name=${kind%%:*}-${kind##*:}
  convert "ours-$name" --hashes sha1,xxh64 --compression "$kind"
  check "they read ours, $kind" they_read "ours-$name/train"
  check "they write $kind" peer write "theirs-$name" "$kind" wanted
  check "we read theirs, $kind" we_read "theirs-$name"
  check "we fetch theirs, $kind" we_train_on "$PWD/theirs-$name" "${kind%%:*}"
  rm -rf cache-*
done
we_show() { tycho data verify "$1" && tycho data sample "$1" --number 1000000 --json | peer values | cmp - <(peer show "$1"); }
for kind in json json:zstd json:snappy xsv csv csv:br tsv tsv:gz; do
  format=${kind%%:*} compression=${kind#"$format"}
  check "they write $kind" peer write_lines "lines-$format${compression/:/-}" "$format" "${compression#:}" wanted
  check "we read their $kind" we_show "lines-$format${compression/:/-}"
done
mkdir texts && cp -r lines-json texts/one && cp -r lines-tsv-gz texts/two
check 'we merge shards of text' tycho data merge texts
check 'we read them merged as they do' we_show texts
cat >talks.jsonl <<'EOF'
{"messages": [{"role": "system", "content": ""}, {"role": "user", "content": "größe \"1\"\n\t"}, {"role": "assistant", "content": "модель \u007f 🚀"}]}
{"messages": [{"role": "user", "content": "12"}, {"role": "assistant", "content": "34"}]}
EOF
cat >pairs.jsonl <<'EOF'
{"prompt": "größe", "response": "34"}
{"prompt": "12", "response": " 🚀"}
EOF
they_write_the_same() {
  tycho data convert "$1.jsonl" --chat --hashes sha1,xxh64 --out "chat-$1" && peer write-rows "peer-$1" "$1.jsonl" &&
    cmp "chat-$1/train/shard.00000.mds" "peer-$1/shard.00000.mds" && cmp "chat-$1/train/index.json" "peer-$1/index.json"
}
they_read_tokens() {
  tycho data convert pairs.jsonl --chat --tokenizer tok.json --out chat-tokens && peer rows chat-tokens/train turns >turns &&
    [[ $(wc -l <turns) == 2 && $(head -1 turns) == '[{"input_ids": ['* ]]
}
check 'they write conversations as we do' they_write_the_same talks
check 'they write prompts with responses as we do' they_write_the_same pairs
check 'they read our tokens of prompts and responses' they_read_tokens
mkdir all && cp -r ours/train all/one && cp -r theirs-zstd-zstd all/two
check 'we merge' tycho data merge all
check 'they read what we merged' they_read_twice all
echo "$passed passed, $failed failed" | tee "${TYCHO_RESULT:-/dev/null}"
((failed == 0))
