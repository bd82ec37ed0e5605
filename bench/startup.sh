#!/usr/bin/env bash
# How long the define phase takes: wall time of `tycho --help` and `tycho check RECIPE`, 20 processes each.
#   bench/startup.sh [TYCHO] [RECIPE]
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
tycho=${1:-build/cpu/bin/tycho} recipe=${2:-recipes/demo.lua}
measure() {
  local times=() start i
  for i in {1..20}; do
    start=$(date +%s%N)
    "$@" >/dev/null
    times+=($((($(date +%s%N) - start) / 10000)))
  done
  printf '%s\n' "${times[@]}" | sort -n | awk -v what="${*:2}" '{ t[NR] = $1 / 100 }
    END { printf "tycho %-28s median %.1f ms, fastest %.1f, slowest %.1f   (at most 50 ms)\n", what, t[int((NR + 1) / 2)], t[1], t[NR] }'
}
grep -m1 'model name' /proc/cpuinfo | sed 's/.*: //'
measure "$tycho" --help
measure "$tycho" check "$recipe"
