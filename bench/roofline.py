#!/usr/bin/env python3
"""How fast a GPU would do a recorded step: bytes, FLOPs and launches of tests/golden/launches -> time and tokens/s.

    bench/roofline.py                     the recipes that have a target, beside it
    bench/roofline.py FILE... [--detail]  these lists, in parts
    options: --gpu H100|H200, --tuned (products.tuned = true), --without copies,chunks,... (what changes would save)

Every constant is an assumption until a GPU answers; docs/gpu.md says where they come from. It needs no GPU and no package.
"""
import argparse
import math
import pathlib
import re
import sys

LISTS = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "launches"
PEAK = 989.5e12
GPUS = {  # sustained products of real numbers; realistic bandwidth of a copy; NVLink's of NCCL; multiprocessors
    "H100": dict(product=700e12, bandwidth=3.0e12, nvlink=350e9, sms=132),
    "H200": dict(product=760e12, bandwidth=4.3e12, nvlink=350e9, sms=132),
}
# TFLOP/s of causal attention, forward and backward, by head width and tokens. Width 128 at 8,192 tokens: measured on an H100 in
# Dao-AILab/flash-attention PR 1893. The rest: arXiv 2407.08608, backward x 0.78 at 2k and x 0.92 at 8k where causal.
# FlashAttention-3: forward of width 128 at 2k as of width 64, causal / full; 1k and 4k are guesses between and below these. Its
# backward in a fixed order is the PR's 474 at 8k; 0.92 of any order elsewhere, as there.
ATTENTION = {
    "flash attention": {
        64: {1024: (230, 170), 2048: (262, 206), 4096: (280, 240), 8192: (295, 264)},
        128: {1024: (270, 190), 2048: (300, 227), 4096: (330, 265), 8192: (306, 274)},
    },
    "cuDNN attention": {
        64: {1024: (280, 240), 2048: (334, 308), 4096: (360, 350), 8192: (379, 397)},
        128: {1024: (370, 300), 2048: (430, 363), 4096: (500, 420), 8192: (566, 470)},
    },
    "FlashAttention-3": {
        64: {1024: (310, 270), 2048: (371, 329), 4096: (416, 380), 8192: (460, 434)},
        128: {1024: (400, 320), 2048: (504, 391), 4096: (590, 455), 8192: (660, 514)},
    },
}
IN_ORDER_3 = 0.92  # of FlashAttention-3's backward, for its blocks wait for each other
STREAM = 0.88  # share of the bandwidth that our kernels of 16-byte accesses reach
# By the first words of a launch's name: part of the step, share of the bandwidth, launches on the device, host time of a call.
OWN, ATEN, PRODUCT, FORWARD, BACKWARD = 4e-6, 8e-6, 9e-6, 30e-6, 60e-6
KINDS = [
    ("rms_norm_backward", "norm", 0.75, 2, OWN),
    ("rms_norm", "norm", 0.85, 1, OWN),
    ("layer_norm_backward", "norm", 0.75, 3, OWN),  # two blocks of a multiprocessor, as RMSNorm's since it has 64 registers
    ("layer_norm", "norm", 0.80, 1, OWN),
    ("bias_activation_backward", "activation", STREAM, 2, OWN),
    ("bias_activation", "activation", STREAM, 1, OWN),
    ("gated_activation", "activation", STREAM, 1, OWN),
    ("activation", "activation", STREAM, 1, OWN),
    ("bias_gradient", "bias", STREAM, 2, OWN),
    ("add_bias", "bias", STREAM, 1, OWN),
    ("rope", "rope", STREAM, 1, OWN),
    ("embedding_backward", "embedding", 0.40, 8, ATEN),
    ("embedding", "embedding", 0.70, 1, OWN),
    ("position_gradient", "embedding", STREAM, 1, OWN),
    ("cross_entropy", "classifier", 0.85, 1, OWN),
    ("token_statistics", "classifier", 0.85, 1, OWN),
    ("sum_of_squares", "optimizer", 0.85, 2, OWN),
    ("adamw_step", "optimizer", 0.88, 1, OWN),
    ("copy of the residual", "residual copies", 0.92, 1, ATEN),
    ("pack_gradients", "attention copies", STREAM, 1, OWN),
    ("copy of rows apart", "attention copies", 0.45, 1, ATEN),  # 2 bytes a lane, and a division for each offset
    ("copy on the device", "copies", 0.92, 1, ATEN),
    ("flash attention: ", "attention copies", STREAM, 1, 2.5e-6),
    ("FlashAttention-3: ", "attention copies", STREAM, 1, 2.5e-6),
]
GAP = 1e-6                        # between kernels that depend on each other
STEP = 0.5e-3 + 0.3e-3            # host's look at the loss, callbacks, first launches; the optimizer's own
TUNED = (1.04, 1.03)              # of products by algorithms chosen by timing: depth up to 1024, and deeper
HIDDEN_COLLECTIVES_SLOW_BY = 0.1  # multiprocessors that NCCL takes while products run
# What a change would save, by --without: bounds, because each is taken to cost nothing.
COPIES = ("pack_gradients", "copy of rows apart", "copy on the device")
WITHOUT = {
    "copies": "attention writes into our rows",
    "residuals": "the norms add the residual, not the products before them",
    "chunks": "the head's logits of a micro-batch exist at once",
    "rereads": "the classifier reads logits once",
    "hidden": "the result of an activation is kept, not computed again in backward",
    "fp32-gradients": "gradients of weights are bf16, added in bf16",
    "fp32-moments": "AdamW's moments are bf16",
    "gaps": "CUDA graphs: kernels follow each other at once, and the host launches nothing",
}
# Issue 32: tokens/s of a GPU, with attention in any order and with equal bits, the latter with FlashAttention-3, too. The last one is what llmq measured in that shape,
# on one H100 SXM (its benchmarks/H100x1.md, with bf16 moments and CUDA graphs); it has no attention with equal bits.
TARGETS = [
    ("MPT-125M, 2,048 tokens", "mpt-125m", 485e3, 435e3),
    ("Llama-1B, 2,048 tokens", "llama-1b-2048", 65e3, 62e3),
    ("Llama-8B on 8", "llama-8b", 10.5e3, 8.4e3),
    ("Qwen2.5-1.5B, 1,024 tokens", "qwen2-1.5b", 59.2e3, None),
]


