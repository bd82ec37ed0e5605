#!/usr/bin/env python3
"""A training step of ranks that share sequences: keys and values gathered, and passed around a ring.

    python3 bench/context_ring.py --tycho build/cpu/bin/tycho

Ranks of one thread each; processes of both forms alternate. Prints a Markdown table, with the time of a step that waits for other ranks, and
writes every number to build/bench/context_ring.json. When losses part, the exit code is 1. Standard library only.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile

import agreement
import synthetic_mds
import train_step
from result_file import result_file

BENCH = os.path.dirname(os.path.abspath(__file__))
# Sequence, width, heads: long attention beside small transfers, and transfers beside little attention.
SHAPES = [(8192, 128, 2), (1024, 512, 8)]
LAYERS, VOCAB = 2, 512
FORMS = ["gather", "ring"]


def run_once(args, form, shape, data, work):
    seq_len, width, heads = shape
    run_dir = tempfile.mkdtemp(dir=work)
    pins = {
        "run_dir": run_dir, "train_data.local_dir": data, "threads": 1, "device": "cpu", "seq_len": seq_len, "global_batch": "1sp",
        "micro_batch": "1sp", "max_duration": f"{args.steps}ba", "parallel.cp": args.ranks, "parallel.cp_attention": form,
        "model.width": width, "model.layers": LAYERS, "model.heads": heads, "model.kv_heads": heads, "model.ffn_width": 2 * width,
        "model.vocab_size": VOCAB, "model.tied": "false", "ckpt.async": "false",
    }
    command = [args.tycho, "launch", "-n", str(args.ranks), "run", os.path.join(BENCH, "train_step.lua"),
               *(f"{key}={value}" for key, value in pins.items())]
    train_step.run(command, {"TYCHO_BENCH_FAMILY": "llama"}, "tycho")
    with open(os.path.join(run_dir, "metrics.jsonl")) as file:
        records = [record for record in map(json.loads, file) if "loss" in record]
    ends = [record["time"] for record in records]
    return {"step_s": [b - a for a, b in zip(ends, ends[1:])][args.warmup:],
            "wait_s": [record["comm_wait_s"] for record in records][1 + args.warmup:], "losses": [record["loss"] for record in records]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tycho", default="tycho")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--processes", type=int, default=3, help="of each")
    args = parser.parse_args()
    results, apart = [], False
    print("| tokens, width | form | step, median (fastest) | of it waits for other ranks |\n|---|---|---|---|")
    for shape in SHAPES:
        seq_len, width, _ = shape
        runs = {form: [] for form in FORMS}
        with tempfile.TemporaryDirectory() as work:
            data = os.path.join(work, "data")
            synthetic_mds.write_dataset(data, VOCAB, seq_len, args.steps + 2)
            for _ in range(args.processes):
                for form in FORMS:
                    runs[form].append(run_once(args, form, shape, data, work))
        judged = [agreement.judge("fp32", run["losses"], runs["gather"][0]["losses"]) for form in FORMS for run in runs[form]]
        apart |= any(one["void"] for one in judged)
        for form in FORMS:
            steps = [s for run in runs[form] for s in run["step_s"]]
            waits = [s for run in runs[form] for s in run["wait_s"]]
            print(f"| {seq_len}, {width} | {form} | {statistics.median(steps):.3f} s ({min(steps):.3f} s) | {1e3 * statistics.median(waits):.1f} ms |")
            results.append({"seq_len": seq_len, "width": width, "form": form, "runs": runs[form]})
    with open(result_file("context_ring"), "w") as file:
        json.dump({"arguments": vars(args), "layers": LAYERS, "hardware": train_step.hardware(), "results": results}, file, indent=1)
    if apart:
        print("the losses of gather and ring part", file=sys.stderr)
    return 1 if apart else 0


if __name__ == "__main__":
    sys.exit(main())
