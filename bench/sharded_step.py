#!/usr/bin/env python3
"""Speed and peak memory of a sharded training step: two ranks of one thread each, Tycho with parallel.dp_shard = 2 against PyTorch's
FSDP2 (fully_shard) over Gloo, with the same model, first weights, data and batch.

    TYCHO_PEERS=/path/to/peers/bin/python python3 bench/sharded_step.py --tycho build/cpu/bin/tycho --model 125m-b4-t64

Fresh processes alternate. Prints a Markdown table and writes every number to bench/results/sharded_step-<model>.json. Memory is the peak of
resident memory of rank 0. When the losses of the two sides part, the exit code is 1. Standard library only.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile

import agreement
import synthetic_mds
import train_step

BENCH = os.path.dirname(os.path.abspath(__file__))
RANKS = 2


def run_tycho(args, model, data, weights, work):
    run_dir = tempfile.mkdtemp(dir=work)
    pins = {
        "run_dir": run_dir, "train_data.local_dir": data, "threads": 1, "device": "cpu", "parallel.dp_shard": RANKS,
        "seq_len": model["seq_len"], "global_batch": f"{RANKS * model['batch']}sp", "micro_batch": f"{model['batch']}sp",
        "max_duration": f"{model['steps']}ba", "model.width": model["width"], "model.layers": model["layers"],
        "model.heads": model["heads"], "model.kv_heads": model["kv_heads"], "model.ffn_width": model["ffn_width"],
        "model.vocab_size": model["vocab"], "model.tied": "true" if model["tied"] else "false", "ckpt.async": "false",
    }
    command = [args.tycho, "launch", "-n", str(RANKS), "run", os.path.join(BENCH, "train_step.lua"),
               *(f"{key}={value}" for key, value in pins.items())]
    train_step.run(command, {"TYCHO_BENCH_FAMILY": "llama", "TYCHO_BENCH_WEIGHTS": weights}, "tycho")
    with open(os.path.join(run_dir, "metrics.jsonl")) as file:
        records = [json.loads(line) for line in file]
    records = [r for r in records if "loss" in r]
    ends = [r["time"] for r in records]
    return result_of(model, [b - a for a, b in zip(ends, ends[1:])], [r["loss"] for r in records],
                     max(r["memory_bytes"] for r in records))


def run_peer(args, model, data, weights, _work):
    command = [args.peers, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(RANKS),
               os.path.join(BENCH, "peers", "train_fsdp.py"), "--data", data, "--threads", "1",
               "--weights", os.path.join(weights, "rank-00000.safetensors")]
    for key, value in model.items():
        if key not in ("tied",):
            command += ["--" + key.replace("_", "-"), str(value)]
    command += ["--tied"] if model["tied"] else []
    _, out = train_step.run(command, {"OMP_NUM_THREADS": "1"}, "FSDP2")
    ranks = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    peer = next(r for r in ranks if r["rank"] == 0)
    return result_of(model, peer["step_s"][1:], peer["losses"], peer["peak_memory_bytes"])


def result_of(model, step_s, losses, peak_bytes):
    timed = step_s[model["warmup"]:]
    return {"tokens_per_s": RANKS * model["batch"] * model["seq_len"] / statistics.median(timed), "step_s": step_s,
            "losses": losses, "peak_gb": peak_bytes / 1e9}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    llamas = [name for name, model in train_step.MODELS.items() if model["family"] == "llama"]
    parser.add_argument("--tycho", default="tycho")
    parser.add_argument("--peers", default=os.environ.get("TYCHO_PEERS", "python3"), help="a Python with torch")
    parser.add_argument("--model", choices=llamas, default="125m-b4-t64")
    parser.add_argument("--processes", type=int, default=5, help="of each side")
    parser.add_argument("--threads", type=int, default=1, help=argparse.SUPPRESS)
    args = parser.parse_args()
    model = train_step.MODELS[args.model]
    with tempfile.TemporaryDirectory() as work:
        data = os.path.join(work, "data")
        synthetic_mds.write_dataset(data, model["vocab"], model["seq_len"], RANKS * model["batch"] * model["steps"])
        weights = train_step.make_first_weights(args, model, data, work)
        sides = {"tycho": run_tycho, "fsdp2": run_peer}
        runs = {name: [] for name in sides}
        for _ in range(args.processes):
            for name, side in sides.items():
                runs[name].append(side(args, model, data, weights, work))
    losses = agreement.judge("fp32", runs["tycho"][0]["losses"], runs["fsdp2"][0]["losses"])
    report = {"model": args.model, "hardware": train_step.hardware(), "runs": runs, "losses": losses}
    with open(os.path.join(BENCH, "results", f"sharded_step-{args.model}.json"), "w") as file:
        json.dump(report, file, indent=1)
    print(f"| {args.model}, two ranks of one thread, fp32 | Tycho | FSDP2 over Gloo | ratio |\n|---|---|---|---|")
    for key, name, digits, word in [("tokens_per_s", "tokens/s", 0, "x"), ("peak_gb", "peak memory of a rank, GB", 2, " of it")]:
        print(f"| {name} | {train_step.spread(runs['tycho'], key, digits)} | {train_step.spread(runs['fsdp2'], key, digits)} | "
              f"{train_step.ratio(runs['tycho'], runs['fsdp2'], key, 2, word)} |")
    print(f"losses {losses['gap']:.1e} apart at most")
    sys.exit(1 if losses.get("void") else 0)


if __name__ == "__main__":
    main()
