#!/usr/bin/env bash
# run_fuzz.sh SECONDS FOLDER [TARGET...]: runs the fuzzer's targets (all by default), one after the other for so long each.
# New inputs go to FOLDER/TARGET, what it finds to FOLDER/TARGET-*. One line for each: how many inputs it has tried.
# Programs of the preset `fuzz`, which check every access; TYCHO_FUZZ_BIN=build/fuzz_fast/bin takes those that are many times
# faster. Give the preset `fuzz` the same FOLDER afterwards: it begins with what the fast ones have found.
set -uo pipefail
seconds=$1 folder=$2
shift 2
corpus=$(cd "$(dirname "$0")/corpus" && pwd)
bin=${TYCHO_FUZZ_BIN:-$corpus/../../../build/fuzz/bin}
found=0

# The program that has a target says so.
program_of() {
  local program
  for program in "$bin"/tycho_fuzz_*; do
    TYCHO_FUZZ_TARGET=$1 "$program" -help=1 >/dev/null 2>&1 && { echo "$program"; return; }
  done
  echo "run_fuzz.sh: no program in $bin has the target $1; build one with: cmake --build --preset fuzz" >&2
  exit 2
}

[[ $# -gt 0 ]] || mapfile -t all < <(ls "$corpus")
for target in "${all[@]-$@}"; do
  mkdir -p "$folder/$target"
  program=$(program_of "$target") || exit 2
  # The limit of one input is long, for machines that are busy with other work.
  TYCHO_FUZZ_TARGET=$target "$program" -max_total_time="$seconds" -timeout=600 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="$folder/$target-" "$folder/$target" "$corpus/$target" >"$folder/$target.log" 2>&1
  status=$?
  [[ $status == 0 ]] || found=1
  tried=$(sed -n 's/^stat::number_of_executed_units: *//p' "$folder/$target.log")
  echo "$target ${tried:-?} $([[ $status == 0 ]] || echo "FOUND: see $folder/$target.log")"
done
exit "$found"
