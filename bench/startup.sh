#!/usr/bin/env bash
# How long the define phase takes: wall time of `tycho --help`, of `tycho check RECIPE`, of an entry of the REPL, and of a check of a
# hundred lines that extend a chain of five files, 20 processes each.
#   bench/startup.sh [TYCHO] [RECIPE]
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
tycho=$(realpath "${1:-build/cpu/bin/tycho}") recipe=${2:-recipes/demo.lua}
measure() {
  local limit=$1 times=() start i
  shift
  for i in {1..20}; do
    start=$(date +%s%N)
    "$@" >/dev/null
    times+=($((($(date +%s%N) - start) / 10000)))
  done
  printf '%s\n' "${times[@]}" | sort -n | awk -v what="${*:2}" -v limit="$limit" '{ t[NR] = $1 / 100 }
    END { printf "tycho %-32s median %.1f ms, fastest %.1f, slowest %.1f   (at most %d ms)\n", what, t[int((NR + 1) / 2)], t[1], t[NR], limit }'
}
grep -m1 'model name' /proc/cpuinfo | sed 's/.*: //'
measure 50 "$tycho" --help
measure 50 "$tycho" check "$recipe"
measure 200 "$tycho" repl "$recipe" -e r.optimizer.lr

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$recipe" "$folder/base0.lua"
for i in 1 2 3 4; do
  printf 'local r = require "base%d":extend "base"\nr.seed = %d\nreturn r\n' $((i - 1)) $i >"$folder/base$i.lua"
done
{
  printf 'local r = require "base4":extend "x"\n'
  for i in {1..98}; do printf 'r.model.width = %d\n' $((64 * (i % 4 + 1))); done
  printf 'return r\n'
} >"$folder/x.lua"
cd "$folder"
measure 50 "$tycho" check x.lua
