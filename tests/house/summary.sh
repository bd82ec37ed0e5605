#!/usr/bin/env bash
# The closing lines of scripts/test: counts, names of what failed, instruction sets, from reports as ctest and GoogleTest write them.
set -euo pipefail
root=$(realpath "${TYCHO_SOURCE_DIR:-$(dirname "$0")/../..}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0

# report NAME TESTS FAILURES SKIPPED: opens a GoogleTest report; its cases come from standard input.
report() {
  { echo '<?xml version="1.0" encoding="UTF-8"?>'
    echo "<testsuites tests=\"$2\" failures=\"$3\" disabled=\"0\" errors=\"0\" time=\"1\" name=\"AllTests\">"
    echo "  <testsuite name=\"S\" tests=\"$2\" failures=\"$3\" disabled=\"0\" skipped=\"$4\" errors=\"0\" time=\"1\">"
    cat
    echo '  </testsuite></testsuites>'; } >"$scratch/$1.xml"
}
# ctest NAME=STATUS ...: what ctest says of its tests.
ctest_report() {
  { echo '<testsuite name="x">'
    for one in "$@"; do
      echo "<testcase name=\"${one%%=*}\" classname=\"${one%%=*}\" time=\"1\" status=\"${one##*=}\">"
      [[ ${one##*=} != notrun ]] || echo '<skipped message="SKIP_RETURN_CODE=77"/>'
      echo '</testcase>'
    done
    echo '</testsuite>'; } >"$scratch/ctest.xml"
}
# expect STATUS TEXT CTEST_STATUS: all of TEXT's lines are said, the last one last.
expect() {
  local status=0 line good=1
  "$root/scripts/sum_up" "$scratch" "$3" >"$scratch/out" 2>&1 || status=$?
  ((status == $1)) || good=0
  while IFS= read -r line; do grep -qxE -- "$line" "$scratch/out" || good=0; done <<<"$2"
  tail -1 "$scratch/out" | grep -qxE -- "$(tail -1 <<<"$2")" || good=0
  if ((good)); then passed=$((passed + 1)); else failed=$((failed + 1)); echo "expected status $1 and: $2"; echo "got $status and:"; cat "$scratch/out"; fi
}

report kernels_test 3 0 1 <<'XML'
    <testcase name="HasEveryKernel/generic" file="a.cpp" line="1" status="run" result="completed" time="0." classname="Tables/KernelTableTest" />
    <testcase name="HasEveryKernel/fancy512" file="a.cpp" line="1" status="run" result="skipped" time="0." classname="Tables/KernelTableTest">
      <skipped message="a.cpp:1&#x0A;this machine cannot run the kernels of fancy512"><![CDATA[...]]></skipped>
    </testcase>
    <testcase name="HasEveryKernel/avx2" file="a.cpp" line="1" status="run" result="completed" time="0." classname="Tables/KernelTableTest" />
XML
echo "7 passed, 0 failed" >"$scratch/script.txt"
ctest_report kernels_test=run script=run alone=run absent=notrun
expect 0 'instruction sets: generic, avx2 ran; fancy512 did not: not on this CPU \(.+\)
10 passed, 0 failed, 2 skipped' 0

report models_test 2 1 0 <<'XML'
    <testcase name="Good" file="a.cpp" line="1" status="run" result="completed" time="0." classname="ModelTest" />
    <testcase name="Bad/wide_fp32" file="a.cpp" line="1" status="run" result="completed" time="0." classname="Shapes/ModelTest">
      <failure message="a.cpp:1&#x0A;off" type=""><![CDATA[a.cpp:1]]></failure>
    </testcase>
XML
ctest_report kernels_test=run models_test=fail format=fail
expect 1 'failed:
models_test:
  Shapes/ModelTest.Bad/wide_fp32
format
instruction sets: generic, avx2 ran; fancy512 did not: not on this CPU \(.+\)
3 passed, 2 failed, 1 skipped' 8

# A program whose cases passed and that crashed then, and a ctest that failed without a word.
ctest_report kernels_test=fail
expect 1 'failed:
kernels_test
2 passed, 1 failed, 1 skipped' 8
ctest_report kernels_test=run
expect 1 'no test in particular: ctest ended with status 8 and 2 cases passed
2 passed, 1 failed, 1 skipped' 8
# The case that lists instruction sets is there by the name that sum_up looks for.
tables=$root/tests/trainer/kernels/kernel_table_test.cpp
name=$(grep -oE 'KernelTableTest\.[A-Za-z]+' "$root/scripts/sum_up")
if grep -qF "TEST_P(${name/./, })" "$tables"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "$tables has no $name"; fi
rm "$scratch/kernels_test.xml"
ctest_report format=run
expect 0 'instruction sets: none ran, for kernels_test did not
1 passed, 0 failed' 0

echo "$passed passed, $failed failed" | tee "${TYCHO_RESULT:-/dev/null}"
((failed == 0))
