#!/usr/bin/env python3
"""The order of an epoch of 10^6, 10^7 and 10^8 samples: Tycho against mosaicml-streaming, side by side.

    ninja -C build/cpu bench_sample_order
    python3 bench/sample_order.py --peers PEERS/bin/python

Fresh processes alternate. Times are those of the process on the processor, which others do not lengthen: both sides use one
thread. Time of Tycho: from the sizes of shards to the last id, in batches; of the peer: its shuffle alone.
Peak memory is that of the process, so the peer's has Python and its packages in it. Both must give the same order, up to 10^7
samples; beyond that NumPy's sort may exchange samples of exactly the same position. Then: the time to the first batch when a
run resumes in the middle or near the end of an epoch of 10^8 samples, and the memory of a loader over such a data set, whose
index names one shard over and over. Writes bench/results/sample_order.json. Standard library only.
"""
import argparse
import datetime
import json
import os
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile

BENCH = pathlib.Path(__file__).resolve().parent
SHARD, TOKENS = 8180, 8


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"failed with exit code {done.returncode}: {command}\n{done.stderr[-2000:]}")
    return done.stdout.split()


def write_data(folder, samples):
    """One shard under an index that names it often enough."""
    value = bytes([(1 << 2) | 0, TOKENS]) + struct.pack(f"<{TOKENS}i", *range(TOKENS))
    sample = struct.pack("<I", len(value)) + value
    config = b"{}"
    begin = 4 + 4 * (SHARD + 1) + len(config)
    offsets = [begin + i * len(sample) for i in range(SHARD + 1)]
    shard = struct.pack(f"<{SHARD + 2}I", SHARD, *offsets) + config + sample * SHARD
    (folder / "shard.mds").write_bytes(shard)
    entry = {"column_encodings": ["ndarray:int32"], "column_names": ["tokens"], "column_sizes": [None], "compression": None,
             "format": "mds", "hashes": [], "raw_data": {"basename": "shard.mds", "bytes": len(shard), "hashes": {}},
             "samples": SHARD, "size_limit": 1 << 26, "version": 2, "zip_data": None}
    (folder / "index.json").write_text(json.dumps({"shards": [entry] * (samples // SHARD), "version": 2}))


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default=BENCH.parent / "build/cpu/bin/bench_sample_order")
    parser.add_argument("--peers", default=os.environ.get("TYCHO_PEERS"), required="TYCHO_PEERS" not in os.environ)
    parser.add_argument("--algos", default="py1e,py1s,py1br,naive")
    parser.add_argument("--sizes", default="1000000,10000000,100000000")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    peer = BENCH / "peers/streaming_order.py"
    report = {"date": datetime.datetime.now().isoformat(timespec="seconds"), "processor": processor(), "cores": os.cpu_count(),
              "load_before": os.getloadavg(), "orders": [], "resume": [], "loader": []}
    sizes = [int(size) for size in options.sizes.split(",")]
    for algo in options.algos.split(","):
        for size in sizes:
            same = None
            if size <= 10_000_000:
                same = run(options.bench, "order", algo, size, "--hash")[2] == run(options.peers, peer, algo, size, "--hash")[2]
            ours, theirs = [], []
            for _ in range(options.rounds if size < 100_000_000 else 1):
                ours.append([float(x) for x in run(options.bench, "order", algo, size)[:2]])
                theirs.append([float(x) for x in run(options.peers, peer, algo, size)[:2]])
            our_s, their_s = (statistics.median(x[0] for x in side) for side in (ours, theirs))
            our_kib, their_kib = (max(x[1] for x in side) for side in (ours, theirs))
            row = {"algo": algo, "samples": size, "same": same, "tycho_s": our_s, "peer_s": their_s, "times": their_s / our_s,
                   "tycho_mib": our_kib / 1024, "peer_mib": their_kib / 1024, "all": [ours, theirs]}
            report["orders"].append(row)
            print(f"{algo:6} {size:>10}  tycho {our_s:8.3f} s {our_kib / 1024:7.0f} MiB   streaming {their_s:8.3f} s "
                  f"{their_kib / 1024:7.0f} MiB   {their_s / our_s:5.1f} times, same order: {same}", flush=True)
    largest = max(sizes)
    for algo in options.algos.split(","):
        for position in (largest // 2, largest - 100_000):
            took = [float(x) for x in run(options.bench, "skip", algo, largest, position)]
            report["resume"].append({"algo": algo, "samples": largest, "position": position, "s": took[0], "mib": took[1] / 1024})
            print(f"{algo:6} resume at {position:>10} of {largest}: {took[0]:.3f} s, {took[1] / 1024:.0f} MiB", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_data(folder, largest)
        for algo in options.algos.split(","):
            took = [float(x) for x in run(options.bench, "loader", algo, folder, largest // 2 // 256 * 256)]
            report["loader"].append({"algo": algo, "samples": largest // SHARD * SHARD, "first_batch_s": took[0], "mib": took[1] / 1024})
            print(f"{algo:6} loader: first batch {took[0]:.3f} s, {took[1] / 1024:.0f} MiB", flush=True)
    report["load_after"] = os.getloadavg()
    (BENCH / "results/sample_order.json").write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