class Launches:
    """The launches of a step, and the widths that tell their parts from each other."""

    def __init__(self, path):
        self.lines = []
        for line in pathlib.Path(path).read_text().splitlines():
            if line.startswith("#"):
                if found := re.match(r"# rank 0 of (\d+)", line):
                    self.ranks = int(found.group(1))
                continue
            count, read, written, flops, name = line.split("\t")
            self.lines.append((int(count), float(read), float(written), float(flops), name))
        rows_of = lambda start: [(count, *map(int, found.groups())) for count, *_, name in self.lines
                                 if (found := re.match(start + r" (\d+)x(\d+)$", name))]
        self.vocab = max((width for _, _, width in rows_of("cross_entropy") + rows_of("token_statistics")), default=0)
        looked_up = rows_of("embedding")
        self.width = looked_up[0][2]
        self.tokens = sum(count * rows for count, rows, _ in looked_up)
        self.micro_batches = sum(count for count, *_ in looked_up)


class Model:
    def __init__(self, launches, gpu, tuned=False, without=()):
        self.of, self.gpu, self.tuned, self.without = launches, gpu, tuned, set(without)
        self.parts = {}
        self.host = 0.0
        for line in launches.lines:
            self.add(*line)
        self.collectives()
        device = sum(part[0] for part in self.parts.values())
        self.step = max(device, 0 if "gaps" in self.without else self.host) + STEP
        self.tokens_per_s = launches.tokens / self.step

    def put(self, part, count, seconds, num_bytes, flops, launches, host):
        sums = self.parts.setdefault(part, [0.0, 0.0, 0.0, 0])
        gap = 0 if "gaps" in self.without else GAP
        for i, x in enumerate((seconds + launches * gap, num_bytes, flops, launches)):
            sums[i] += count * x
        self.host += count * (host + (launches - 1) * 2.5e-6 * (host != OWN))

    def add(self, count, read, written, flops, name):
        if name.startswith("nccl") or ("copies" in self.without and name.startswith(COPIES)):
            return
        if "hidden" in self.without and "activation_backward" in name:
            written *= 2 / 3 if name.startswith("gated") else 1 / 2
        if "fp32-moments" in self.without and name.startswith("adamw_step"):
            read, written = read * 12 / 16, written - read * 4 / 16  # of 16 bytes a parameter: weight, gradient, moments
        num_bytes = read + written
        if name.startswith("product"):
            part, seconds = self.product(name, read, written, flops)
            return self.put(part, count, seconds, num_bytes, flops, 1, PRODUCT)
        if found := re.match(r"(flash attention|cuDNN attention|FlashAttention-3)( in order)? (forward|backward), width (\d+), (\d+) tokens(?:, (\d+) heads)?", name):
            seconds, host = self.attention(found, flops)
            return self.put("attention", count, seconds, num_bytes, flops, 1, host)
        for start, part, share, launches, host in KINDS:
            if name.startswith(start):
                break
        else:
            part, share, launches, host = "other", STREAM, 1, ATEN
        if part == "classifier":
            num_bytes += read * self.read_again()
        self.put(part, count, num_bytes / (self.gpu["bandwidth"] * share), num_bytes, flops, launches, host)

    def read_again(self):
        """Share of the logits that the classifier reads from memory a second time: rows in flight are two of each multiprocessor."""
        in_flight = 2 * self.gpu["sms"] * self.of.vocab * 2
        return 0.0 if in_flight < 30e6 or "rereads" in self.without else min(1.0, (in_flight - 30e6) / in_flight)

    def product(self, name, read, written, flops):
        m, n, k = map(int, re.match(r"product (\d+)x(\d+)x(\d+)", name).groups())
        is_gradient = "fp32" in name.partition(" to ")[2]
        small = min(m, n) if is_gradient else min(n, k)
        head = self.of.vocab in (m, n, k)
        share = 0.80 if small <= 1024 else 0.89 if small <= 2048 else 0.94
        if head:
            share = 0.92 if self.of.width <= 1024 else 0.94
        if self.tuned:
            share *= TUNED[0] if small <= 1024 else TUNED[1]
        # What is added to, what lies beside GELU, and fp32 results: half of that traffic shows beside the product.
        result = m * n * (4 if is_gradient else 2)
        adds = " added " in name and (is_gradient or "residuals" not in self.without)
        if head and "chunks" in self.without:  # weights are read, and their gradient is written, once for all chunks
            rows = next(dim for dim in (m, n, k) if dim not in (self.of.vocab, self.of.width))
            once, weights = min(1, rows * self.of.micro_batches / self.of.tokens), self.of.vocab * self.of.width
            if is_gradient:
                read, written, adds = read - 4 * weights * adds, written * once, False
            else:
                read -= 2 * weights * (1 - once)
        extra = (written if is_gradient else 0) + (result if adds or "GELU" in name else 0)
        if is_gradient and "fp32-gradients" in self.without:
            extra /= 2
        bandwidth = self.gpu["bandwidth"]
        seconds = max(flops / (self.gpu["product"] * share), (read + written) / bandwidth) + 0.5 * extra / bandwidth
        return "head" if head else "products", seconds

    def attention(self, found, flops):
        kind, in_order, way, width, tokens, heads = found.groups()
        rates = ATTENTION[kind][64 if int(width) <= 64 else 128]
        nearest = min(rates, key=lambda known: abs(math.log(known / int(tokens))))
        forward, backward = rates[nearest]
        if way == "forward":
            return flops / (forward * 1e12), FORWARD
        seconds = flops / (backward * 1e12)
        if in_order and kind == "FlashAttention-3":
            return seconds / IN_ORDER_3, BACKWARD
        if in_order:  # a block of each multiprocessor, in waves
            sums = max(1, -(-self.gpu["sms"] // int(heads)))
            blocks = sums * int(heads)
            seconds *= -(-blocks // self.gpu["sms"]) * self.gpu["sms"] / blocks
        return seconds, BACKWARD

    def collectives(self):
        """Transfers hide behind products, and slow them; the embedding's gathers and the last sum show. Others show whole."""
        ends = 0.0
        for count, read, written, _, name in self.of.lines:
            if not name.startswith("nccl"):
                continue
            verb, size = re.match(r"nccl(\w+) of (\d+)", name).groups()
            share = (int(size) - 1) / int(size)
            moved = {"AllGather": written * share, "ReduceScatter": read * share, "AllReduce": 2 * read * share}.get(verb, read + written)
            seconds = moved / self.gpu["nvlink"]
            hidden = verb in ("AllGather", "ReduceScatter") and int(size) == self.of.ranks
            self.put("collectives", count, seconds * (HIDDEN_COLLECTIVES_SLOW_BY if hidden else 1) - GAP, moved, 0, 1, OWN)
            if hidden:
                ends = max(ends, share / self.gpu["nvlink"])
        table = self.of.vocab * self.of.width
        if ends:
            self.put("collectives", 1, ends * table * (2 * self.of.micro_batches + 4), 0, 0, 0, OWN)


def show(path, gpu, tuned, without, detail):
    launches = Launches(path)
    model = Model(launches, GPUS[gpu], tuned, without)
    flops = sum(part[2] for part in model.parts.values())
    print(f"{pathlib.Path(path).stem:26s} {model.step * 1e3:9.1f} ms a step (host {model.host * 1e3:.1f}), "
          f"{model.tokens_per_s:9.0f} tokens/s of a GPU, {100 * flops / model.step / PEAK:.1f} % of the peak, recomputation included")
    if detail:
        for part, (seconds, num_bytes, flops, count) in sorted(model.parts.items(), key=lambda item: -item[1][0]):
            print(f"    {part:18s} {seconds * 1e3:9.2f} ms {100 * seconds / model.step:5.1f} %  {num_bytes / 1e9:9.2f} GB "
                  f"{flops / 1e12:9.2f} TFLOP {count:7d} launches")


def targets(gpu, without):
    print(f"{gpu}: tokens/s of a GPU, predicted, with products.tuned = true, and wanted (issue 32)")
    for title, name, any_order, in_order in TARGETS:
        for how, suffix, wanted in (("any order", "-any-order", any_order), ("equal bits", "", in_order),
                                    ("equal bits, FA3", "-flash3", in_order)):
            path = LISTS / f"{name}{suffix}.txt"
            if wanted is None or not path.exists():
                continue
            launches = Launches(path)
            plain, tuned = (Model(launches, GPUS[gpu], of, without).tokens_per_s for of in (False, True))
            missing = " ".join(f"{100 * (1 - got / wanted):5.1f} %" if got < wanted else "reached" for got in (plain, tuned))
            print(f"  {title:26s} {how:15s} {plain / 1e3:7.1f}k {tuned / 1e3:7.1f}k {wanted / 1e3:7.1f}k  below by {missing}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lists", nargs="*", help="files of tests/golden/launches; default: those with a target")
    parser.add_argument("--gpu", choices=GPUS, default="H100")
    parser.add_argument("--tuned", action="store_true", help="with the algorithms of products.tuned = true")
    parser.add_argument("--without", default="", help="what changes would save, separated by commas: "
                        + "; ".join(f"{name}: {what}" for name, what in WITHOUT.items()))
    parser.add_argument("--detail", action="store_true", help="the parts of each step")
    args = parser.parse_args()
    without = [what for what in args.without.split(",") if what]
    if unknown := [what for what in without if what not in WITHOUT]:
        parser.error(f"--without: expected {', '.join(WITHOUT)}, got {', '.join(unknown)}")
    if not args.lists:
        return targets(args.gpu, without)
    for path in args.lists:
        show(path, args.gpu, args.tuned, without, args.detail)


if __name__ == "__main__":
    sys.exit(main())
