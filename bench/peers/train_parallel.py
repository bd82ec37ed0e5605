"""The rival of the training step on several ranks: a Llama (decoders.py) under PyTorch's own parallelism, over Gloo.

    torchrun --nproc-per-node 2 bench/peers/train_parallel.py --mode dp_shard --width 768 --layers 12 --heads 12 --ffn-width 2048 \
        --vocab 32000 --seq-len 64 --batch 8 --threads 1

--mode: dp_shard (FSDP2's fully_shard), dp (DistributedDataParallel), tp (DTensor's tensor parallel, with the loss over a split
vocabulary), pp (torch.distributed.pipelining: the first --first-blocks blocks on rank 0). --batch counts the sequences of all ranks
together; the other options are those of train_eager.py. Rank 0 prints one JSON line for each rank at the end: rank, step_s, losses (of the
global batch), peak_memory_bytes. Needs torch and numpy: bench/peers/README.md.
"""

import argparse
import contextlib
import json
import os
import resource
import sys
import time

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed import pipelining
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor import parallel as tensor_parallel
from torch.nn.parallel import DistributedDataParallel

import decoders
import train_eager


def mean_over_ranks(loss):
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    return mean.item() / dist.get_world_size()


def part_of(rank, world, x):
    """The sequences of one rank: a contiguous part of each global batch, as Tycho's ranks have them."""
    each = x.shape[0] // world
    return x[rank * each:(rank + 1) * each]


class DataParallel:
    """Ranks with the whole model (DDP), or a part of every parameter (FSDP2); each reads its part of the batch."""

    def __init__(self, args, model, sharded):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.model, self.clip = model, args.clip
        if sharded:
            mesh = init_device_mesh("cpu", (self.world,))
            for block in model.blocks:
                fully_shard(block, mesh=mesh)
            fully_shard(model, mesh=mesh)
        else:
            self.model = DistributedDataParallel(model, gradient_as_bucket_view=True, static_graph=True)
        self.weights = list(model.parameters())

    def forward_backward(self, tokens_BT, targets_BT):
        loss = self.model(*(part_of(self.rank, self.world, x) for x in (tokens_BT, targets_BT)))
        loss.backward()
        return mean_over_ranks(loss)

    def clip_gradients(self):
        torch.nn.utils.clip_grad_norm_(self.weights, self.clip, foreach=True)


class SharedNorm:
    """Clipping where ranks hold different parts of the model: squares are summed over ranks, those of replicated parameters once."""

    def clip_gradients(self):
        parts = [[], []]
        for weight in self.weights:
            is_split = isinstance(weight, DTensor) and any(isinstance(p, Shard) for p in weight.placements)
            if isinstance(weight, DTensor) and weight.grad.placements != weight.placements:  # the embedding's
                weight.grad = weight.grad.redistribute(placements=weight.placements)
            grad = weight.grad.to_local() if isinstance(weight.grad, DTensor) else weight.grad
            parts[is_split or self.all_differ].append(grad)
        squares = [torch.stack(torch._foreach_norm(part)).square().sum() if part else torch.zeros(()) for part in parts]
        dist.all_reduce(squares[1])
        factor = torch.clamp(self.clip / (sum(squares).sqrt() + 1e-6), max=1.0)
        torch._foreach_mul_(parts[0] + parts[1], factor)


