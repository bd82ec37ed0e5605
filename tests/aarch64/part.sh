#!/usr/bin/env bash
# The program and a part of its tests on 64-bit Arm: in qemu after a cross-build (TYCHO_EMULATOR is its command), or on such a machine.
# A run that was begun on x86-64 goes on here, with the losses that it had there.
set -euo pipefail
[[ -n ${TYCHO_EMULATOR:-} || $(uname -m) == aarch64 ]] || { echo "skipped: this is no build for 64-bit Arm"; exit 77; }
# shellcheck source=tests/containers/script_cases.sh
source "$TYCHO_SOURCE_DIR/tests/containers/script_cases.sh"
read -ra emulator <<<"${TYCHO_EMULATOR:-}"
mkdir bin
printf '#!/bin/sh\nexec %s %s "$@"\n' "${emulator[*]}" "$TYCHO_BUILD/bin/tycho" >bin/tycho
chmod +x bin/tycho
PATH=$PWD/bin:$PATH

# The part of each program that takes minutes in qemu. kernels_test: the kernels for CPUs without vectors of their own.
parts=(
  'simd_test *'
  'thread_pool_test *'
  'base_test *'
  'layout_test *'
  'data_test NumpyRng*:Shuffle*'
  'kernels_test *generic*:KernelTables.*-*FunctionsAreWithinAFewUlp*'  # that one takes minutes more
)
check version 0 $'tycho                     0.' tycho version
check engine 0 $'kernels                   cpu generic\ninstruction_sets          generic' tycho version --engine
check doctor 0 "" tycho doctor
check recipe 0 "" tycho check "$TYCHO_SOURCE_DIR/recipes/demo.lua"
for part in "${parts[@]}"; do
  program=${part%% *}
  [[ -x $TYCHO_BUILD/bin/$program ]] || { echo "expected $program, found none: cmake --build builds aarch64_tests"; failed=$((failed + 1)); continue; }
  check "$program" 0 "[  PASSED  ]" "${emulator[@]}" "$TYCHO_BUILD/bin/$program" --gtest_brief=1 --gtest_filter="${part#* }"
  sed -n 's/^\[  PASSED  \] /'"$program"': /p' "$scratch/out"
done
check "a run that x86-64 began" 0 "0 failed" env TYCHO_BUILD="$PWD" TYCHO_RESULT=old_runs.txt "$TYCHO_SOURCE_DIR/tests/host/old_runs.sh"
finish
