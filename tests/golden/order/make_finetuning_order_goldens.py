"""Writes tests/golden/order/finetuning.json: orders in which LLM Foundry visits finetuning rows that are MDS;
finetuning_machines.json: the same on several machines; and torch_sampler.json: orders of rows that are not MDS.

    python tests/golden/order/make_finetuning_order_goldens.py

Made with mosaicml-streaming 0.13.0, NumPy 2.1.3 and torch 2.15.0. The arguments are those that StreamingFinetuningDataset of
LLM Foundry 0.22.0 passes on: py1e, seed 9176, the partition "relaxed", and the batch size of a rank. What is written of a
case: the sizes of the shards and, for some epochs, the rows of its whole global batches, which are the same for any number
of ranks of one machine: the script asserts it. On several machines, and of torch's DistributedSampler, which Composer makes
with drop_last and this seed: for some epochs, the rows of rank 0 of a global batch, then those of rank 1, and so on. Those of
the sampler are the same batches for any number of ranks: the script asserts it.
"""
import json
import logging
import pathlib
import shutil
import tempfile
import warnings
import zlib

import torch
from streaming import MDSWriter, StreamingDataset
from streaming.base.batching import generate_work
from streaming.base.util import clean_stale_shared_memory
from streaming.base.world import World
from torch.utils.data import DistributedSampler

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
OUT = pathlib.Path(__file__).parent / "finetuning.json"
BATCH = 8  # global


def make_data(folder, shards):
    parts = []
    for i, size in enumerate(shards):
        with MDSWriter(out=str(folder / f"{i:05}"), columns={"id": "int"}, size_limit=1 << 26) as writer:
            for j in range(size):
                writer.write({"id": j})
        info = json.loads((folder / f"{i:05}" / "index.json").read_text())["shards"]
        info[0]["raw_data"]["basename"] = f"{i:05}/" + info[0]["raw_data"]["basename"]
        parts += info
    (folder / "index.json").write_text(json.dumps({"version": 2, "shards": parts}))


def rows_of_epoch(folder, epoch, ranks, seed, shuffle):
    """Global batches one after the other: ranks get their rows in turns."""
    clean_stale_shared_memory()
    batch = BATCH // ranks
    dataset = StreamingDataset(local=str(folder), batch_size=batch, shuffle=shuffle, shuffle_algo="py1e", shuffle_seed=seed,
                               partition_algo="relaxed")
    world = World(1, ranks, 1, 0)
    dataset._resume(world, epoch)
    work = generate_work(dataset.batching_method, dataset, world, epoch, 0)[0]
    per_rank = [[int(i) for i in work[r].flatten() if i != -1] for r in range(ranks)]
    count = min(map(len, per_rank)) // batch
    return [[per_rank[i % ranks][b * batch + i // ranks] for i in range(BATCH)] for b in range(count)]


def batches_of_machines(folder, epoch, machines, ranks, seed):
    """Global batches, each rank by rank."""
    clean_stale_shared_memory()
    batch = BATCH // (machines * ranks)
    dataset = StreamingDataset(local=str(folder), batch_size=batch, shuffle=True, shuffle_algo="py1e", shuffle_seed=seed,
                               partition_algo="relaxed", num_canonical_nodes=machines)
    world = World(machines, ranks, 1, 0)
    dataset._resume(world, epoch)
    work = generate_work(dataset.batching_method, dataset, world, epoch, 0)
    per_rank = [[int(i) for i in work[m][r].flatten() if i != -1] for m in range(machines) for r in range(ranks)]
    count = min(map(len, per_rank)) // batch
    return [i for b in range(count) for rank in per_rank for i in rank[b * batch:(b + 1) * batch]]


def sampler_batches(rows, epoch, ranks, seed):
    """Global batches of DistributedSampler, whose ranks take rows in turns."""
    batch = BATCH // ranks
    per_rank = []
    for rank in range(ranks):
        sampler = DistributedSampler(range(rows), num_replicas=ranks, rank=rank, shuffle=True, seed=seed, drop_last=True)
        sampler.set_epoch(epoch)
        per_rank.append(list(sampler))
    return [per_rank[i % ranks][b * batch + i // ranks] for b in range(len(per_rank[0]) // batch) for i in range(BATCH)]


def write(name, cases):
    (OUT.parent / name).write_text("[\n" + ",\n".join(json.dumps(one) for one in cases) + "\n]\n")


def write_machines():
    out = []
    for shards, machines, ranks in (([7, 5, 6, 4, 10], 2, 1), ([50, 3, 40], 2, 2), ([30, 31, 12, 9], 4, 2)):
        folder = pathlib.Path(tempfile.mkdtemp())
        make_data(folder, shards)
        out.append({"shards": shards, "seed": 9176, "machines": machines, "ranks": machines * ranks, "batch": BATCH,
                    "epochs": {str(e): batches_of_machines(folder, e, machines, ranks, 9176) for e in (0, 1)}})
        shutil.rmtree(folder)
    write("finetuning_machines.json", out)


def write_sampler():
    out = []
    for rows, seed in ((32, 0), (95, 0), (41, 5), (96, 2**32 + 3)):
        epochs = {}
        for epoch in (0, 1, 7):
            epochs[str(epoch)] = sampler_batches(rows, epoch, 1, seed)
            for ranks in (2, 4, 8):
                assert sampler_batches(rows, epoch, ranks, seed) == epochs[str(epoch)], (rows, ranks)
        out.append({"rows": rows, "seed": seed, "batch": BATCH, "epochs": epochs})
    write("torch_sampler.json", out)
    generator = torch.Generator()
    generator.manual_seed(3)
    print("CRC-32 of randperm(1000000) with seed 3:", zlib.crc32(torch.randperm(1000000, generator=generator).numpy().astype("<i8").tobytes()))


def main():
    out = []
    for shards, seed, shuffle in (([7, 5, 6, 4, 10], 9176, True), ([50, 3, 40], 9176, True), ([96], 17, True), ([9, 8, 7], 9176, False)):
        folder = pathlib.Path(tempfile.mkdtemp())
        make_data(folder, shards)
        epochs = {}
        for epoch in (0, 1):
            batches = rows_of_epoch(folder, epoch, 1, seed, shuffle)
            for ranks in (2, 4, 8):
                there = rows_of_epoch(folder, epoch, ranks, seed, shuffle)
                assert there[:len(batches)] == batches, (shards, ranks)
            epochs[str(epoch)] = [i for batch in batches for i in batch]
        out.append({"shards": shards, "seed": seed, "shuffle": shuffle, "batch": BATCH, "epochs": epochs})
        shutil.rmtree(folder)
    write(OUT.name, out)
    write_machines()
    write_sampler()


if __name__ == "__main__":
    main()
