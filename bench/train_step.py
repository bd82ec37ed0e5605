#!/usr/bin/env python3
"""Speed of a training step, time to the first one and peak memory: Tycho against the same model in Python PyTorch, eager and
compiled, side by side; and the step over its matrix products alone.

    TYCHO_PEERS=/path/to/peers/bin/python python3 bench/train_step.py --tycho build/cpu/bin/tycho --model demo

Fresh processes alternate, with the same first weights, data, batch and threads. PyTorch first gets a short probe of each of its
settings and keeps the best. Prints a Markdown table and writes every number to build/bench/<name>.json. When the losses of
the two sides part, the rows are marked void and the exit code is 1. Standard library only.
"""

import argparse
import contextlib
import datetime
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import agreement
import synthetic_mds
from result_file import result_file

BENCH = os.path.dirname(os.path.abspath(__file__))

# The demo's Llama, a Llama of GPT-2's size, GPT-2 and MPT themselves, and tiny ones to try this script; steps are those of one
# process.
MODELS = {
    "tiny": dict(family="llama", width=64, layers=2, heads=4, kv_heads=2, ffn_width=128, vocab=512, tied=True, seq_len=64,
                 batch=4, steps=30, warmup=5),
    "tiny-gpt2": dict(family="gpt2", width=64, layers=2, heads=4, ffn_width=256, vocab=512, seq_len=64, batch=4, steps=30,
                      warmup=5),
    "tiny-mpt": dict(family="mpt", width=96, layers=2, heads=6, ffn_width=384, vocab=512, seq_len=64, batch=4, steps=30,
                     warmup=5),
    "demo": dict(family="llama", width=256, layers=4, heads=4, kv_heads=2, ffn_width=768, vocab=4096, tied=True, seq_len=256,
                 batch=16, steps=60, warmup=10),
    "llama-tiny-b8-t256": dict(family="llama", width=256, layers=4, heads=4, kv_heads=2, ffn_width=768, vocab=4096, tied=True,
                               seq_len=256, batch=8, steps=80, warmup=10),
    "llama-tiny-b1-t32": dict(family="llama", width=256, layers=4, heads=4, kv_heads=2, ffn_width=768, vocab=4096, tied=True,
                              seq_len=32, batch=1, steps=300, warmup=20),
    "125m-b4-t64": dict(family="llama", width=768, layers=12, heads=12, kv_heads=12, ffn_width=2048, vocab=32000, tied=False,
                        seq_len=64, batch=4, steps=40, warmup=5),
    "125m-b1-t1024": dict(family="llama", width=768, layers=12, heads=12, kv_heads=12, ffn_width=2048, vocab=32000, tied=False,
                          seq_len=1024, batch=1, steps=15, warmup=3),
    "gpt2-b4-t64": dict(family="gpt2", width=768, layers=12, heads=12, ffn_width=3072, vocab=50257, seq_len=64, batch=4,
                        steps=40, warmup=5),
    "gpt2-b1-t1024": dict(family="gpt2", width=768, layers=12, heads=12, ffn_width=3072, vocab=50257, seq_len=1024, batch=1,
                          steps=12, warmup=3),
    "tiny-qwen3": dict(family="qwen3", width=64, layers=2, heads=4, kv_heads=2, head_width=32, ffn_width=128, vocab=512, tied=True,
                       seq_len=64, batch=4, steps=30, warmup=5),
    # The widths of Qwen3-0.6B, against transformers' own class.
    "qwen3-b2-t256": dict(family="qwen3", width=1024, layers=8, heads=16, kv_heads=8, head_width=128, ffn_width=3072, vocab=16384,
                          tied=True, seq_len=256, batch=2, steps=12, warmup=3),
    "mpt-b2-t512": dict(family="mpt", width=768, layers=12, heads=12, ffn_width=3072, vocab=50368, seq_len=512, batch=2,
                        steps=12, warmup=3),
}

