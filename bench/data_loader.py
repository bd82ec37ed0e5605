#!/usr/bin/env python3
"""Tokens per second of a loader over MDS shards, plain and zstd, T=2048, py1e: `tycho bench data` against mosaicml-streaming with
PyTorch's DataLoader, on data that mosaicml-streaming wrote.

    python3 bench/data_loader.py --peers PEERS/bin/python

Fresh processes alternate; the peer has the number of workers with which it was fastest in a probe; without workers it is also tried
on one core alone. Compressed shards are decompressed anew by each process: what the last one left is removed before. Files are in the
page cache. Time begins with the second batch on both sides. Processor time is that of the whole process for Tycho, with its start and
all that is decompressed; for the peer it begins after Python has loaded its modules. `--compression` measures one kind and leaves the
other's row in the results as it is; `--write` only writes the data. Writes build/bench/data_loader.json. Standard library only.
"""
import argparse
import datetime
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

from result_file import result_file
from sample_order import processor

BENCH = pathlib.Path(__file__).resolve().parent
RECIPE = """local t = require "tycho"
local r = t.recipe "data"
r.seq_len, r.global_batch, r.max_duration = 2048, "8sp", "10ba"
r.model = t.model.llama { width = 64, layers = 1, heads = 2, ffn_width = 64, vocab_size = 32768, max_seq_len = 2048 }
r.optimizer = t.optim.adamw { lr = 1e-3 }
r.train_data = t.data.mds { local_dir = "%s", shuffle_algo = "py1e", shuffle_seed = 9176 }
return r
"""

VERSIONS = "import sys, streaming, torch; print(sys.version.split()[0], streaming.__version__, torch.__version__)"


def text_of(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True).stdout.strip()


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"failed with exit code {done.returncode}: {command}\n{done.stderr[-2000:]}")
    return json.loads(done.stdout[done.stdout.index("{") :]) if "{" in done.stdout else None


def children_cpu_s():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def forget(folder):
    """Removes what was decompressed."""
    for zipped in folder.glob("train/*.mds.zstd"):
        zipped.with_suffix("").unlink(missing_ok=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tycho", default=BENCH.parent / "build/cpu/bin/tycho")
    parser.add_argument("--peers", default=os.environ.get("TYCHO_PEERS"), required="TYCHO_PEERS" not in os.environ)
    parser.add_argument("--tokens", type=int, default=100_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--data", type=pathlib.Path, help="a folder for the data sets, kept for the next time")
    parser.add_argument("--compression", choices=("none", "zstd"), action="append", help="of the shards; both if not given")
    parser.add_argument("--write", action="store_true", help="write the data into --data, measure nothing")
    parser.add_argument("--results", type=pathlib.Path, default=result_file("data_loader"))
    options = parser.parse_args()
    peer = BENCH / "peers/streaming_loader.py"
    kinds = options.compression or ["none", "zstd"]
    rows = json.loads(options.results.read_text())["rows"] if options.results.exists() else []
    rows = [row for row in rows if row["compression"] not in kinds]
    with tempfile.TemporaryDirectory() as scratch:
        for kind in kinds:
            folder = (options.data or pathlib.Path(scratch)) / kind
            if not (folder / "train" / "index.json").exists():
                run(options.peers, peer, "write", folder, options.tokens, kind)
            if options.write:
                continue
            load_before = os.getloadavg()
            recipe = pathlib.Path(scratch) / f"{kind}.lua"
            recipe.write_text(RECIPE % folder)

            def theirs(setting):
                forget(folder)
                pin = ["taskset", "-c", "0"] if setting == "0 pinned" else []
                return run(*pin, options.peers, peer, "read", folder, setting.split()[0], 8)

            def ours():
                forget(folder)
                before = children_cpu_s()
                report = run(options.tycho, "bench", "data", recipe, "--json")
                return {**report, "cpu_s": children_cpu_s() - before}

            # On two cores the peer's threads take Python's lock from each other: pinned to one it can be faster.
            probes = {setting: theirs(setting) for setting in ("0", "0 pinned", "1", "2")}
            best = max(probes, key=lambda setting: probes[setting]["tokens"] / probes[setting]["seconds"])
            rounds = [(ours(), theirs(best)) for _ in range(options.rounds)]
            row = {"compression": kind, "date": datetime.datetime.now().isoformat(timespec="seconds"), "processor": processor(),
                   "cores": os.cpu_count(), "versions": text_of(options.peers, "-c", VERSIONS), "command": sys.argv, "tokens": options.tokens,
                   "load_before": load_before, "peer_workers": best, "probes": probes, "rounds": rounds}
            for name, seconds in (("per_s", "seconds"), ("per_cpu_s", "cpu_s")):
                us = statistics.median(a["tokens"] / a[seconds] for a, _ in rounds)
                them = statistics.median(b["tokens"] / b[seconds] for _, b in rounds)
                row[name] = {"tycho": us, "peer": them, "ratio": us / them}
                print(f"{kind:5} tokens {name:10} tycho {us / 1e6:8.1f} M   peer ({best} workers) {them / 1e6:8.1f} M   {us / them:5.1f} times")
            row["load_after"] = os.getloadavg()
            rows.append(row)
            options.results.write_text(json.dumps({"rows": rows}, indent=1) + "\n")


main()
