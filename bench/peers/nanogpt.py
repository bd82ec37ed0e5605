"""nanoGPT's published CPU run in plain PyTorch: the model, the data and the loop of its train.py with the arguments of its README
for one CPU, without its evaluations on the way.

    python bench/peers/nanogpt.py --data FOLDER --seed 1 --threads 2

FOLDER has train.bin and val.bin, uint16. Prints one JSON line: loop_s (the training loop alone), cpu_s (user and system, of the
whole process), val_loss (over every window of val.bin, as Tycho's eval_data takes them). --weights FILE trains nothing and
evaluates a checkpoint of recipes/speedrun/nanogpt.lua instead. Needs torch and numpy: bench/peers/README.md.
"""

import argparse
import json
import math
import os
import pathlib
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

WIDTH, LAYERS, HEADS, ROW, BATCH, STEPS, VOCAB = 128, 4, 4, 64, 12, 2000, 65
PEAK_LR, LAST_LR, WARMUP, BETAS, DECAY, CLIP = 1e-3, 1e-4, 100, (0.9, 0.99), 0.1, 1.0


class Block(nn.Module):
    """Pre-norm attention and MLP, without biases."""

    def __init__(self):
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(WIDTH, bias=False), nn.LayerNorm(WIDTH, bias=False)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        B, T, _ = x.shape
        q, k, v = (y.view(B, T, HEADS, -1).transpose(1, 2) for y in self.qkv(self.norm_1(x)).split(WIDTH, dim=2))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, T, WIDTH)
        x = x + self.out(mixed)
        return x + self.down(F.gelu(self.up(self.norm_2(x))))


class Model(nn.Module):
    """GPT-2 of characters: learned positions, head tied to the embedding."""

    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCAB, WIDTH), nn.Embedding(ROW, WIDTH)
        self.blocks, self.norm = nn.ModuleList(Block() for _ in range(LAYERS)), nn.LayerNorm(WIDTH, bias=False)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                into_stream = name.endswith(("out.weight", "down.weight"))
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * LAYERS) if into_stream else 0.02)

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.tokens.weight)
        return F.cross_entropy(logits.view(-1, VOCAB), targets.reshape(-1))


def learning_rate(step):
    """Linear warm-up, then half a cosine."""
    if step < WARMUP:
        return PEAK_LR * (step + 1) / (WARMUP + 1)
    part = (step - WARMUP) / (STEPS - WARMUP)
    return LAST_LR + 0.5 * (1 + math.cos(math.pi * part)) * (PEAK_LR - LAST_LR)


def batch(path):
    """Rows that begin anywhere, read from a new memory map, as nanoGPT does against a leak of NumPy's."""
    data = np.memmap(path, dtype=np.uint16, mode="r")
    begins = torch.randint(len(data) - ROW, (BATCH,))
    rows = torch.stack([torch.from_numpy(data[i:i + ROW + 1].astype(np.int64)) for i in begins])
    return rows[:, :-1], rows[:, 1:]


def train(model, path, steps):
    """Seconds of the loop."""
    matrices, vectors = ([p for p in model.parameters() if (p.dim() == 2) == is_matrix] for is_matrix in (True, False))
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": DECAY}, {"params": vectors, "weight_decay": 0.0}],
                                  lr=PEAK_LR, betas=BETAS)
    begin = time.perf_counter()
    tokens, targets = batch(path)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step)
        loss = model(tokens, targets)
        tokens, targets = batch(path)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()  # log_interval=1
    return time.perf_counter() - begin


@torch.no_grad()
def validation_loss(model, path):
    """Mean over the targets of every window of val.bin that begins at a multiple of ROW."""
    data = torch.from_numpy(np.fromfile(path, dtype=np.uint16).astype(np.int64))
    num_rows = (len(data) - 1) // ROW
    tokens, targets = (data[i:i + num_rows * ROW].view(num_rows, ROW) for i in (0, 1))
    losses = [model(x, y).item() * y.numel() for x, y in zip(tokens.split(64), targets.split(64))]
    return sum(losses) / targets.numel()


def load(model, path):
    """Weights of a checkpoint of Tycho's, under the names of MPT's files."""
    from safetensors.torch import load_file

    parts = {"norm_1": "norm_1", "norm_2": "norm_2", "qkv": "attn.Wqkv", "out": "attn.out_proj", "up": "ffn.up_proj",
             "down": "ffn.down_proj"}
    names = {"tokens": "transformer.wte", "positions": "transformer.wpe", "norm": "transformer.norm_f"}
    names |= {f"blocks.{i}.{ours}": f"transformer.blocks.{i}.{theirs}" for i in range(LAYERS) for ours, theirs in parts.items()}
    theirs = load_file(path)
    model.load_state_dict({f"{ours}.weight": theirs[f"{name}.weight"] for ours, name in names.items()})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--seed", type=int, default=1337)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--weights", type=pathlib.Path)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    model = Model()
    if args.weights:
        load(model, args.weights)
    loop_s = 0.0 if args.weights else train(model, args.data / "train.bin", args.steps)
    spent = os.times()
    print(json.dumps({"loop_s": loop_s, "cpu_s": spent.user + spent.system, "val_loss": validation_loss(model, args.data / "val.bin"),
                      "torch": torch.__version__}))


if __name__ == "__main__":
    main()
