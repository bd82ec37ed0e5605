#!/usr/bin/env bash
# What a sweep adds to a trial: runs of one step by themselves, and the same as trials of a sweep, one after the other.
#   bench/sweep_launch.sh TYCHO [TRIALS]
set -euo pipefail
tycho=$(realpath "$1") trials=${2:-10}
root=$(realpath "$(dirname "$0")/..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$tycho" tokenizer train "$root/docs" --ext .md --vocab-size 512 --out data/tokenizer.json >/dev/null
"$tycho" data convert "$root/docs" --ext .md --tokenizer data/tokenizer.json --concat-tokens 64 --eos-text '<|endoftext|>' --out data >/dev/null
cp "$root/tests/kill9/tiny.lua" .
cat >many.lua <<LUA
local t = require "tycho"
local s = t.sweep(("many-%d"):format(t.arg("trials", 1)))
s.recipe, s.metric.name = "tiny.lua", "loss"
s.pins["max_duration"] = "1ba"
s.pins.scheduler = "constant"
s.space.seed = t.space.int(1, 1000000)
s.search = t.search.random { trials = t.arg("trials", 1) }
return s
LUA
now() { date +%s%N; }
"$tycho" run tiny.lua scheduler=constant max_duration=1ba run_dir=runs/warm >/dev/null

begin=$(now)
for ((i = 0; i < trials; ++i)); do "$tycho" run tiny.lua scheduler=constant max_duration=1ba seed="$i" "run_dir=runs/$i" --plain >/dev/null; done
alone=$((($(now) - begin) / trials / 1000000))
begin=$(now); "$tycho" sweep many.lua trials=1 >/dev/null; one=$(($(now) - begin))
begin=$(now); "$tycho" sweep many.lua trials=$((trials + 1)) >/dev/null; many=$(($(now) - begin))
trial=$(((many - one) / trials / 1000000))
echo "a run of one step: $alone ms; as a trial of a sweep: $trial ms; the sweep adds $((trial - alone)) ms"
