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

# recipe, GPUs, sequences of a micro-batch, micro-batches, recompute, further pins, published tokens/s per GPU, published MFU
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
        ("mpt-125m", 64, 4, 1, "none", SHARD, 6589902 / 64, 0.1),
        ("mpt-350m", 64, 4, 1, "none", SHARD, 3351644 / 64, 0.145),
        ("mpt-760m", 64, 8, 1, "none", SHARD, 2737276 / 64, 0.27),
        ("mpt-1b", 64, 8, 1, "none", SHARD, 2368224 / 64, 0.33),
    ]),
    "TorchTitan on GB200 nodes of 4 (a vendor's walk-through), 8192 tokens": ("gb200", 8192, [
        ("llama-8b", 12, 5, 1, "selective", SHARD, 18284, 0.4706),
        ("llama-8b", 36, 5, 1, "selective", SHARD, 17975, 0.4627),
        ("llama-8b", 68, 5, 1, "selective", SHARD, 17581, 0.4525),
    ]),
}


# Finetuning in the same walk-through: nodes, and tokens/s of all GPUs. LLM Foundry counts tokens without padding there, and most of a row
# of mpt-7b's is padding, so that only speed-ups compare. The batches are not published: either each GPU had as many
# sequences on any number of nodes, or all together had LLM Foundry's 48.
FINETUNED_7B, FINETUNED_30B = [(1, 7124), (2, 13844), (4, 28959), (8, 50708)], 52022


# Tokens/s with fp8 over those with bf16 on H100s: recipe, sequence length, GPUs, sequences of a micro-batch, pins, published.
# TorchTitan's performance page (8B: 6,667 and 8,532 tokens/s, compiled, parameters gathered in fp8), llmq's README
# (tokens/s of 0.5B to 7B on one GPU), and LLM Foundry's README (amp_fp8 of Transformer Engine, its 8 GPUs).
FP8 = [
    ("TorchTitan", "llama-8b", 8192, 8, 1, SHARD, 8532 / 6667),
    ("llmq", "qwen2", 1024, 1, 32, ["preset=0.5b"], 164 / 149),
    ("llmq", "qwen2", 1024, 1, 32, ["preset=1.5b"], 73 / 59),
    ("llmq", "qwen2", 1024, 1, 16, ["preset=3b"], 40 / 31),
    ("llmq", "qwen2", 1024, 1, 8, ["preset=7b"], 19 / 14),
    ("LLM Foundry", "mpt-1b", 512, 8, 56, SHARD, 1.35),
    ("LLM Foundry", "mpt-3b", 512, 8, 40, SHARD, 1.31),
    ("LLM Foundry", "mpt-3b", 8192, 8, 2, SHARD + ["model.max_seq_len=8192"], 1.15),
]


def planned(machine, seq_len, recipe, gpus, micro, passes, recompute, pins):
    command = [TYCHO, "plan", str(ROOT / f"recipes/{recipe}.lua"), "--json", "--ranks", str(gpus), f"machine={machine}",
               f"seq_len={seq_len}", f"micro_batch={micro}sp", f"global_batch={micro * passes * gpus}sp",
               f"recompute.mode={recompute}", "precision=bf16", *pins]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    for title, (machine, seq_len, rows) in TABLES.items():
        print(title)
        print(f"  {'':10}{'GPUs':>5}{'passes':>9}{'recompute':>11}{'published':>11}{'planned':>9}{'ratio':>7}{'published MFU':>15}{'MFU':>8}{'waits':>8}")
        for recipe, gpus, micro, passes, recompute, pins, tokens_per_s, *mfu in rows:
            time = planned(machine, seq_len, recipe, gpus, micro, passes, recompute, pins)["estimate"]
            mine = time["tokens_per_s"] / gpus
            print(f"  {recipe:10}{gpus:5}{f'{micro}x{passes}':>9}{recompute:>11}{tokens_per_s:11.0f}{mine:9.0f}"
                  f"{mine / tokens_per_s:7.2f}{f'{mfu[0]:.1%}' if mfu else '-':>15}{time['mfu']:8.1%}{time['wait_s'] / time['step_s']:8.1%}")
    fp8()
    finetuning()


def fp8():
    print("Tokens/s with fp8 over those with bf16")
    print(f"  {'':12}{'':10}{'tokens':>8}{'GPUs':>5}{'micro':>7}{'published':>11}{'tensorwise':>12}{'rowwise':>9}{'gw_hp':>7}")
    for system, recipe, seq_len, gpus, micro, pins, published in FP8:
        def speed(*more):
            return planned("h100", seq_len, recipe, gpus, micro, 1, "none", pins + list(more))["estimate"]["tokens_per_s"]
        bf16 = speed()
        ratios = [speed(f"fp8.recipe={name}") / bf16 for name in ("tensorwise", "rowwise", "rowwise_with_gw_hp")]
        name = pins[0].removeprefix("preset=") if recipe == "qwen2" else recipe
        print(f"  {system:12}{name:10}{seq_len:8}{gpus:5}{micro:7}{published:11.2f}{ratios[0]:12.2f}{ratios[1]:9.2f}{ratios[2]:7.2f}")


def finetuning():
    print("LLM Foundry's finetuning of mpt-7b (the same walk-through): speed-up over one node")
    print(f"  {'nodes':>7}{'published':>11}{'6 a GPU':>9}{'ratio':>7}{'48 in all':>11}{'of the tokens, published':>26}")
    first = {}
    for nodes, tokens_per_s in FINETUNED_7B:
        each = {"6 a GPU": 6, "48 in all": -(-48 // (8 * nodes))}  # 64 GPUs have one each: 64 in all
        speeds = {"published": tokens_per_s}
        for name, sequences in each.items():
            speeds[name] = planned("h100", 2048, "mpt-7b", 8 * nodes, sequences, 1, "full", SHARD)["estimate"]["tokens_per_s"]
        first = first or speeds
        up = {name: speed / first[name] for name, speed in speeds.items()}
        print(f"  {nodes:7}{up['published']:11.2f}{up['6 a GPU']:9.2f}{up['6 a GPU'] / up['published']:7.2f}{up['48 in all']:11.2f}"
              f"{tokens_per_s / speeds['6 a GPU']:26.1%}")
    packed = planned("h100", 8192, "mpt-30b", 64, 1, 1, "full", SHARD + ["model.max_seq_len=8192"])["estimate"]["tokens_per_s"]
    print(f"  mpt-30b on 8 nodes, packed rows of 8192: published {FINETUNED_30B}, planned {packed:.0f}, {FINETUNED_30B / packed:.1%} of the tokens")


main()
