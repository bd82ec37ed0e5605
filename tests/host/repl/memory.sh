#!/usr/bin/env bash
# A run that is built and closed at the prompt gives its memory back, that of its callbacks too.
set -euo pipefail
tycho=$TYCHO_BUILD/bin/tycho work=$(mktemp -d "${TMPDIR:-/tmp}/tycho-repl-memory-XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
PATH=$TYCHO_BUILD/bin:$PATH "$TYCHO_SOURCE_DIR/tests/make_tiny_data" 32
cat >tiny.lua <<'RECIPE'
local t = require "tycho"
local r = t.recipe "tiny"
r.seq_len, r.global_batch, r.max_duration = 32, "4sp", "60ba"
r.model = t.model.llama { width = 32, layers = 2, heads = 2, ffn_width = 64, vocab_size = 384, tied = true }
r.optimizer = t.optim.adamw { lr = 6e-4 }
r.callbacks.watch = t.observe { batch_end = function(ctx) end }
r.tokenizer, r.train_data, r.threads = "data/tokenizer.json", t.data.mds { local_dir = "data" }, 1
return r
RECIPE
resident=';grep VmRSS /proc/$PPID/status'
build() { echo "for i = 1, $1 do local run = build(r) run:step(1) run:close() end"; echo "$resident"; }
mapfile -t kib < <({ build 10; build 40; } | "$tycho" repl tiny.lua 2>repl.log | sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB$/\1/p')
((${#kib[@]} == 2)) || { echo "no numbers"; cat repl.log; exit 1; }
# A Lua state of callbacks takes about 2 MB; what is left of 40 runs is a tenth of one.
grown=$((kib[1] - kib[0]))
((grown < 8000)) || { echo "40 runs that were built and closed left $grown kB"; exit 1; }
echo "1 passed, 0 failed" | tee "$TYCHO_RESULT"
