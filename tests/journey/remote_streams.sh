#!/usr/bin/env bash
# Two mixed streams from a web server through a cache: killed while it trains, resumed on another number of ranks, the losses are
# those of the same data in folders, and nothing of a cut download is left in the cache.
set -euo pipefail
root=$(realpath "${TYCHO_SOURCE_DIR:-$(dirname "$0")/../..}")
export PATH=${TYCHO_BUILD:-$root/build/cpu}/bin:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "remote_streams: $1"; [[ ! -e out ]] || tail -30 out; exit 1; }
step() { "$@" >out 2>&1 || fail "$* ended with $?"; }
export no_proxy=127.0.0.1 NO_PROXY=127.0.0.1

step tycho tokenizer train "$root/docs" --ext .md --vocab-size 512 --out tokenizer.json
# Sums as CSV, whose values have commas.
{ echo 'id,text'; for i in $(seq 900); do echo "$i,\"$i and $i, then 1, are $((2 * i + 1)).\""; done; } | gzip >sums.csv.gz
convert() { step tycho data convert "$@" --tokenizer tokenizer.json --concat-tokens 64 --eos-text '<|endoftext|>' --compression zstd --hashes xxh64; }
convert "$root/docs" --ext .md --out www/docs
convert sums.csv.gz --out www/sums

cat >mixed.lua <<'END'
local t = require "tycho"
local r = t.recipe "mixed"
r.model = t.model.llama { width = 64, layers = 2, heads = 2, ffn_width = 128, vocab_size = 512, max_seq_len = 64, tied = true }
r.seq_len, r.global_batch, r.max_duration, r.precision = 64, "8sp", "60ba", "fp32"
r.tokenizer, r.optimizer = "tokenizer.json", t.optim.adamw { lr = 1e-3 }
r.ckpt.every, r.log.every = "5ba", "1ba"
local from, cache = t.env("FROM", "folders"), t.env("CACHE", "")
local function stream(name, share)
  if cache == "" then return { name = name, proportion = share, local_dir = from .. "/" .. name } end
  return { name = name, proportion = share, remote = from .. "/" .. name, local_dir = cache .. "/" .. name }
end
r.train_data = t.data.mds {
  streams = { stream("docs", 0.7), stream("sums", 0.3) }, batching_method = "stratified", shuffle_algo = "py1e",
}
return r
END
cp -r www folders
export FROM=folders CACHE=""
step tycho run mixed.lua run_dir=runs/undisturbed threads=1

coproc server { serve_folder www; }
# shellcheck disable=SC2034  # both are used below
to_server=${server[1]} from_server=${server[0]}
trap 'exec {to_server}>&- || true; rm -rf "$work"' EXIT
read -r -u "$from_server" FROM
CACHE=$work/cache
tycho run mixed.lua run_dir=runs/resumed threads=1 >out 2>&1 &
victim=$!
for _ in $(seq 1200); do
  compgen -G 'runs/resumed/checkpoints/step-*/COMMIT' >/dev/null && break
  kill -0 $victim 2>/dev/null || break
  sleep 0.05
done
compgen -G 'runs/resumed/checkpoints/step-*/COMMIT' >/dev/null || fail "the run saved nothing"
kill -9 $victim 2>/dev/null || true
wait $victim 2>/dev/null || true
step tycho launch -n 2 run mixed.lua run_dir=runs/resumed threads=1

losses() { awk 'match($0, /"step":[0-9]+/) { s = substr($0, RSTART + 7, RLENGTH - 7); if (match($0, /"loss":[-0-9.e+]+/)) loss[s] = substr($0, RSTART + 7, RLENGTH - 7) }
  END { for (s = 1; s <= 60; s++) print s, loss[s] }' "$1/metrics.jsonl"; }
losses runs/undisturbed >wanted
losses runs/resumed >given
[[ $(awk 'NF == 2' wanted | wc -l) == 60 ]] || fail "a loss is missing of the undisturbed run"
paste -d' ' wanted given | awk '{ d = $2 - $4; if (NF != 4 || d > 1e-4 || d < -1e-4) { print "step " $1 ": " $2 " and " $4; bad = 1 } } END { exit bad }' ||
  fail "the losses differ"
[[ -z $(find cache -name '*.part' -o -name '*.bad') ]] || fail "the cache has leftovers"
echo "remote_streams: 60 losses as from folders, from $(head -1 given | cut -d' ' -f2) to $(tail -1 given | cut -d' ' -f2)"
