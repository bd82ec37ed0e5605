#!/usr/bin/env python3
"""Speed and peak memory of a training step on two ranks of one thread each: Tycho against PyTorch's own parallelism over Gloo, with the
same model, first weights, data and batch.

    TYCHO_PEERS=/path/to/peers/bin/python python3 bench/parallel_step.py --tycho build/cpu/bin/tycho --mode dp_shard

| --mode | Tycho | PyTorch |
| dp_shard | parallel.dp_shard = 2 | FSDP2 (fully_shard) |
| dp | parallel.dp_replicate = 2 | DistributedDataParallel |
| tp | parallel.tp = 2 | DTensor's tensor parallel, with its parallel loss |
| pp | parallel.pp = 2, 1F1B | torch.distributed.pipelining, 1F1B, the same stages |

Fresh processes alternate. Prints a Markdown table and writes every number to build/bench/parallel_step-<mode>.json; --more adds its
processes to those that are there. Memory is the peak of resident memory, of the rank that has more. PyTorch's allocator keeps
its memory or not (--peer-memory), whichever is faster. When the losses of the two sides part, the exit code is 1. Standard library only.
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
from result_file import result_file

BENCH = os.path.dirname(os.path.abspath(__file__))
RANKS = 2
MODES = {"dp_shard": ("parallel.dp_shard", "FSDP2"), "dp": ("parallel.dp_replicate", "DDP"),
         "tp": ("parallel.tp", "DTensor TP"), "pp": ("parallel.pp", "torch.distributed.pipelining")}
MODEL = train_step.MODELS["125m-b4-t64"]
GLOBAL_BATCH = 8  # sequences
PIPELINE = {"micro_batch": 2, "first_blocks": 8}  # the head is worth three or four blocks


def run_tycho(args, data, weights, work):
    run_dir = tempfile.mkdtemp(dir=work)
    pins = {
        "run_dir": run_dir, "train_data.local_dir": data, "threads": 1, "device": "cpu", MODES[args.mode][0]: RANKS,
        "seq_len": MODEL["seq_len"], "global_batch": f"{GLOBAL_BATCH}sp", "max_duration": f"{args.steps}ba",
        "model.width": MODEL["width"], "model.layers": MODEL["layers"], "model.heads": MODEL["heads"],
        "model.kv_heads": MODEL["kv_heads"], "model.ffn_width": MODEL["ffn_width"], "model.vocab_size": MODEL["vocab"],
        "model.tied": "true" if MODEL["tied"] else "false", "ckpt.async": "false",
    }
    if args.mode == "pp":
        stages = [PIPELINE["first_blocks"], MODEL["layers"] - PIPELINE["first_blocks"]]
        pins |= {"micro_batch": f"{PIPELINE['micro_batch']}sp", "parallel.pp_layers": "[" + ",".join(map(str, stages)) + "]"}
    command = [args.tycho, "launch", "-n", str(RANKS), "run", os.path.join(BENCH, "train_step.lua"),
               *(f"{key}={value}" for key, value in pins.items())]
    train_step.run(command, {"TYCHO_BENCH_FAMILY": "llama", "TYCHO_BENCH_WEIGHTS": weights}, "tycho")
    with open(os.path.join(run_dir, "metrics.jsonl")) as file:
        records = [record for record in map(json.loads, file) if "loss" in record]
    ends = [r["time"] for r in records]
    timed = records[args.warmup:]
    return {**result_of(args, [b - a for a, b in zip(ends, ends[1:])], [r["loss"] for r in records],
                        max(r["memory_bytes"] for r in records)),
            "wait_share": statistics.median(r["comm_wait_s"] / r["step_s"] for r in timed),
            "hidden_share": statistics.median(1 - r["comm_wait_s"] / r["comm_s"] for r in timed)}


def run_peer(args, data, weights, _work):
    command = [args.peers, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(RANKS),
               os.path.join(BENCH, "peers", "train_parallel.py"), "--mode", args.mode, "--data", data, "--threads", "1",
               "--weights", os.path.join(weights, "rank-00000.safetensors")]
    for key, value in (MODEL | {"batch": GLOBAL_BATCH, "steps": args.steps, "warmup": args.warmup} | PIPELINE).items():
        if key != "tied":
            command += ["--" + key.replace("_", "-"), str(value)]
    command += ["--tied"] if MODEL["tied"] else []
    memory = train_step.KEEP_MEMORY if args.peer_memory == "kept" else {}
    _, out = train_step.run(command, {"OMP_NUM_THREADS": "1", **memory}, MODES[args.mode][1])
    ranks = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    peer = next(r for r in ranks if r["rank"] == 0)
    return {**result_of(args, peer["step_s"][1:], peer["losses"], max(r["peak_memory_bytes"] for r in ranks)),
            "versions": peer["versions"]}


def result_of(args, step_s, losses, peak_bytes):
    timed = step_s[args.warmup - 1:]
    return {"tokens_per_s": GLOBAL_BATCH * MODEL["seq_len"] / statistics.median(timed), "step_s": step_s, "losses": losses,
            "peak_gb": peak_bytes / 1e9}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=MODES, required=True)
    parser.add_argument("--tycho", default="tycho")
    parser.add_argument("--peers", default=os.environ.get("TYCHO_PEERS", "python3"), help="a Python with torch")
    parser.add_argument("--peer-memory", choices=["kept", "default"], default="kept")
    parser.add_argument("--processes", type=int, default=5, help="of each side")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--more", action="store_true", help="add to the results that are there")
    parser.add_argument("--work", help="a folder for data and first weights, kept for the next time")
    parser.add_argument("--threads", type=int, default=1, help=argparse.SUPPRESS)
    args = parser.parse_args()
    results = result_file(f"parallel_step-{args.mode}")
    sides = {"tycho": run_tycho, "peer": run_peer}
    runs = {name: [] for name in sides}
    if args.more:
        with open(results) as file:
            runs = json.load(file)["runs"]
    with tempfile.TemporaryDirectory() as scratch:
        data, weights = prepare(args, args.work or scratch)
        for _ in range(args.processes):
            for name, side in sides.items():
                runs[name].append(side(args, data, weights, scratch))
            losses = agreement.judge("fp32", runs["tycho"][-1]["losses"], runs["peer"][-1]["losses"])
            with open(results, "w") as file:
                json.dump({"mode": args.mode, "model": MODEL, "global_batch": GLOBAL_BATCH, "arguments": vars(args),
                           "hardware": train_step.hardware(), "runs": runs, "losses": losses}, file, indent=1)
            print_table(args, runs, losses)
    sys.exit(1 if losses.get("void") else 0)


def prepare(args, work):
    data, first = os.path.join(work, "data"), os.path.join(work, "first-weights", "checkpoints")
    if not os.path.exists(data):
        synthetic_mds.write_dataset(data, MODEL["vocab"], MODEL["seq_len"], GLOBAL_BATCH * 40)
    if not os.path.exists(first):
        return data, train_step.make_first_weights(args, MODEL, data, work)
    return data, next(entry.path for entry in os.scandir(first) if entry.name.startswith("step-"))


def print_table(args, runs, losses):
    name = MODES[args.mode][1]
    print(f"| {args.mode}, two ranks of one thread, 125M, fp32 | Tycho | {name} | ratio |\n|---|---|---|---|")
    for key, text, digits, word in [("tokens_per_s", "tokens/s", 0, "x"), ("peak_gb", "peak memory of a rank, GB", 2, " of it")]:
        print(f"| {text} | {train_step.spread(runs['tycho'], key, digits)} | {train_step.spread(runs['peer'], key, digits)} | "
              f"{train_step.ratio(runs['tycho'], runs['peer'], key, 2, word)} |")
    for key, text in [("wait_share", "share of a step that waits for the other rank"), ("hidden_share", "share of communication hidden")]:
        print(f"| {text} | {train_step.spread(runs['tycho'], key, 3)} | | |")
    print(f"losses {losses['gap']:.1e} apart at most", flush=True)


if __name__ == "__main__":
    main()
