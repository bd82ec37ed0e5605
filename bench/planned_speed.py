#!/usr/bin/env python3
"""tycho plan's estimate beside speeds that others have published for H100 and GB200 nodes.

Runs `tycho plan --json` for each row; needs no GPU. Usage: bench/planned_speed.py [build/cpu/bin/tycho]
"""
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TYCHO = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build/cpu/bin/tycho")

# recipe, GPUs, sequences of a micro-batch, micro-batches, recompute, further pins, published tokens/s per GPU
SHARD, ZERO2 = ["parallel.dp_shard=-1"], ["parallel.dp_shard=-1", "parallel.reshard_after_forward=false"]
TABLES = {
    "LLM Foundry's README, H100 80GB, 2048 tokens": ("h100", 2048, [
        ("mpt-760m", 16, 24, 1, "none", SHARD, 68551),
        ("mpt-1b", 8, 14, 1, "none", SHARD, 45455),
        ("mpt-1b", 64, 20, 1, "none", SHARD, 44402),
        ("mpt-1b", 128, 12, 1, "none", ZERO2, 44123),
        ("mpt-3b", 64, 6, 3, "none", SHARD, 22525),
        ("mpt-3b", 128, 8, 1, "none", ZERO2, 23422),
        ("mpt-7b", 8, 6, 1, "none", SHARD, 10643),
        ("mpt-7b", 128, 6, 1, "none", SHARD, 10475),
        ("mpt-7b", 512, 6, 1, "none", SHARD, 9670),
        ("mpt-13b", 8, 2, 1, "none", SHARD, 4792),
        ("mpt-13b", 128, 16, 1, "full", SHARD, 5080),
        ("mpt-30b", 16, 10, 3, "full", SHARD, 2263),
        ("mpt-30b", 128, 8, 1, "full", SHARD, 2199),
        ("mpt-70b", 64, 8, 4, "full", SHARD, 1039),
        ("mpt-70b", 128, 8, 1, "full", SHARD, 1058),
        ("mpt-70b", 512, 8, 1, "full", SHARD, 1007),
    ]),
    "LLM Foundry on 8 nodes of 8 H100 over RoCE (a vendor's walk-through), 2048 tokens": ("h100", 2048, [
        ("mpt-125m", 64, 4, 1, "none", SHARD, 6589902 / 64),
        ("mpt-350m", 64, 4, 1, "none", SHARD, 3351644 / 64),
        ("mpt-760m", 64, 8, 1, "none", SHARD, 2737276 / 64),
        ("mpt-1b", 64, 8, 1, "none", SHARD, 2368224 / 64),
    ]),
    "TorchTitan on GB200 nodes of 4 (a vendor's walk-through), 8192 tokens": ("gb200", 8192, [
        ("llama-8b", 12, 5, 1, "selective", SHARD, 18284),
        ("llama-8b", 36, 5, 1, "selective", SHARD, 17975),
        ("llama-8b", 68, 5, 1, "selective", SHARD, 17581),
    ]),
}


def planned(machine, seq_len, recipe, gpus, micro, passes, recompute, pins):
    command = [TYCHO, "plan", str(ROOT / f"recipes/{recipe}.lua"), "--json", "--ranks", str(gpus), f"machine={machine}",
               f"seq_len={seq_len}", f"micro_batch={micro}sp", f"global_batch={micro * passes * gpus}sp",
               f"recompute.mode={recompute}", "precision=bf16", *pins]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    for title, (machine, seq_len, rows) in TABLES.items():
        print(title)
        print(f"  {'':10}{'GPUs':>5}{'passes':>9}{'recompute':>11}{'published':>11}{'planned':>9}{'ratio':>7}{'MFU':>8}{'waits':>8}")
        for recipe, gpus, micro, passes, recompute, pins, tokens_per_s in rows:
            time = planned(machine, seq_len, recipe, gpus, micro, passes, recompute, pins)["estimate"]
            mine = time["tokens_per_s"] / gpus
            print(f"  {recipe:10}{gpus:5}{f'{micro}x{passes}':>9}{recompute:>11}{tokens_per_s:11.0f}{mine:9.0f}"
                  f"{mine / tokens_per_s:7.2f}{time['mfu']:8.1%}{time['wait_s'] / time['step_s']:8.1%}")


main()
