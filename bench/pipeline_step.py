#!/usr/bin/env python3
"""A training step on pipeline stages, over what its passes alone would take: for each schedule, stages of one thread each.

    python3 bench/pipeline_step.py --tycho build/cpu/bin/tycho --before OTHER/build/cpu/bin/tycho

Ideal is the step of one rank, shared by the stages, and the time in which a schedule leaves stages without work; messages and waiting for
them are what is above it. `--before` measures a second build in the same session. Messages are large for so small a model (2 MB), so that
waiting shows. Processes alternate. Prints a Markdown table and writes every number to build/bench/pipeline_step.json. When losses part,
the exit code is 1. Standard library only.
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
MODEL = dict(family="llama", width=32, layers=4, heads=2, kv_heads=2, ffn_width=64, vocab=512, tied=False, seq_len=64)
MICRO_BATCH = 256  # sequences
# Name, pp_schedule, pp_chunks.
SCHEDULES = [("gpipe", "gpipe", 1), ("1f1b", "1f1b", 1), ("interleaved, 2 chunks", "interleaved", 2)]


def run_once(args, tycho, ranks, schedule, chunks, data, work):
    run_dir = tempfile.mkdtemp(dir=work)
    pins = {
        "run_dir": run_dir, "train_data.local_dir": data, "threads": 1, "device": "cpu", "seq_len": MODEL["seq_len"],
        "global_batch": f"{args.micro_batches * MICRO_BATCH}sp", "micro_batch": f"{MICRO_BATCH}sp", "max_duration": f"{args.steps}ba",
        "parallel.pp": ranks, "parallel.pp_schedule": schedule, "parallel.pp_chunks": chunks,
        "model.width": MODEL["width"], "model.layers": MODEL["layers"], "model.heads": MODEL["heads"], "model.kv_heads": MODEL["kv_heads"],
        "model.ffn_width": MODEL["ffn_width"], "model.vocab_size": MODEL["vocab"], "model.tied": "false", "ckpt.async": "false",
    }
    launch = ["launch", "-n", str(ranks)] if ranks > 1 else []
    command = [tycho, *launch, "run", os.path.join(BENCH, "train_step.lua"), *(f"{key}={value}" for key, value in pins.items())]
    train_step.run(command, {"TYCHO_BENCH_FAMILY": "llama"}, "tycho")
    with open(os.path.join(run_dir, "metrics.jsonl")) as file:
        records = [record for record in map(json.loads, file) if "loss" in record]
    ends = [record["time"] for record in records]
    return {"step_s": [b - a for a, b in zip(ends, ends[1:])][args.warmup:], "losses": [record["loss"] for record in records]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tycho", default="tycho")
    parser.add_argument("--before", help="an earlier build, measured too")
    parser.add_argument("--stages", type=int, default=2)
    parser.add_argument("--micro-batches", type=int, default=8)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--processes", type=int, default=5, help="of each")
    args = parser.parse_args()
    builds = {"now": args.tycho} | ({"before": args.before} if args.before else {})
    one, runs = [], {(build, name): [] for build in builds for name, _, _ in SCHEDULES}
    with tempfile.TemporaryDirectory() as work:
        data = os.path.join(work, "data")
        synthetic_mds.write_dataset(data, MODEL["vocab"], MODEL["seq_len"], args.micro_batches * MICRO_BATCH * args.steps)
        for _ in range(args.processes):
            one.append(run_once(args, args.tycho, 1, "1f1b", 1, data, work))
            for name, schedule, chunks in SCHEDULES:
                for build, tycho in builds.items():
                    runs[build, name].append(run_once(args, tycho, args.stages, schedule, chunks, data, work))
    gap = max(agreement.judge("fp32", one[0]["losses"], run["losses"])["gap"] for several in runs.values() for run in several)
    with open(result_file("pipeline_step"), "w") as file:
        json.dump({"model": MODEL, "arguments": vars(args), "hardware": train_step.hardware(), "one_rank": one,
                   "runs": {f"{build}, {name}": several for (build, name), several in runs.items()}, "gap": gap}, file, indent=1)
    middle = lambda several: statistics.median(step for run in several for step in run["step_s"])
    print(f"{args.stages} stages of one thread, {args.micro_batches} micro-batches, fp32; step over ideal\n")
    print(f"| schedule | ideal, s | {' | '.join(builds)} |\n|---|---|{'---|' * len(builds)}")
    for name, _, chunks in SCHEDULES:
        passes = chunks * args.micro_batches
        ideal = middle(one) / args.stages * (passes + args.stages - 1) / passes
        print(f"| {name} | {ideal:.3f} | " + " | ".join(f"{middle(runs[build, name]) / ideal:.2f}" for build in builds) + " |")
    print(f"losses {gap:.1e} apart at most")
    sys.exit(1 if gap > 1e-3 else 0)


if __name__ == "__main__":
    main()
