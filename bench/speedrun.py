#!/usr/bin/env python3
"""nanoGPT's published CPU run (characters of tiny Shakespeare) in PyTorch, the same in Tycho, and recipes/speedrun/fast.lua, which
reaches its validation loss sooner. Fresh processes alternate, one seed after the other, with the same text and threads; the loss
of all three is that of every validation window.

    TYCHO_PEERS=/path/to/peers/bin/python python3 bench/speedrun.py --tycho build/cpu/bin/tycho --text input.txt

input.txt: data/tinyshakespeare/input.txt of github.com/karpathy/char-rnn. Prints a Markdown table and writes every number to
build/bench/speedrun.json. Exits with 1 where the peer, given the weights that Tycho trained, finds another loss, and where fast.lua ends
above the peer's loss. Standard library only.
"""

import argparse
import array
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from result_file import result_file

ROOT = pathlib.Path(__file__).resolve().parent.parent
PEER, RECIPES = ROOT / "bench" / "peers" / "nanogpt.py", ROOT / "recipes" / "speedrun"
SAME_LOSS = 1e-4  # two fp32 evaluators of the same weights


def write_tokens(text_file, folder):
    """train.bin and val.bin as nanoGPT's prepare.py makes them: characters by their sorted number, nine tenths to train on."""
    text = pathlib.Path(text_file).read_text(encoding="utf-8")
    ids = {character: i for i, character in enumerate(sorted(set(text)))}
    if len(ids) != 65:
        sys.exit(f"[bench/speedrun.py] expected a text of 65 characters, got {len(ids)} in {text_file}")
    cut = int(len(text) * 0.9)
    for name, part in (("train", text[:cut]), ("val", text[cut:])):
        (folder / f"{name}.bin").write_bytes(array.array("H", (ids[character] for character in part)).tobytes())


def run(command, environment=None):
    """Standard output of a command, and the seconds of processor time that it took."""
    before = os.times()
    done = subprocess.run([str(x) for x in command], env={**os.environ, **(environment or {})}, capture_output=True, text=True)
    after = os.times()
    if done.returncode != 0:
        sys.exit(f"{command} failed with exit code {done.returncode}:\n{done.stderr[-4000:]}")
    return done.stdout, after.children_user - before.children_user + after.children_system - before.children_system


def run_peer(args, work, seed):
    out, cpu_s = run([args.peers, PEER, "--data", work, "--seed", seed, "--threads", args.threads])
    result = json.loads(out)
    return {"loop_s": result["loop_s"], "cpu_s": cpu_s, "val_loss": result["val_loss"]}


def run_tycho(args, work, recipe, seed):
    folder = work / f"{recipe}-{seed}"
    _, cpu_s = run([args.tycho, "run", RECIPES / f"{recipe}.lua", f"run_dir={folder}", f"seed={seed}", f"threads={args.threads}",
                    "device=cpu"], {"TYCHO_SPEEDRUN_DATA": str(work)})
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    steps = [record for record in records if "step_s" in record]
    losses = [record["eval.val.loss"] for record in records if "eval.val.loss" in record]
    return {"loop_s": sum(record["step_s"] for record in steps), "cpu_s": cpu_s, "val_loss": losses[-1], "steps": len(steps)}


def check_evaluators(args, work, seed, val_loss):
    """The peer's loss of the weights that nanogpt.lua ended with is the one that Tycho found."""
    checkpoints = sorted((work / f"nanogpt-{seed}" / "checkpoints").glob("step-*/rank-00000.safetensors"))
    out, _ = run([args.peers, PEER, "--data", work, "--threads", args.threads, "--weights", checkpoints[-1]])
    theirs = json.loads(out)["val_loss"]
    print(f"the same weights: {val_loss:.6f} here, {theirs:.6f} by the peer")
    return abs(theirs - val_loss) < SAME_LOSS


def spread(values, digits):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}–{max(values):.{digits}f})"


def table(results):
    lines = ["| run | validation loss | loop, s | times as fast | processor, s | times as little |", "|---|---|---|---|---|---|"]
    for name, runs in results.items():
        ratios = [[peer[key] / ours[key] for peer, ours in zip(results["peer"], runs)] for key in ("loop_s", "cpu_s")]
        losses, loops, cpus = ([one[key] for one in runs] for key in ("val_loss", "loop_s", "cpu_s"))
        lines.append(f"| {name} | {spread(losses, 3)} | {spread(loops, 1)} | {spread(ratios[0], 2)} | {spread(cpus, 1)} | {spread(ratios[1], 2)} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tycho", type=os.path.abspath, required=True)
    parser.add_argument("--peers", default=os.environ.get("TYCHO_PEERS"), help="Python with torch; default: TYCHO_PEERS")
    parser.add_argument("--text", required=True, help="tiny Shakespeare")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    args = parser.parse_args()
    if not args.peers:
        sys.exit("no Python with torch: set TYCHO_PEERS or --peers; see bench/peers/README.md")

    results = {"peer": [], "nanogpt": [], "fast": []}
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        write_tokens(args.text, work)
        for seed in args.seeds:
            results["nanogpt"].append(run_tycho(args, work, "nanogpt", seed))
            results["peer"].append(run_peer(args, work, seed))
            results["fast"].append(run_tycho(args, work, "fast", seed))
            print(f"seed {seed}: {({name: runs[-1] for name, runs in results.items()})}", file=sys.stderr, flush=True)
        is_same = check_evaluators(args, work, args.seeds[0], results["nanogpt"][0]["val_loss"])
    print(table(results))
    missed = [seed for seed, fast, peer in zip(args.seeds, results["fast"], results["peer"]) if fast["val_loss"] > peer["val_loss"]]
    if missed:
        print(f"void: with the seeds {missed} fast.lua ends above the peer's loss")
    result_file("speedrun").write_text(json.dumps({"threads": args.threads, "seeds": args.seeds, "results": results}, indent=1))
    return 0 if is_same and not missed else 1


if __name__ == "__main__":
    sys.exit(main())