# glibc that keeps and grows its heap instead of giving pages back after every step, with huge pages under it.
KEEP_MEMORY = {
    "MALLOC_TOP_PAD_": "268435456",
    "MALLOC_TRIM_THRESHOLD_": "8589934592",
    "MALLOC_MMAP_THRESHOLD_": "8589934592",
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
}
PEER_ENVIRONMENTS = {
    "default": {},
    "passive wait": {"OMP_WAIT_POLICY": "passive"},
    "kept memory": KEEP_MEMORY,
    "kept memory, passive wait": {**KEEP_MEMORY, "OMP_WAIT_POLICY": "passive"},
}
# What bench_step_vs_matmul calls the shapes of a model.
PRODUCTS = {"demo": "demo", "llama-tiny": "demo", "125m": "125m", "gpt2": "gpt2", "mpt": "mpt"}
PEER_PRECISIONS = {"fp32": ["fp32"], "bf16": ["bf16-autocast", "bf16-pure"]}


def run(command, environment, name):
    """Runs a command to its end and returns (start time, standard output); a failure ends the benchmark."""
    start = time.time()
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{name} failed with exit code {done.returncode}:\n  {' '.join(command)}\n{done.stderr[-4000:]}")
    return start, done.stdout


def summary(start, ends, losses, model):
    """What both sides are judged by: wall time between the ends of steps, warm-up left out."""
    step_s = [end - begin for begin, end in zip(ends, ends[1:])]
    timed = step_s[model["warmup"] - 1:]
    if not timed:
        sys.exit(f"only {len(ends)} steps were done: nothing is left after {model['warmup']} of warm-up")
    return {
        "tokens_per_s": model["batch"] * model["seq_len"] / statistics.median(timed),
        "first_step_s": ends[0] - start,
        "timed_steps": len(timed),
        "step_s": step_s,
        "losses": losses,
    }


def start_tycho(args, model, precision, data, run_dir, weights, more_pins):
    """Runs one process to its end; returns (start time, command)."""
    pins = {
        "run_dir": run_dir, "train_data.local_dir": data, "precision": precision, "threads": args.threads, "device": "cpu",
        "seq_len": model["seq_len"], "global_batch": f"{model['batch']}sp", "max_duration": f"{model['steps']}ba",
        "model.width": model["width"], "model.layers": model["layers"], "model.heads": model["heads"],
        "model.ffn_width": model["ffn_width"], "model.vocab_size": model["vocab"],
    }
    if "kv_heads" in model:
        pins |= {"model.kv_heads": model["kv_heads"], "model.tied": "true" if model["tied"] else "false"}
        pins |= {"model.head_width": model["head_width"]} if "head_width" in model else {}
    else:
        pins |= {"model.max_seq_len": model["seq_len"]}
    pins |= more_pins
    command = [args.tycho, "run", os.path.join(BENCH, "train_step.lua"), *(f"{key}={value}" for key, value in pins.items())]
    start, _ = run(command, {"TYCHO_BENCH_FAMILY": model["family"], "TYCHO_BENCH_WEIGHTS": weights}, "tycho")
    return start, command


def run_tycho(args, model, precision, data, work, weights="", more_pins=None):
    """One process, which begins with those weights or with first values of its own."""
    run_dir = tempfile.mkdtemp(dir=work)
    start, command = start_tycho(args, model, precision, data, run_dir, weights, more_pins or {})
    with open(os.path.join(run_dir, "metrics.jsonl")) as file:
        records = [json.loads(line) for line in file]
    shutil.rmtree(run_dir)
    result = summary(start, [r["time"] for r in records], [r["loss"] for r in records], model)
    return {**result, "command": command, "peak_gb": max(r["memory_bytes"] for r in records) / 1e9}


def make_first_weights(args, model, data, work):
    """A checkpoint of Tycho's with first values, for both sides to begin with: one step at a rate that moves nothing."""
    run_dir = os.path.join(work, "first-weights")
    start_tycho(args, model, "fp32", data, run_dir, "", {"optimizer.lr": "1e-30", "max_duration": "1ba"})
    checkpoints = os.path.join(run_dir, "checkpoints")
    folder, = (name for name in os.listdir(checkpoints) if name.startswith("step-"))
    return os.path.join(checkpoints, folder)


def run_peer(args, model, setting, data, seconds, weights=None, extra_environment=None):
    command = [args.peers, os.path.join(BENCH, "peers", "train_eager.py"), "--data", data, "--threads", str(args.threads),
               "--precision", setting["precision"], "--gqa", setting["gqa"], "--seconds", str(seconds)]
    for key, value in model.items():
        if key != "tied":
            command += ["--" + key.replace("_", "-"), str(value)]
    command += ["--tied"] if model.get("tied") else []
    command += ["--weights", os.path.join(weights, "rank-00000.safetensors")] if weights else []
    command += ["--compile"] if setting.get("compile") else []
    environment = {**PEER_ENVIRONMENTS[setting["environment"]], **(extra_environment or {})}
    start, out = run(command, environment, "the peer")
    peer = json.loads(out.splitlines()[-1])
    ends = [peer["first_step_time"]]
    for step_s in peer["step_s"][1:]:
        ends.append(ends[-1] + step_s)
    result = summary(start, ends, peer["losses"], model)
    return {**result, "command": command, "environment": environment, "versions": peer["versions"],
            "peak_gb": peer["peak_memory_bytes"] / 1e9}


