#!/usr/bin/env bash
# bench/train_step.py voids a row whose losses part, and says so: its judgement alone, which needs no peer.
set -euo pipefail
root=$(realpath "${TYCHO_SOURCE_DIR:-$(dirname "$0")/../..}")
export PYTHONPATH=$root/bench PYTHONDONTWRITEBYTECODE=1
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
python3 - > >(tee "${TYCHO_RESULT:-/dev/null}") <<'PYTHON'
import math

import agreement
import train_step

cases = failures = 0


def expect(what, given, wanted):
    global cases, failures
    cases += 1
    if given != wanted:
        failures += 1
        print(f"{what}: expected {wanted}, got {given}")


steady = [9.0 - i / 100 for i in range(30)]
moved = [x + 9e-4 for x in steady]
expect("equal", agreement.judge("fp32", steady, steady)["void"], False)
expect("within", agreement.judge("fp32", steady, moved)["void"], False)
apart = list(steady)
apart[11] -= 2e-3
expect("apart at one step", agreement.judge("fp32", steady, apart)["void"], True)
expect("and where", agreement.judge("fp32", steady, apart)["step"], 12)
expect("bf16 is coarser", agreement.judge("bf16", steady, apart)["void"], False)
late = steady[:20] + [x + 1 for x in steady[20:]]
expect("steps after the compared ones", agreement.judge("fp32", steady, late)["void"], False)
expect("not a number", agreement.judge("bf16", steady, [math.nan] * 30)["void"], True)
expect("nothing to compare", agreement.judge("bf16", steady, [])["void"], True)

side = [{"tokens_per_s": 1.0, "peak_gb": 1.0, "first_step_s": 1.0, "losses": steady}]
result = {"products": None, "tycho": side, "peer": side, "starts": {"tycho": side, "peer": side}}
for losses, void in ((steady, False), (apart, True)):
    result["losses"] = agreement.judge("fp32", steady, losses)
    table = train_step.table("m", {"fp32": result}).splitlines()[2:]
    expect("marked rows", [line.startswith("| VOID, the losses part: ") for line in table], [void] * len(table))
print(f"{cases - failures} passed, {failures} failed")
raise SystemExit(1 if failures else 0)
PYTHON
