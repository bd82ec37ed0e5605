#!/usr/bin/env python3
"""Speed of greedy generation: Tycho against transformers, on the same random weights of GPT-2's 124M shapes, one sequence; or
of Qwen3-0.6B's widths at eight layers; or of several texts at once (--texts).

    cmake --build build/cpu --target bench_generate
    TYCHO_PEERS=/path/to/peers/bin/python python3 bench/generate.py

Fresh processes alternate. Both must choose the same tokens (in fp32), or the rows are void. PyTorch gets the better of its
environments (train_step.py), found by a probe. Prints a Markdown table and writes build/bench/generate.json.
"""

import argparse
import datetime
import json
import os
import shutil
import statistics
import sys
import tempfile

from result_file import result_file
from train_step import BENCH, PEER_ENVIRONMENTS, hardware, note, run, spread


# As tycho sets it when it opens the engine: threads of OpenMP that wait sleep.
OURS = {"OMP_WAIT_POLICY": "passive"}


def ours(args, folder, precision):
    command = [args.binary, folder, str(args.prompt_tokens), str(args.new_tokens), precision, str(args.threads)]
    return json.loads(run(command, OURS, "bench_generate")[1].splitlines()[-1])


def theirs(args, folder, precision, environment, new_tokens=None):
    command = [args.peers, os.path.join(BENCH, "peers", "generate_hf.py"), "run", folder, str(args.prompt_tokens),
               str(new_tokens or args.new_tokens), precision, str(args.threads), str(args.texts)]
    return json.loads(run(command, PEER_ENVIRONMENTS[environment], "the peer")[1].splitlines()[-1])


def compare_texts(args, folder, precision, environment):
    """Several texts at once: tokens/s over everything, prompts included."""
    command = [args.binary, folder, str(args.prompt_tokens), str(args.new_tokens), precision, str(args.threads), str(args.texts)]
    tokens, a, b = args.texts * args.new_tokens, [], []
    for i in range(args.processes):
        mine = json.loads(run(command, OURS, "bench_generate")[1].splitlines()[-1])
        other = theirs(args, folder, precision, environment)
        a.append({"tokens_per_s": tokens / statistics.median(mine["together_s"]), "texts": mine["texts"]})
        b.append({"tokens_per_s": tokens / other["total_s"], "texts": other["texts"]})
        note(f"  process {i + 1}: tycho {a[-1]['tokens_per_s']:.1f}, transformers {b[-1]['tokens_per_s']:.1f} tokens/s")
    return {"environment": environment, "tycho": a, "peer": b, "same_tokens": a[0]["texts"] == b[0]["texts"]}


def compare(args, folder, precision):
    probes = {name: theirs(args, folder, precision, name, max(8, args.new_tokens // 4))["tokens_per_s"]
              for name in PEER_ENVIRONMENTS}
    best = max(probes, key=probes.get)
    note(f"{precision}: transformers' best environment is {best}")
    if args.texts > 1:
        return {"probes": probes, **compare_texts(args, folder, precision, best)}
    a, b = [], []
    for i in range(args.processes):
        a.append(ours(args, folder, precision))
        b.append(theirs(args, folder, precision, best))
        note(f"  process {i + 1}: tycho {a[-1]['tokens_per_s']:.1f}, transformers {b[-1]['tokens_per_s']:.1f} tokens/s")
    return {"environment": best, "probes": probes, "tycho": a, "peer": b, "same_tokens": a[0]["tokens"] == b[0]["tokens"]}


def table(args, results):
    shapes = {"gpt2": "GPT-2 124M", "qwen3": "Qwen3-0.6B at eight layers"}[args.model]
    lines = [f"| {shapes}, greedy, batch {args.texts} | Tycho: median (least–most) | transformers | ratio |", "|---|---|---|---|"]
    measured = [("tokens_per_s", "tokens/s after the prompt", 1), ("prompt_s", "prompt, s", 3)]
    if args.texts > 1:
        measured = [("tokens_per_s", "tokens/s, prompts included", 1)]
    for precision, r in results.items():
        for key, text, digits in measured:
            mine, other = (statistics.median(x[key] for x in r[side]) for side in ("tycho", "peer"))
            faster = mine / other if key == "tokens_per_s" else other / mine
            void = "" if r["same_tokens"] or precision != "fp32" else " (other tokens: void)"
            lines.append(f"| {precision}, {text} | {spread(r['tycho'], key, digits)} | {spread(r['peer'], key, digits)} | "
                         f"{faster:.2f}x faster{void} |")
        if args.texts == 1:
            lines.append(f"| {precision}, share of the rate at which memory is read | {spread(r['tycho'], 'memory_share', 2)} | | |")
    return "\n".join(lines)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.path.join(BENCH, "..", "build", "cpu", "bin", "bench_generate"))
    parser.add_argument("--peers", default=os.environ.get("TYCHO_PEERS"), help="Python with PyTorch and transformers")
    parser.add_argument("--precision", choices=["fp32", "bf16"], action="append", help="default: both")
    parser.add_argument("--model", choices=["gpt2", "qwen3"], default="gpt2")
    parser.add_argument("--texts", type=int, default=1, help="texts at once")
    parser.add_argument("--prompt-tokens", type=int, default=64)
    parser.add_argument("--new-tokens", type=int, default=128)
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    for name in ("binary", "peers"):
        if not getattr(args, name) or not shutil.which(getattr(args, name)):
            parser.error(f"expected a program in --{name}, got {getattr(args, name) or 'none'}")
    return args


def main():
    args = arguments()
    report = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "command": sys.argv,
              "hardware": hardware()}
    with tempfile.TemporaryDirectory(prefix="tycho-bench-") as work:
        folder = os.path.join(work, "model")
        run([args.peers, os.path.join(BENCH, "peers", "generate_hf.py"), "make", folder, args.model], {}, "the peer")
        report["results"] = {p: compare(args, folder, p) for p in args.precision or ["fp32", "bf16"]}
    report["table"] = table(args, report["results"])
    with open(result_file(f"generate-{args.model}-{args.texts}"), "w") as file:
        json.dump(report, file, indent=1)
    print(report["table"])


if __name__ == "__main__":
    main()