def best_peer_setting(args, model, precision, data):
    """One short process per setting. Precision and GQA are tried with the default environment, then environments."""
    short = {**model, "warmup": 2, "steps": max(8, model["steps"] // 4)}
    probes = []

    def probe(setting):
        speed = run_peer(args, short, setting, data, args.probe_seconds)["tokens_per_s"]
        probes.append({**setting, "tokens_per_s": speed})
        note(f"  probe {setting['precision']}, GQA {setting['gqa']}, {setting['environment']}: {speed:.0f} tokens/s")
        return speed

    gqa = ["native", "repeat"] if model.get("kv_heads", model["heads"]) != model["heads"] else ["native"]
    kinds = [{"precision": p, "gqa": g, "environment": "default"} for p in PEER_PRECISIONS[precision] for g in gqa]
    best = max(kinds, key=probe)
    others = [{**best, "environment": name} for name in PEER_ENVIRONMENTS if name != "default"]
    for setting in others:
        probe(setting)
    return {key: max(probes, key=lambda p: p["tokens_per_s"])[key] for key in best}, probes


@contextlib.contextmanager
def neighbour():
    """Keeps one core busy, as another program on the machine would."""
    # It ends with this program, however that ends.
    program = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: sum(range(100000))"
    busy = subprocess.Popen([sys.executable, "-c", program])
    try:
        yield
    finally:
        busy.kill()
        busy.wait()


def alternating(args, sides):
    """Runs of every side, one fresh process of each after the other."""
    runs = {name: [] for name in sides}
    for i in range(args.processes):
        for name, side in sides.items():
            runs[name].append(side())
        note(f"  process {i + 1}: " + ", ".join(f"{name} {r[-1]['tokens_per_s']:.0f}" for name, r in runs.items()) + " tokens/s")
    return runs


def beside_a_neighbour(args, model, setting, data, tycho, peer):
    """Both sides while another program keeps a core busy; PyTorch waits for its threads the way that is best then."""
    with neighbour():
        ways = [setting["environment"], "kept memory, passive wait"]
        short = {**model, "warmup": 2, "steps": 8}
        speed = {way: run_peer(args, short, {**setting, "environment": way}, data, args.probe_seconds)["tokens_per_s"]
                 for way in ways}
        best = {**setting, "environment": max(speed, key=speed.get)}
        runs = alternating(args, {"tycho": tycho, "peer": lambda: peer(best)})
    return {**runs, "setting": best, "probes": speed}


def step_over_products(args, model, precision):
    """How much longer than its matrix products a step takes, as bench_step_vs_matmul prints it."""
    shapes = next((name for prefix, name in PRODUCTS.items() if args.model.startswith(prefix)), None)
    if not shapes or not shutil.which(args.products):
        note(f"  no {args.products}: the step over its products is left out" if shapes else "  bench_step_vs_matmul lacks the model")
        return None
    command = [args.products, "--model", shapes, *(["--bf16"] if precision == "bf16" else []), str(model["batch"]),
               str(model["seq_len"]), str(args.rounds)]
    _, out = run(command, {"OMP_NUM_THREADS": str(args.threads)}, "bench_step_vs_matmul")
    note("  " + out.strip())
    return {"command": command, "output": out.strip(), "ratio": float(re.search(r"ratio ([0-9.]+)", out)[1])}


def starts(args, model, precision, setting, data, work):
    """Time to the first step of short processes, with each side's own first values: a run does not begin with a file."""
    short = {**model, "warmup": 1, "steps": 4}
    return alternating(args, {"tycho": lambda: run_tycho(args, short, precision, data, work),
                              "peer": lambda: run_peer(args, short, setting, data, args.seconds)})


def compare(args, model, precision, data, weights, work):
    def tycho():
        return run_tycho(args, model, precision, data, work, weights)

    def peer(setting, environment=None):
        return run_peer(args, model, setting, data, args.seconds, weights, environment)

    result = {"products": step_over_products(args, model, precision)}
    sides = {"tycho": tycho}
    if precision == "bf16" and args.no_bf16_peer:
        return {**result, **alternating(args, sides)}
    setting, result["probes"] = best_peer_setting(args, model, precision, data)
    note(f"  PyTorch's best: {setting}")
    sides["peer"] = lambda: peer(setting)
    if args.compile:
        # Twice to the first step: with an empty and with a filled cache of kernels.
        cache = {"TORCHINDUCTOR_CACHE_DIR": tempfile.mkdtemp(dir=work)}
        compiled, short = {**setting, "compile": True}, {**model, "warmup": 1, "steps": 4}
        result["compile_start"] = {kind: run_peer(args, short, compiled, data, args.seconds, None, cache) for kind in ("cold", "warm")}
        sides["compiled"] = lambda: peer(compiled, cache)
    result |= {"peer_setting": setting, **alternating(args, sides), "starts": starts(args, model, precision, setting, data, work)}
    result["losses"] = agreement.judge(precision, result["tycho"][0]["losses"], result["peer"][0]["losses"])
    if args.neighbour:
        result["neighbour"] = beside_a_neighbour(args, model, setting, data, tycho, peer)
    return result


def spread(runs, key, digits):
    values = sorted(r[key] for r in runs)
    return f"{statistics.median(values):.{digits}f} ({values[0]:.{digits}f}–{values[-1]:.{digits}f})"


def ratio(above, below, key, digits, word):
    """Of the medians, with the least and most of pairs of processes that ran one after the other."""
    middle = statistics.median(r[key] for r in above) / statistics.median(r[key] for r in below)
    pairs = sorted(a[key] / b[key] for a, b in zip(above, below))
    return f"{middle:.{digits}f}{word} ({pairs[0]:.{digits}f}–{pairs[-1]:.{digits}f})"


def rows(precision, r):
    void = "VOID, the losses part: " if r.get("losses", {}).get("void") else ""

    def row(what, ours, theirs="", compared=""):
        return f"| {void}{precision}, {what} | {ours} | {theirs} | {compared} |"

    def speeds(what, ours, theirs):
        return row(what, spread(ours, "tokens_per_s", 0), spread(theirs, "tokens_per_s", 0),
                   ratio(ours, theirs, "tokens_per_s", 2, "x faster"))

    def peaks(what, theirs):
        return row(what, spread(r["tycho"], "peak_gb", 2), spread(theirs, "peak_gb", 2),
                   ratio(r["tycho"], theirs, "peak_gb", 2, " of it"))

    ours = r["tycho"]
    if r["products"]:
        yield row("step over its matrix products alone", f"{r['products']['ratio']:.3f}")
    if "peer" not in r:
        yield row("tokens/s", spread(ours, "tokens_per_s", 0))
        yield row("peak memory, GB", spread(ours, "peak_gb", 2))
        return
    yield speeds("tokens/s", ours, r["peer"])
    if "compiled" in r:
        yield speeds("tokens/s, against torch.compile", ours, r["compiled"])
    if "neighbour" in r:
        yield speeds("tokens/s while a neighbour keeps a core busy", r["neighbour"]["tycho"], r["neighbour"]["peer"])
    our_starts, their_starts = r["starts"]["tycho"], r["starts"]["peer"]
    yield row("start to first step, s", spread(our_starts, "first_step_s", 2), spread(their_starts, "first_step_s", 2),
              ratio(their_starts, our_starts, "first_step_s", 1, "x sooner"))
    for kind, start in r.get("compile_start", {}).items():
        first_s = start["first_step_s"]
        yield row(f"the same against torch.compile, {kind} cache", spread(our_starts, "first_step_s", 2), f"{first_s:.2f}",
                  f"{first_s / statistics.median(x['first_step_s'] for x in our_starts):.1f}x sooner")
    yield peaks("peak memory, GB", r["peer"])
    if "compiled" in r:
        yield peaks("peak memory, GB, against torch.compile", r["compiled"])
    losses = r["losses"]
    yield row(f"losses, farthest apart at step {losses['step']} of the first {agreement.COMPARED_STEPS}", f"{losses['tycho']:.5f}",
              f"{losses['peer']:.5f}", f"{losses['gap']:.1e} apart; {losses['limit']:g} is allowed")


def table(model_name, results):
    lines = [f"| {model_name} | Tycho: median (least–most) | PyTorch | ratio (least–most of pairs) |", "|---|---|---|---|"]
    return "\n".join(lines + [line for precision, r in results.items() for line in rows(precision, r)])


def hardware():
    def text_of(*command):
        try:
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError):
            return ""

    lscpu = {key.strip(): value.strip() for key, _, value in
             (line.partition(":") for line in text_of("lscpu").splitlines())}
    names = ("Model name", "CPU(s)", "Thread(s) per core", "L2 cache", "L3 cache", "Flags")
    with open("/proc/meminfo") as file:
        memory = file.readline().split(":")[1].strip()
    return {**{name: lscpu.get(name, "") for name in names}, "memory": memory, "kernel": text_of("uname", "-sr").strip(),
            "load before": os.getloadavg(), "commit": text_of("git", "-C", BENCH, "rev-parse", "HEAD").strip()}


def note(text):
    print(text, file=sys.stderr, flush=True)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tycho", default=os.path.join(BENCH, "..", "build", "cpu", "bin", "tycho"))
    parser.add_argument("--peers", default=os.environ.get("TYCHO_PEERS"),
                        help="Python with PyTorch (bench/peers/README.md); default: $TYCHO_PEERS")
    parser.add_argument("--model", choices=MODELS, default="demo")
    parser.add_argument("--precision", choices=["fp32", "bf16"], action="append", help="default: both")
    parser.add_argument("--processes", type=int, default=5, help="fresh processes of each side")
    parser.add_argument("--steps", type=int, help="steps of a process; default: the model's")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=60,
                        help="PyTorch stops after this long, with at least three timed steps")
    parser.add_argument("--probe-seconds", type=float, default=20, help="the same for a probe")
    parser.add_argument("--compile", action="store_true", help="measure torch.compile, too")
    parser.add_argument("--neighbour", action="store_true", help="measure both beside a program that keeps a core busy, too")
    parser.add_argument("--no-bf16-peer", action="store_true",
                        help="bf16 of Tycho alone: on a CPU without bf16 units PyTorch needs minutes for a step")
    parser.add_argument("--products", help="bench_step_vs_matmul; default: the one beside tycho")
    parser.add_argument("--rounds", type=int, default=5, help="of bench_step_vs_matmul")
    parser.add_argument("--name", help="of the file in build/bench; default: train_step-MODEL")
    args = parser.parse_args()
    args.products = args.products or os.path.join(os.path.dirname(args.tycho), "bench_step_vs_matmul")
    if not args.peers or not shutil.which(args.peers):
        parser.error("expected a Python that has PyTorch in TYCHO_PEERS or --peers, got "
                     f"{args.peers or 'none'}; bench/peers/README.md tells how to make one")
    if not shutil.which(args.tycho):
        parser.error(f"there is no {args.tycho}; build it or name it with --tycho")
    return args


