"""The rival of the sharded training step: a decoder (decoders.py) under PyTorch's FSDP2 (fully_shard), over Gloo.

Each rank prints one JSON line at the end: rank, step_s, losses (of the global batch), peak_memory_bytes. Needs torch and numpy:
bench/peers/README.md. Takes the options of train_eager.py; --batch counts the sequences of one rank.

    torchrun --nproc-per-node 2 bench/peers/train_fsdp.py --width 768 --layers 12 --heads 12 --ffn-width 2048 --vocab 32000 \
        --seq-len 64 --batch 4 --threads 1
"""

import json
import os
import resource
import time

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import decoders
import train_eager


def blocks_of(model):
    return next(module for module in model.modules() if isinstance(module, torch.nn.ModuleList))


def own_part(args, rank):
    """The batches of one rank: a contiguous part of each global batch, as Tycho's ranks have them."""
    world = dist.get_world_size()
    args.batch *= world
    for tokens_BT, targets_BT in train_eager.batches(args):
        each = tokens_BT.shape[0] // world
        yield tokens_BT[rank * each:(rank + 1) * each], targets_BT[rank * each:(rank + 1) * each]


def main():
    args = train_eager.arguments()
    torch.set_num_threads(args.threads)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(args.seed)
    model = decoders.FAMILIES[args.family](args)
    if args.weights:
        train_eager.first_weights.load(model, args)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for block in blocks_of(model):
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    weights = list(model.parameters())
    groups = [{"params": [p for p in weights if p.dim() == 2], "weight_decay": args.weight_decay},
              {"params": [p for p in weights if p.dim() != 2], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=args.lr, betas=(0.9, 0.95), eps=1e-8, fused=True)
    losses, step_s = [], []
    for step, (tokens_BT, targets_BT) in zip(range(args.steps), own_part(args, rank)):
        start = time.time()
        loss = model(tokens_BT, targets_BT)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, args.clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        losses.append(mean.item() / dist.get_world_size())
        step_s.append(time.time() - start)
    print(json.dumps({
        "rank": rank, "step_s": step_s, "losses": losses,
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "versions": {"torch": torch.__version__, "numpy": np.__version__},
    }), flush=True)
    dist.barrier()
    dist.destroy_process_group()
    os._exit(0)  # Gloo's threads need not be waited for


if __name__ == "__main__":
    main()
