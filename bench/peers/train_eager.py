"""The rival of the training-step benchmark: a decoder (decoders.py) in Python PyTorch, eager or compiled, with PyTorch's best
settings.

Prints one JSON line: tokens_per_s (median over the timed steps), step_s, losses, first_step_time (seconds since 1970 when the
first optimizer step was done), peak_memory_bytes, and what it ran with. Needs torch and numpy: bench/peers/README.md.

    python bench/peers/train_eager.py --family llama --width 256 --layers 4 --heads 4 --kv-heads 2 --ffn-width 768 --vocab 4096 --tied \
        --seq-len 256 --batch 16 --precision fp32
"""

import argparse
import contextlib
import json
import math
import os
import resource
import statistics
import time

import numpy as np
import torch
from torch import nn

import decoders
import first_weights


class Trainer:
    """One optimizer step: gradients, clipping, fused AdamW. With bf16 weights, fp32 masters are what AdamW updates."""

    def __init__(self, args):
        torch.manual_seed(args.seed)
        self.clip = args.clip
        self.device = args.device
        model = decoders.FAMILIES[args.family](args)
        if args.weights:
            first_weights.load(model, args)
        model = model.to(args.device)
        self.autocast = args.precision == "bf16-autocast"
        self.weights = list(model.parameters())
        self.masters = self.weights
        if args.precision == "bf16-pure":
            self.masters = [nn.Parameter(p.detach().clone()) for p in self.weights]
            model.to(torch.bfloat16)
        self.num_params = sum(p.numel() for p in self.masters)
        groups = [{"params": [p for p in self.masters if p.dim() == 2], "weight_decay": args.weight_decay},
                  {"params": [p for p in self.masters if p.dim() != 2], "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=args.lr, betas=(0.9, 0.95), eps=1e-8, fused=True)
        self.model = torch.compile(model) if args.compile else model

    def step(self, tokens_BT, targets_BT):
        autocast = torch.autocast(self.device, torch.bfloat16) if self.autocast else contextlib.nullcontext()
        if self.device != "cpu":
            tokens_BT, targets_BT = (x.pin_memory().to(self.device, non_blocking=True) for x in (tokens_BT, targets_BT))
        with autocast:
            loss = self.model(tokens_BT, targets_BT)
        loss.backward()
        if self.masters is not self.weights:
            for weight, master in zip(self.weights, self.masters):
                master.grad = weight.grad.float()
                weight.grad = None
        torch.nn.utils.clip_grad_norm_(self.masters, self.clip, foreach=True)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        if self.masters is not self.weights:
            with torch.no_grad():
                torch._foreach_copy_(self.weights, self.masters)
        return loss.item()


def random_batches(args):
    generator = np.random.default_rng(args.seed)
    while True:
        yield generator.integers(0, args.vocab, (args.batch, args.seq_len))


def mds_batches(args):
    """Sequences of an uncompressed MDS split with the one column "tokens", in their order, round and round."""
    with open(os.path.join(args.data, "index.json")) as file:
        shards = json.load(file)["shards"]
    sequences = []
    for shard in shards:
        if shard["column_names"] != ["tokens"] or shard["compression"]:
            raise SystemExit(f"{args.data}: expected raw MDS shards with the one column \"tokens\"")
        raw = np.fromfile(os.path.join(args.data, shard["raw_data"]["basename"]), np.uint8)
        count = raw[:4].view("<u4")[0]
        offsets = raw[4:4 * (count + 2)].view("<u4")
        kind, *parts = shard["column_encodings"][0].split(":")
        dtype = np.dtype(parts[0] if parts else "int64").newbyteorder("<")
        for end in offsets[1:]:
            # The values end the sample, whatever lengths and shapes stand before them.
            sequences.append(raw[end - args.seq_len * dtype.itemsize:end].view(dtype))
    at = 0
    while True:
        yield np.stack([sequences[(at + i) % len(sequences)] for i in range(args.batch)])
        at += args.batch


def batches(args):
    for tokens in mds_batches(args) if args.data else random_batches(args):
        tokens_BT = torch.from_numpy(tokens.astype(np.int64))
        targets_BT = torch.full_like(tokens_BT, -100)
        targets_BT[:, :-1] = tokens_BT[:, 1:]
        yield tokens_BT, targets_BT


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in [("width", 256), ("layers", 4), ("heads", 4), ("ffn-width", 768), ("vocab", 4096),
                          ("seq-len", 256), ("batch", 16), ("steps", 60), ("warmup", 10), ("threads", 2), ("seed", 17)]:
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--family", choices=decoders.FAMILIES, default="llama")
    parser.add_argument("--kv-heads", type=int, help="of a llama or qwen3; default: heads")
    parser.add_argument("--head-width", type=int, help="of a qwen3; default: width / heads")
    for name, default in [("lr", 1e-3), ("weight-decay", 0.1), ("clip", 1.0), ("norm-eps", 1e-5), ("rope-theta", 5e5)]:
        parser.add_argument(f"--{name}", type=float, default=default)
    parser.add_argument("--tied", action="store_true", help="of a llama: the embedding is the output head too")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--precision", choices=["fp32", "bf16-autocast", "bf16-pure"], default="fp32")
    parser.add_argument("--gqa", choices=["native", "repeat"], default="repeat",
                        help="SDPA's enable_gqa, or keys and values repeated before it")
    parser.add_argument("--compile", action="store_true", help="torch.compile the model")
    parser.add_argument("--seconds", type=float, default=math.inf,
                        help="stop after this long, with at least three timed steps")
    parser.add_argument("--data", help="an MDS split; default: uniform random tokens")
    parser.add_argument("--weights", help="a safetensors file of a checkpoint of Tycho's; default: random first values")
    args = parser.parse_args()
    args.kv_heads = args.kv_heads or args.heads
    args.head_width = args.head_width or args.width // args.heads
    if args.steps <= args.warmup:
        parser.error(f"--steps {args.steps} leaves nothing to time after --warmup {args.warmup}")
    return args


def main():
    args = arguments()
    torch.set_num_threads(args.threads)
    trainer = Trainer(args)
    ends, losses = [time.time()], []
    for step, (tokens_BT, targets_BT) in zip(range(args.steps), batches(args)):
        losses.append(trainer.step(tokens_BT, targets_BT))
        ends.append(time.time())
        if ends[-1] - ends[1] > args.seconds and len(losses) >= args.warmup + 3:
            break
    step_s = [end - begin for begin, end in zip(ends, ends[1:])]
    median_s = statistics.median(step_s[args.warmup:])
    print(json.dumps({
        "tokens_per_s": args.batch * args.seq_len / median_s,
        "first_step_time": ends[1],
        "step_s": step_s,
        "losses": losses,
        "num_params": trainer.num_params,
        "peak_memory_bytes": torch.cuda.max_memory_allocated() if args.device == "cuda" else
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "versions": {"torch": torch.__version__, "numpy": np.__version__, "cpu": torch.backends.cpu.get_cpu_capability()},
        "args": vars(args),
    }))


if __name__ == "__main__":
    main()