def main():
    args = arguments()
    model = {**MODELS[args.model], **({"steps": args.steps} if args.steps else {})}
    if model["steps"] < model["warmup"] + 3:
        sys.exit(f"--steps must be at least {model['warmup'] + 3}: {model['warmup']} are warm-up")
    report = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "command": sys.argv,
              "model": {"name": args.model, **model}, "threads": args.threads, "hardware": hardware(),
              "tycho_version": run([args.tycho, "version"], {}, "tycho")[1].strip(), "results": {}}
    with tempfile.TemporaryDirectory(prefix="tycho-bench-") as work:
        data = os.path.join(work, "data")
        samples = model["batch"] * model["steps"]
        synthetic_mds.write_dataset(data, model["vocab"], model["seq_len"], samples)
        weights = make_first_weights(args, model, data, work)
        for precision in args.precision or ["fp32", "bf16"]:
            note(f"{args.model}, {precision}:")
            report["results"][precision] = compare(args, model, precision, data, weights, work)
    report["table"] = table(args.model, report["results"])
    path = result_file(args.name or f"train_step-{args.model}")
    with open(path, "w") as file:
        json.dump(report, file, indent=1)
    print(report["table"])
    note(f"every number: {os.path.relpath(path)}")
    return 1 if any(r.get("losses", {}).get("void") for r in report["results"].values()) else 0


if __name__ == "__main__":
    sys.exit(main())
