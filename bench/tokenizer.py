#!/usr/bin/env python3
"""Speed of training a tokenizer (20 MB, vocabulary 8192, 2 threads) and of encoding (one thread): Tycho against
Hugging Face's `tokenizers`, side by side, on the text of LibTorch's headers.

    ninja -C build/cpu bench_tokenizer
    TYCHO_PEERS=/path/to/peers/bin/python python3 bench/tokenizer.py

Fresh processes alternate. Both must give the same tokenizer.json and the same ids, or nothing is printed but that. Writes
every number to bench/results/tokenizer.json. Standard library only.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile

BENCH = pathlib.Path(__file__).resolve().parent
HEADERS = "~/.cache/tycho/libtorch-2.11.0/lib/python3.11/site-packages/torch/include"


def gather_text(folder, path, num_bytes):
    """Whole UTF-8 headers in sorted order, up to num_bytes."""
    size = 0
    with open(path, "wb") as out:
        for header in sorted(pathlib.Path(folder).expanduser().rglob("*.h")):
            text = header.read_bytes()
            try:
                text.decode()
            except UnicodeDecodeError:
                continue
            if size + len(text) > num_bytes:
                break
            out.write(text)
            size += len(text)
    if size < num_bytes / 2:
        sys.exit(f"{folder} has only {size} bytes of headers; name another folder with --text-from")
    return size


def run(command, **environment):
    done = subprocess.run([str(word) for word in command], env={**os.environ, **environment}, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"failed with exit code {done.returncode}: {command}\n{done.stderr[-2000:]}")
    return [float(line) for line in done.stdout.split()]


def text_of(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True).stdout.strip()


def same(a, b):
    return pathlib.Path(a).read_bytes() == pathlib.Path(b).read_bytes()


def processor():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.machine()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bench", default="build/cpu/bin/bench_tokenizer", help="Tycho's measuring program")
    parser.add_argument("--text-from", default=HEADERS, help="folder of .h files")
    parser.add_argument("--megabytes", type=float, default=20)
    parser.add_argument("--processes", type=int, default=5)
    args = parser.parse_args()
    peer = [os.environ.get("TYCHO_PEERS", "python3"), BENCH / "peers" / "tokenizers_bpe.py"]
    seconds = {"tycho train": [], "peer train": [], "tycho encode": [], "peer encode": []}
    with tempfile.TemporaryDirectory() as work:
        text = f"{work}/text"
        size = gather_text(args.text_from, text, int(args.megabytes * 1e6))
        for _ in range(args.processes):
            seconds["tycho train"] += run([args.bench, "train", text, 8192, 2, f"{work}/a.json"])
            seconds["peer train"] += run([*peer, "train", text, 8192, 2, f"{work}/b.json"], RAYON_NUM_THREADS="2")
            seconds["tycho encode"].append(run([args.bench, "encode", f"{work}/a.json", text, f"{work}/a.ids"]))
            seconds["peer encode"].append(run([*peer, "encode", f"{work}/b.json", text, f"{work}/b.ids"],
                                              TOKENIZERS_PARALLELISM="false", RAYON_NUM_THREADS="1"))
        if not same(f"{work}/a.json", f"{work}/b.json") or not same(f"{work}/a.ids", f"{work}/b.ids"):
            sys.exit("the two sides do not agree on the tokenizer or on the ids: nothing is compared")
    train = {side: statistics.median(seconds[f"{side} train"]) for side in ("tycho", "peer")}
    # The first pass of a process has cold caches; the best of its passes is what a long conversion sees.
    encode = {side: statistics.median(min(passes) for passes in seconds[f"{side} encode"]) for side in ("tycho", "peer")}
    print("| what | Tycho | tokenizers | ratio |\n|---|---|---|---|")
    print(f"| train, {size / 1e6:.0f} MB, vocabulary 8192, 2 threads | {train['tycho']:.2f} s | {train['peer']:.2f} s | "
          f"{train['peer'] / train['tycho']:.1f}x |")
    print(f"| encode, one thread | {size / encode['tycho'] / 1e6:.1f} MB/s | {size / encode['peer'] / 1e6:.1f} MB/s | "
          f"{encode['peer'] / encode['tycho']:.1f}x |")
    versions = {"python and tokenizers": text_of(peer[0], "-c", "import sys, tokenizers; print(sys.version.split()[0], tokenizers.__version__)"),
                "commit": text_of("git", "-C", BENCH, "rev-parse", "HEAD")}
    report = {"versions": versions, "date": datetime.datetime.now().isoformat(timespec="seconds"), "processor": processor(),
              "cores": os.cpu_count(), "load": os.getloadavg(), "text_bytes": size, "command": sys.argv, "seconds": seconds}
    (BENCH / "results").mkdir(exist_ok=True)
    (BENCH / "results" / "tokenizer.json").write_text(json.dumps(report, indent=1) + "\n")


main()
