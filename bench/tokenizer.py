#!/usr/bin/env python3
"""Speed of training a tokenizer (20 MB, vocabulary 32,768, 2 threads) and of encoding with it (one thread and two): Tycho against
Hugging Face's `tokenizers` and, for encoding, tiktoken, side by side, on the text of LibTorch's headers or of another folder.

    ninja -C build/cpu bench_tokenizer
    TYCHO_PEERS=/path/to/peers/bin/python python3 bench/tokenizer.py

Fresh processes alternate. All must give the same tokenizer.json and the same ids, or nothing is printed but that. Writes
every number to build/bench/tokenizer.json. Standard library only.
"""
import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from result_file import result_file
from sample_order import processor
from texts import add_options, whole_texts

BENCH = pathlib.Path(__file__).resolve().parent


def run(command, **environment):
    done = subprocess.run([str(word) for word in command], env={**os.environ, **environment}, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"failed with exit code {done.returncode}: {command}\n{done.stderr[-2000:]}")
    return [float(line) for line in done.stdout.split()]


def text_of(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True).stdout.strip()


def same(a, b):
    return pathlib.Path(a).read_bytes() == pathlib.Path(b).read_bytes()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bench", default="build/cpu/bin/bench_tokenizer", help="Tycho's measuring program")
    add_options(parser)
    parser.add_argument("--vocabulary", type=int, default=32768)
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--train-only", action="store_true", help="nothing is encoded; writes build/bench/tokenizer_train.json")
    args = parser.parse_args()
    python = os.environ.get("TYCHO_PEERS", "python3")
    sides = {"tycho": [args.bench], "tokenizers": [python, BENCH / "peers" / "tokenizers_bpe.py"],
             "tiktoken": [python, BENCH / "peers" / "tiktoken_bpe.py"]}
    train = {"tycho": [], "tokenizers": []}
    encode = {side: {1: [], 2: []} for side in sides}
    with tempfile.TemporaryDirectory() as work:
        text = f"{work}/text"
        size = pathlib.Path(text).write_bytes(b"".join(whole_texts(args)))
        for _ in range(args.processes):
            for side in train:
                train[side] += run([*sides[side], "train", text, args.vocabulary, 2, f"{work}/{side}.json"], RAYON_NUM_THREADS="2")
            if not same(f"{work}/tycho.json", f"{work}/tokenizers.json"):
                sys.exit("the two sides do not agree on the tokenizer: nothing is compared")
            for threads in () if args.train_only else (1, 2):
                for side in sides:
                    parallel = "false" if threads == 1 else "true"
                    encode[side][threads].append(run([*sides[side], "encode", f"{work}/tycho.json", text, f"{work}/{side}.ids", threads],
                                                     TOKENIZERS_PARALLELISM=parallel, RAYON_NUM_THREADS=str(threads)))
                    if not same(f"{work}/tycho.ids", f"{work}/{side}.ids"):
                        sys.exit(f"{side} gives other ids: nothing is compared")
    median = {side: statistics.median(values) for side, values in train.items()}
    print("| what | Tycho | tokenizers | ratio | tiktoken | ratio |\n|---|---|---|---|---|---|")
    print(f"| train, {size / 1e6:.0f} MB, vocabulary {args.vocabulary}, 2 threads | {median['tycho']:.2f} s | {median['tokenizers']:.2f} s | "
          f"{median['tokenizers'] / median['tycho']:.1f}x | | |")
    for threads in () if args.train_only else (1, 2):
        # The first pass of a process has cold caches; the best of its passes is what a long conversion sees.
        best = {side: statistics.median(min(passes) for passes in encode[side][threads]) for side in sides}
        speed = {side: f"{size / value / 1e6:.1f} MB/s" for side, value in best.items()}
        print(f"| encode, threads: {threads} | {speed['tycho']} | {speed['tokenizers']} | {best['tokenizers'] / best['tycho']:.1f}x | "
              f"{speed['tiktoken']} | {best['tiktoken'] / best['tycho']:.1f}x |")
    versions = {"python, tokenizers, tiktoken": text_of(python, "-c", "import sys, tokenizers, tiktoken; print(sys.version.split()[0], "
                                                        "tokenizers.__version__, tiktoken.__version__)"),
                "commit": text_of("git", "-C", BENCH, "rev-parse", "HEAD")}
    report = {"versions": versions, "date": datetime.datetime.now().isoformat(timespec="seconds"), "processor": processor(),
              "cores": os.cpu_count(), "load": os.getloadavg(), "text_bytes": size, "command": sys.argv,
              "seconds": {"train": train, "encode": encode}}
    result_file("tokenizer_train" if args.train_only else "tokenizer").write_text(json.dumps(report, indent=1) + "\n")


main()
