#!/usr/bin/env bash
# run_fuzz.sh SECONDS FOLDER [TARGET...]: runs the fuzzer's targets (all by default), one after the other for so long each.
# New inputs go to FOLDER/TARGET, what it finds to FOLDER/TARGET-*. One line for each: how many inputs it has tried.
set -uo pipefail
seconds=$1 folder=$2
shift 2
corpus=$(cd "$(dirname "$0")/corpus" && pwd)
fuzz=${TYCHO_FUZZ:-$corpus/../../../build/fuzz/bin/tycho_fuzz}
found=0
[[ $# -gt 0 ]] || mapfile -t all < <(ls "$corpus")
for target in "${all[@]-$@}"; do
  mkdir -p "$folder/$target"
  TYCHO_FUZZ_TARGET=$target "$fuzz" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="$folder/$target-" "$folder/$target" "$corpus/$target" >"$folder/$target.log" 2>&1
  status=$?
  [[ $status == 0 ]] || found=1
  tried=$(sed -n 's/^stat::number_of_executed_units: *//p' "$folder/$target.log")
  echo "$target ${tried:-?} $([[ $status == 0 ]] || echo "FOUND: see $folder/$target.log")"
done
exit "$found"
