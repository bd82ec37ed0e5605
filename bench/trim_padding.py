#!/usr/bin/env python3
"""What trimmed padding and sequence bucketing save in finetuning: an epoch of the same conversations in rows of seq_len, trimmed, and in buckets.

    python3 bench/trim_padding.py --tycho build/cpu/bin/tycho

Prompts with responses whose lengths are log-normal, a Llama of 2 layers, fp32, one rank; fresh processes alternate. Prints a Markdown table and writes every
number to build/bench/trim_padding.json. Standard library only.
"""

import argparse
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

import train_step
from result_file import result_file

RESULTS = result_file("trim_padding")
TOKENIZER = os.path.join(train_step.BENCH, "..", "tests", "golden", "tokenizer", "lines.json")
FORMS = {
    "rows of seq_len": {},
    "trimmed": {"trim_padding": "true"},
    "trimmed, buckets of 16 batches": {"trim_padding": "true", "bucket_batches": "16"},
}
RECIPE = """
local t = require "tycho"
local r = t.recipe "trim"
r.model = t.model.llama { width = 256, layers = 2, heads = 4, kv_heads = 4, ffn_width = 704, vocab_size = 512, max_seq_len = %d }
r.tokenizer = "%s"
r.train_data = t.data.chat { path = "%s" }
r.seq_len = %d
r.global_batch = "%dsp"
r.max_duration = "1ep"
r.optimizer = t.optim.adamw { lr = 1e-3 }
return r
"""


def write_rows(path, rows, seq_len):
    """Digits are tokens of their own."""
    draw = random.Random(5)
    with open(path, "w") as file:
        for _ in range(rows):
            length = min(seq_len, max(8, int(draw.lognormvariate(4.8, 0.8))))
            file.write(json.dumps({"prompt": "9" * (length // 3), "response": "7" * (length - length // 3 - 2)}) + "\n")


def run(args, recipe, keys, work):
    run_dir = tempfile.mkdtemp(dir=work)
    command = [args.tycho, "run", recipe, f"run_dir={run_dir}", "log.every=1ba"] + [f"train_data.{k}={v}" for k, v in keys.items()]
    environment = os.environ | {"OMP_NUM_THREADS": str(args.threads)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    with open(os.path.join(run_dir, "metrics.jsonl")) as file:
        records = [r for r in map(json.loads, file) if "loss" in r]
    with open(os.path.join(run_dir, "events.jsonl")) as file:
        told = " ".join(r["text"] for r in map(json.loads, file) if r.get("kind") == "data")
    shutil.rmtree(run_dir)
    seconds = records[-1]["time"] - records[0]["time"]
    steps = len(records) - 1
    return {"rows_per_s": steps * args.batch / seconds, "padding": float(re.search(r"([\d.]+) % of which are padding", told).group(1)),
            "peak_gb": max(r["memory_bytes"] for r in records) / 1e9, "loss": records[-1]["loss"], "command": " ".join(command)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tycho", default="tycho")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--processes", type=int, default=3, help="of each")
    parser.add_argument("--rows", type=int, default=512)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--seq-len", type=int, default=1024)
    args = parser.parse_args()
    runs = {form: [] for form in FORMS}
    with tempfile.TemporaryDirectory() as work:
        rows, recipe = os.path.join(work, "rows.jsonl"), os.path.join(work, "trim.lua")
        write_rows(rows, args.rows, args.seq_len)
        with open(recipe, "w") as file:
            file.write(RECIPE % (args.seq_len, os.path.abspath(TOKENIZER), rows, args.seq_len, args.batch))
        for _ in range(args.processes):
            for form, keys in FORMS.items():
                runs[form].append(run(args, recipe, keys, work))
    whole = statistics.median(r["rows_per_s"] for r in runs["rows of seq_len"])
    print("| rows | padding | rows/s (least–most) | times | peak memory, GB |\n|---|---|---|---|---|")
    for form, all_runs in runs.items():
        speeds = sorted(r["rows_per_s"] for r in all_runs)
        median = statistics.median(speeds)
        print(f"| {form} | {all_runs[0]['padding']:.1f} % | {median:.1f} ({speeds[0]:.1f}–{speeds[-1]:.1f}) | {median / whole:.2f} | "
              f"{statistics.median(r['peak_gb'] for r in all_runs):.2f} |")
    with open(RESULTS, "w") as file:
        json.dump({"arguments": vars(args), "hardware": train_step.hardware(), "runs": runs}, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