class TensorParallel(SharedNorm):
    """The plan that torchtitan has for a Llama without sequence parallel: columns, then rows, and a split vocabulary."""

    all_differ = False

    def __init__(self, args, model):
        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        columns, rows = tensor_parallel.ColwiseParallel, tensor_parallel.RowwiseParallel
        plan = {"embedding": rows(input_layouts=Replicate()), "head": columns(output_layouts=Shard(-1), use_local_output=False)}
        for name in ("attention_input", "ffn_input"):  # so that gradients of several projections are summed before they travel
            plan[f"blocks.*.{name}"] = tensor_parallel.PrepareModuleInput(
                input_layouts=Replicate(), desired_input_layouts=Replicate(), use_local_output=False)
        for name in ("q", "k", "v", "gate", "up"):
            plan[f"blocks.*.{name}"] = columns()
        for name in ("out", "down"):
            plan[f"blocks.*.{name}"] = rows()
        self.model = tensor_parallel.parallelize_module(model, mesh, plan)
        self.weights, self.clip = list(model.parameters()), args.clip

    def forward_backward(self, tokens_BT, targets_BT):
        with tensor_parallel.loss_parallel():
            loss = self.model(tokens_BT, targets_BT)
            loss.backward()
        return loss.full_tensor().item() if isinstance(loss, DTensor) else loss.item()


class Pipeline(SharedNorm):
    """Two stages under 1F1B; the loss is known on the last one."""

    all_differ = True

    def __init__(self, args, model):
        self.rank, self.clip = dist.get_rank(), args.clip
        self.is_last = self.rank + 1 == dist.get_world_size()
        stage = decoders.LlamaStage(model, *((0, args.first_blocks) if self.rank == 0 else (args.first_blocks, args.layers)))
        self.weights = list(stage.parameters())
        self.schedule = pipelining.Schedule1F1B(
            pipelining.PipelineStage(stage, self.rank, dist.get_world_size(), torch.device("cpu")),
            n_microbatches=args.batch // args.micro_batch, loss_fn=decoders.token_loss)

    def forward_backward(self, tokens_BT, targets_BT):
        losses = []
        if self.rank == 0:
            self.schedule.step(tokens_BT)
        else:
            self.schedule.step(target=targets_BT, losses=losses)
        loss = torch.stack(losses).mean().detach() if self.is_last else torch.zeros(())
        dist.broadcast(loss, dist.get_world_size() - 1)
        return loss.item()


def make_side(args):
    model = decoders.Llama(args)
    if args.weights:
        train_eager.first_weights.load(model, args)
    if args.mode == "tp":
        return TensorParallel(args, model)
    if args.mode == "pp":
        return Pipeline(args, model)
    return DataParallel(args, model, sharded=args.mode == "dp_shard")


def arguments():
    own = argparse.ArgumentParser(add_help=False)
    own.add_argument("--mode", choices=["dp_shard", "dp", "tp", "pp"], required=True)
    own.add_argument("--first-blocks", type=int, default=0)
    own.add_argument("--micro-batch", type=int, default=1)
    mine, others = own.parse_known_args()
    sys.argv[1:] = others
    args = train_eager.arguments()
    args.__dict__ |= vars(mine) | {"split_projections": mine.mode == "tp"}
    return args


def main():
    args = arguments()
    torch.set_num_threads(args.threads)
    dist.init_process_group("gloo")
    torch.manual_seed(args.seed)
    side = make_side(args)
    groups = [{"params": [p for p in side.weights if p.dim() == 2], "weight_decay": args.weight_decay},
              {"params": [p for p in side.weights if p.dim() != 2], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=args.lr, betas=(0.9, 0.95), eps=1e-8, fused=True)
    losses, step_s = [], []
    for _, (tokens_BT, targets_BT) in zip(range(args.steps), train_eager.batches(args)):
        start = time.time()
        losses.append(side.forward_backward(tokens_BT, targets_BT))
        side.clip_gradients()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        step_s.append(time.time() - start)
    mine = {
        "rank": dist.get_rank(), "step_s": step_s, "losses": losses,
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "versions": {"torch": torch.__version__, "numpy": np.__version__},
    }
    ranks = [None] * dist.get_world_size() if dist.get_rank() == 0 else None
    dist.gather_object(mine, ranks)
    if ranks:  # one writer: two ranks that print at once can share a line
        print("\n".join(map(json.dumps, ranks)), flush=True)
    with contextlib.suppress(Exception):
        dist.barrier()
    os._exit(0)  # Gloo's threads need not be waited for


if __name__ == "__main__":
    main()
