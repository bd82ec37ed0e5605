#!/usr/bin/env bash
# Whole steps by the kernels of each instruction set that this CPU can run: gradients of models, optimizers, decoding, a run that
# stops and resumes. The best set is left out: every other test runs on it.
set -euo pipefail
bin=$TYCHO_BUILD/bin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset TYCHO_CPU
"$bin/tycho" version --engine >"$work/version"
best=$(awk '$1 == "kernels" { print $3 }' "$work/version")
others=$(awk -v best="$best" '$1 == "instruction_sets" { gsub(/,/, ""); for (i = 2; i <= NF; ++i) if ($i != best) print $i }' "$work/version")
others=${others//$'\n'/ }
[[ -n $best ]] || { echo "tycho version --engine names no instruction set"; exit 1; }
passed=0 failed=0

# run SET PROGRAM FILTER
run() {
  local status=0 count
  TYCHO_CPU=$1 "$bin/$2" --gtest_brief=1 --gtest_filter="$3" >out 2>&1 || status=$?
  count=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) tests\?\..*/\1/p' out)
  passed=$((passed + ${count:-0}))
  # A filter that matches nothing must not pass.
  if ((status != 0 || ${count:-0} == 0)); then
    failed=$((failed + 1))
    echo "$2 on $1 ended with $status, ${count:-0} cases passed:"; tail -60 out
  fi
}

cd "$work"
for set in $others; do
  run "$set" models_test '*.LossAndEveryGradientEqualAutograd/*:*.DecodingOneByOneEqualsTheWholeSequence/*:*.ComputingAgainGivesTheSameBits/*'
  run "$set" optim_test '*'
  run "$set" run_test '*ResumeTest.StoppedAndResumedEqualsUninterruptedBitForBit/*:RunTest.LearnsAndRecordsEveryStep'
done
[[ -n $others ]] || { echo "this CPU runs $best alone"; passed=1; }
echo "$passed passed, $failed failed ($best by all other tests; here: ${others:-none})" | tee "$TYCHO_RESULT"
((failed == 0))
