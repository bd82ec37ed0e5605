#!/usr/bin/env bash
# Which instructions and libraries compute a run is said by `tycho version --engine`, kept with the run and its checkpoints, and a
# resume that finds others says so.
set -euo pipefail
tycho=$TYCHO_BUILD/bin/tycho work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
passed=0
fail() { echo "route: $1"; [[ ! -e out ]] || tail -40 out; exit 1; }
wants() { grep -qF -- "$1" "$2" || fail "wanted \"$1\" in $2"; passed=$((passed + 1)); }
wants_none() { ! grep -qF -- "$1" "$2" || fail "expected no \"$1\" in $2"; passed=$((passed + 1)); }
unset TYCHO_CPU TYCHO_GEMM

PATH=$TYCHO_BUILD/bin:$PATH "$TYCHO_SOURCE_DIR/tests/make_tiny_data" 32
cat >tiny.lua <<'RECIPE'
local t = require "tycho"
local r = t.recipe "tiny"
r.seq_len, r.global_batch, r.max_duration = 32, "4sp", "2ba"
r.model = t.model.llama { width = 32, layers = 2, heads = 2, ffn_width = 64, vocab_size = 384, tied = true }
r.optimizer = t.optim.adamw { lr = 6e-4 }
r.tokenizer, r.train_data, r.threads = "data/tokenizer.json", t.data.mds { local_dir = "data" }, 1
r.device = "cpu"
return r
RECIPE

"$tycho" version --engine >version
for name in kernels instruction_sets products_fp32 products_bf16; do wants "$name" version; done
kernels=$(awk '$1 == "kernels" { sub(/^kernels +/, ""); print }' version)
products=$(awk '$1 == "products_fp32" { sub(/^products_fp32 +/, ""); print }' version)

# run NAME LAST_STEP: goes on to that step; what it says is in out.
run() { "$tycho" run tiny.lua run_name="$1" max_duration="$2ba" >out 2>&1 || fail "run $1 to step $2 ended with $?"; }
changed="the route has changed since the checkpoint, so bits may differ"

run a 2
wants "\"kernels\": \"$kernels\"" runs/a/versions.json
wants "\"products\": \"$products\"" runs/a/versions.json
"$tycho" ckpt info runs/a >out 2>&1 || fail "ckpt info ended with $?"
wants "kernels $kernels" out
wants "products $products" out
run a 4
wants "resumed from step 2" runs/a/events.jsonl
wants_none "$changed" runs/a/events.jsonl

# The same run by the kernels that every CPU has.
if [[ $kernels != "cpu generic" ]]; then
  TYCHO_CPU=generic run a 6
  wants "$changed" out
  wants "$kernels -> cpu generic" runs/a/events.jsonl
  "$tycho" ckpt info runs/a >out 2>&1 || fail "ckpt info ended with $?"
  wants "kernels cpu generic" out
  run a 8
  wants "cpu generic -> $kernels" out
fi
# Products by the other library.
own=$(TYCHO_GEMM=own "$tycho" version --engine | awk '$1 == "products_fp32" { sub(/^products_fp32 +/, ""); print }')
[[ $own == "$products" ]] && other=aten || other=own
TYCHO_GEMM=$other run a 10
wants "$changed" out
wants "products   $products -> " out
TYCHO_GEMM=$other run a 12
wants_none "$changed" out

echo "$passed passed, 0 failed" | tee "$TYCHO_RESULT"
