#!/usr/bin/env python3
"""What uploads of checkpoints add to the steps of a run, and how fast a start reads a checkpoint from a store and from a folder.

    bench/remote_checkpoints.py TYCHO SERVE_STORE [SECONDS [SLICE_MS]]

Steps: two runs of one thread each save as often as they can, one with ckpt.remote, the other without; SERVE_STORE (a test program: a store
in memory) takes the uploads on the same machine. As in bench/wandb_steps.py they go on by turns on one core, in slices of time in random
order, and each pair of slices gives the ratio of its two median steps; the one with a store uploads nearly all the time. Shown are the medians
of four rounds and their range, of the median step and of the processor time of the thread that trains, and that of all other threads as a share
of it. "none" is two runs without a store.

Reading: `tycho ckpt verify`, which reads every byte, of one checkpoint in the store and of the same one in a folder, by turns, ten times each.
"""
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

from paired_runs import Run, by_turns, end_all, spread
from result_file import result_file

TYCHO, SERVE_STORE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
SECONDS, SLICE_S = float((sys.argv + ["", ""])[3] or 60), int((sys.argv + ["", "", ""])[4] or 50) / 1000
ROOT = pathlib.Path(__file__).resolve().parent.parent
NUM_ROUNDS, NUM_WARM_STEPS, NUM_READS = 4, 20, 10

RECIPE = """
local t = require "tycho"
local r = t.recipe "steps"
r.model = t.model.llama { layers = 2, width = 256, heads = 4, ffn_width = 512, vocab_size = 512 }
r.tokenizer, r.train_data = "data/tokenizer.json", t.data.mds { local_dir = "data" }
r.seq_len, r.global_batch, r.threads, r.max_duration = 64, "2sp", 1, "10000000ba"
r.optimizer = t.optim.adamw { lr = 1e-3 }
r.ckpt.every, r.ckpt.keep = "20ba", 2
return r
"""


def measure(has_store):
    """One round, and how many uploads were done in it."""
    name = f"{'s3' if has_store else 'none'}-{time.time()}"
    runs = [Run(TYCHO, "steps.lua", f"{name}-on", ["ckpt.remote=s3://bucket/{run_name}"] if has_store else [], {}, NUM_WARM_STEPS),
            Run(TYCHO, "steps.lua", f"{name}-off", [], {}, NUM_WARM_STEPS)]
    found = by_turns(runs, SECONDS / NUM_ROUNDS, SLICE_S)
    found["uploads"] = sum(line["kind"] == "upload" for line in runs[0].lines("events.jsonl"))
    end_all(runs)
    return found


def seconds_of(place):
    began = time.monotonic()
    subprocess.run([TYCHO, "ckpt", "verify", place], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


results = {}
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for command in (["tokenizer", "train", ROOT / "docs", "--ext", ".md", "--vocab-size", "512", "--out", "data/tokenizer.json"],
                    ["data", "convert", ROOT / "docs", "--ext", ".md", "--tokenizer", "data/tokenizer.json", "--concat-tokens", "64",
                     "--eos-text", "<|endoftext|>", "--out", "data"]):
        subprocess.run([TYCHO, *command], check=True, stdout=subprocess.DEVNULL)
    pathlib.Path("steps.lua").write_text(RECIPE)
    os.mkdir("store")
    store = subprocess.Popen([SERVE_STORE, "s3", "store"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    os.environ.update(S3_ENDPOINT_URL=store.stdout.readline().strip(), AWS_ACCESS_KEY_ID="AKIDTEST", AWS_SECRET_ACCESS_KEY="secret-of-the-test",
                      AWS_CONFIG_FILE="none", AWS_SHARED_CREDENTIALS_FILE="none", no_proxy="127.0.0.1")
    print(f"{'store':6} {'median step':>24} {'its processor time':>24} {'other threads':>14} {'without':>8} {'ms':>6} {'pairs':>6} {'steps for an upload':>20}", flush=True)
    for name in ("none", "s3"):
        rounds = [measure(name == "s3") for _ in range(NUM_ROUNDS)]
        results[name], shown = rounds, spread(rounds, "ratio").rjust(25) + spread(rounds, "trains").rjust(25)
        middle = {what: statistics.median(one[what] for one in rounds) for what in ("share", "share_without", "cpu_ms")}
        uploads = sum(one["uploads"] for one in rounds)
        each = f"{sum(one['steps'] for one in rounds) / uploads:.0f}" if uploads else "-"
        print(f"{name:6}{shown} {100 * middle['share']:12.2f} % {100 * middle['share_without']:6.2f} % {middle['cpu_ms']:6.2f} "
              f"{sum(one['pairs'] for one in rounds):6} {each:>20}", flush=True)

    # A checkpoint of some size, in both places.
    subprocess.run([TYCHO, "run", "steps.lua", "run_name=large", "ckpt.remote=s3://bucket/large", "model.width=1024", "model.ffn_width=2048", "model.layers=4",
                    "max_duration=1ba"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    num_bytes = sum(path.stat().st_size for path in pathlib.Path("runs/large/checkpoints").rglob("*"))
    seconds = {"folder": [], "store": []}
    for _ in range(NUM_READS):
        for place in random.sample(sorted(seconds), 2):
            seconds[place].append(seconds_of("s3://bucket/large" if place == "store" else "runs/large"))
    results["read"] = seconds
    for place, values in seconds.items():
        print(f"{num_bytes / 1e6:.0f} MB of the {place}: {statistics.median(values):.2f} s ({min(values):.2f}-{max(values):.2f}), "
              f"{num_bytes / 1e6 / statistics.median(values):.0f} MB/s")
    store.stdin.close()
    store.wait()
result_file("remote_checkpoints").write_text(json.dumps(results))
