#!/usr/bin/env python3
"""The order of an epoch of 10^6, 10^7 and 10^8 samples: Tycho against mosaicml-streaming, side by side.

    ninja -C build/cpu bench_sample_order
    python3 bench/sample_order.py --peers PEERS/bin/python
    python3 bench/sample_order.py --parts resume,loader

orders   Fresh processes of each side by turns. Times are those of the process on the processor; both sides use one thread. Time of
         Tycho: from the sizes of shards to the last id, in batches; of the peer: its shuffle alone. Peak memory is that of the
         process, so the peer's has Python and its packages in it. Both must give the same order, up to 10^7 samples; beyond that
         NumPy's sort may exchange samples of exactly the same position. What the peer cannot hold in memory is skipped.
resume   Seconds to the first batch when a run goes on in the middle or near the end of an epoch of the largest size: with the
         marks that a checkpoint has of its order, which are read from a file, and without, as at a checkpoint that has none.
loader   The same of a loader over a data set of that size, whose index names one shard over and over, and its peak memory after
         1,000 batches.

Writes build/bench/sample_order.json after each row; rows of an earlier call that this one does not measure stay. Standard library
only.
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

from result_file import result_file

BENCH = pathlib.Path(__file__).resolve().parent
SHARD, TOKENS = 8180, 8
# What mosaicml-streaming holds at once for a sample: lists of 8 bytes each, and Python's numbers where it has lists of them.
PEER_BYTES = {"py1e": 48, "py1s": 16, "py1br": 16, "naive": 16, "py2s": 32}


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


def free_bytes():
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable"):
            return int(line.split()[1]) * 1024
    return 0


class Report:
    """Rows by what they measure, written whenever one is added."""

    def __init__(self, path):
        self.path = path
        self.rows = json.loads(path.read_text()) if path.exists() else {}
        self.rows = self.rows if "rows" in self.rows else {"rows": {}}

    def add(self, name, **row):
        row |= {"date": datetime.datetime.now().isoformat(timespec="seconds"), "processor": processor(), "cores": os.cpu_count(),
                "load": os.getloadavg()[0]}
        self.rows["rows"][name] = row
        self.path.write_text(json.dumps(self.rows, indent=1, sort_keys=True) + "\n")


def measure_order(options, report, algo, size):
    peer = BENCH / "peers/streaming_order.py"
    needed = size * PEER_BYTES[algo]
    if needed > free_bytes():
        print(f"{algo:6} {size:>10}  skipped: mosaicml-streaming needs about {needed / 1e9:.0f} GB of memory", flush=True)
        return
    same = None
    if size <= 10_000_000:
        same = run(options.bench, "order", algo, size, "--hash")[2] == run(options.peers, peer, algo, size, "--hash")[2]
    ours, theirs = [], []
    for _ in range(options.rounds if size < 100_000_000 else options.large_rounds):
        ours.append([float(x) for x in run(options.bench, "order", algo, size)[:2]])
        theirs.append([float(x) for x in run(options.peers, peer, algo, size)[:2]])
    our_s, their_s = (statistics.median(x[0] for x in side) for side in (ours, theirs))
    our_kib, their_kib = (max(x[1] for x in side) for side in (ours, theirs))
    report.add(f"order {algo} {size}", same=same, tycho_s=our_s, peer_s=their_s, times=their_s / our_s,
               pairs=[their[0] / our[0] for our, their in zip(ours, theirs)], tycho_mib=our_kib / 1024, peer_mib=their_kib / 1024)
    print(f"{algo:6} {size:>10}  tycho {our_s:8.4f} s {our_kib / 1024:7.0f} MiB   streaming {their_s:8.3f} s "
          f"{their_kib / 1024:7.0f} MiB   {their_s / our_s:5.1f} times, same order: {same}", flush=True)


def measure_resume(options, report, algo, size):
    with tempfile.TemporaryDirectory() as name:
        marks = pathlib.Path(name) / "marks.json"
        marks.write_text("".join(run(options.bench, "marks", algo, size)))
        for position in (size // 2, size - size // 1000):
            for how, file in (("resume", [marks]), ("resume without marks", [])):
                took = [[float(x) for x in run(options.bench, "skip", algo, size, position, *file)] for _ in range(options.rounds)]
                wall, cpu = (statistics.median(x[i] for x in took) for i in (0, 1))
                mib = max(x[2] for x in took) / 1024
                report.add(f"{how} {algo} {size} {position}", s=wall, cpu_s=cpu, all=[x[0] for x in took], mib=mib,
                           marks_bytes=marks.stat().st_size)
                print(f"{algo:6} {how} at {position:>10} of {size}: {wall:.4f} s ({cpu:.4f} s of processor), {mib:.0f} MiB", flush=True)


def measure_loader(options, report, algo, size, folder):
    wall, cpu, kib = (float(x) for x in run(options.bench, "loader", algo, folder, size // 2 // 256 * 256))
    report.add(f"loader {algo} {size // SHARD * SHARD}", first_batch_s=wall, cpu_s=cpu, mib=kib / 1024)
    print(f"{algo:6} loader: first batch {wall:.3f} s ({cpu:.3f} s of processor), {kib / 1024:.0f} MiB", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default=BENCH.parent / "build/cpu/bin/bench_sample_order")
    parser.add_argument("--peers", default=os.environ.get("TYCHO_PEERS"))
    parser.add_argument("--parts", default="orders,resume,loader")
    parser.add_argument("--algos", default="py1e,py1s,py1br,naive,py2s")
    parser.add_argument("--sizes", default="1000000,10000000,100000000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--large-rounds", type=int, default=1, help="of 10^8 samples and more")
    options = parser.parse_args()
    parts, algos = options.parts.split(","), options.algos.split(",")
    sizes = [int(size) for size in options.sizes.split(",")]
    if "orders" in parts and not options.peers:
        parser.error("orders needs --peers, the Python that has mosaicml-streaming")
    report = Report(result_file("sample_order"))
    if "orders" in parts:
        for size in sizes:
            for algo in algos:
                measure_order(options, report, algo, size)
    if "resume" in parts:
        for algo in algos:
            measure_resume(options, report, algo, max(sizes))
    if "loader" in parts:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            write_data(folder, max(sizes))
            for algo in algos:
                measure_loader(options, report, algo, max(sizes), folder)


if __name__ == "__main__":
    main()
