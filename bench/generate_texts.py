#!/usr/bin/env python3
"""Speed of greedy texts side by side against the same one by one, in one process: GPT-2's 124M shapes, random weights.

    cmake --build build/cpu --target tycho bench_generate
    python3 bench/generate_texts.py

Both ways must write the same tokens, or a row is void. Prints a Markdown table and writes build/bench/generate_texts.json.
"""

import argparse
import datetime
import json
import os
import statistics
import sys
import tempfile

from generate import OURS
from result_file import result_file
from train_step import BENCH, hardware, note, run

MODEL = """local t = require "tycho"
local r = t.recipe "gpt2"
r.model = t.model.gpt2 { width = 768, layers = 12, heads = 12, vocab_size = 50257 }
r.seq_len, r.global_batch, r.max_duration, r.precision = 16, "1sp", "1ba", "fp32"
r.train_data = t.data.mds { local_dir = "data" }
r.optimizer = t.optim.adamw { lr = 1e-9 }
return r
"""


def make_model(args, folder):
    """A run of one step, exported: its weights are those that the seed draws."""
    tycho = os.path.join(args.bin, "tycho")
    with open(os.path.join(folder, "a.txt"), "w") as file:
        file.write("\n".join(str(i) for i in range(2000)))
    with open(os.path.join(folder, "gpt2.lua"), "w") as file:
        file.write(MODEL)
    here = os.getcwd()
    os.chdir(folder)
    try:
        for command in (["tokenizer", "train", "a.txt", "--vocab-size", "300", "--out", "tokenizer.json"],
                        ["data", "convert", "a.txt", "--tokenizer", "tokenizer.json", "--no-separator", "--concat-tokens", "16", "--out", "data"],
                        ["run", "gpt2.lua"], ["convert", "runs/gpt2", "model"]):
            run([tycho, *command], {}, "tycho " + command[0])
    finally:
        os.chdir(here)
    return os.path.join(folder, "model")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.path.abspath(os.path.join(BENCH, "..", "build", "cpu", "bin")))
    parser.add_argument("--texts", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--prompt-tokens", type=int, default=16)
    parser.add_argument("--new-tokens", type=int, default=24)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    args = parser.parse_args()
    report = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "command": sys.argv,
              "hardware": hardware(), "results": {}}
    lines = [f"| GPT-2 124M, {args.precision}, prompts of {args.prompt_tokens} tokens, {args.new_tokens} new ones | one by one, s | together, s | faster |",
             "|---|---|---|---|"]
    with tempfile.TemporaryDirectory(prefix="tycho-bench-") as work:
        model = make_model(args, work)
        for texts in args.texts:
            command = [os.path.join(args.bin, "bench_generate"), model, str(args.prompt_tokens), str(args.new_tokens), args.precision,
                       str(args.threads), str(texts)]
            got = json.loads(run(command, OURS, "bench_generate")[1].splitlines()[-1])
            report["results"][texts] = got
            alone, together = statistics.median(got["one_by_one_s"]), statistics.median(got["together_s"])
            lines.append(f"| {texts} texts | {alone:.2f} | {together:.2f} | {alone / together:.2f}x"
                         f"{'' if got['same_texts'] else ' (other texts: void)'} |")
            note(lines[-1])
    report["table"] = "\n".join(lines)
    with open(result_file("generate_texts"), "w") as file:
        json.dump(report, file, indent=1)
    print(report["table"])


if __name__ == "__main__":
    main()
