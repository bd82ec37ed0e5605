#!/usr/bin/env python3
"""What a moving average of the weights (r.ema) costs a training step: the same run with and without it.

    python3 bench/weight_average.py --tycho build/cpu/bin/tycho

A Llama of 125M, fp32, on one rank; the average is updated at every step. Fresh processes of both alternate. Prints a Markdown table and writes
every number to build/bench/weight_average.json. The losses must be the same to the bit: else the exit code is 1. Standard library only.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile

import synthetic_mds
import train_step
from result_file import result_file

RESULTS = result_file("weight_average")
FORMS = {"without": {}, "with": {"ema.half_life": "100ba"}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tycho", default="tycho")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--processes", type=int, default=5, help="of each")
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--warmup", type=int, default=3)
    args = parser.parse_args()
    model = train_step.MODELS["125m-b4-t64"] | {"steps": args.steps, "warmup": args.warmup}
    with tempfile.TemporaryDirectory() as work:
        data = os.path.join(work, "data")
        synthetic_mds.write_dataset(data, model["vocab"], model["seq_len"], model["batch"] * (args.steps + 2))
        runs = train_step.alternating(args, {
            name: lambda pins=pins: train_step.run_tycho(args, model, "fp32", data, work, more_pins=pins) for name, pins in FORMS.items()})
    for form in FORMS:
        for run in runs[form]:
            run["median_step_s"] = statistics.median(run["step_s"][args.warmup - 1:])
    same = all(run["losses"] == runs["without"][0]["losses"] for form in FORMS for run in runs[form])
    print("| 125M, 4 × 64 tokens, fp32 | without | with | ratio (least–most of pairs) |\n|---|---|---|---|")
    for key, text, digits in [("median_step_s", "step, s", 3), ("peak_gb", "peak memory, GB", 2)]:
        print(f"| {text} | {train_step.spread(runs['without'], key, digits)} | {train_step.spread(runs['with'], key, digits)} | "
              f"{train_step.ratio(runs['with'], runs['without'], key, 3, '')} |")
    with open(RESULTS, "w") as file:
        json.dump({"arguments": vars(args), "model": model, "hardware": train_step.hardware(), "runs": runs, "same_losses": same}, file,
                  indent=1)
    if not same:
        print("the losses with the average are not those without it", file=sys.stderr)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
