"""Writes tests/golden/order/finetuning.json: orders in which LLM Foundry visits finetuning rows that are MDS.

    python tests/golden/order/make_finetuning_order_goldens.py

Made with mosaicml-streaming 0.13.0, NumPy 2.1.3 and torch 2.15.0. The arguments are those that StreamingFinetuningDataset of
LLM Foundry 0.22.0 passes on: py1e, seed 9176, the partition "relaxed", and the batch size of a rank. What is written of a
case: the sizes of the shards and, for some epochs, the rows of its whole global batches, which are the same for any number
of ranks of one machine: the script asserts it.
"""
import json
import logging
import pathlib
import shutil
import tempfile
import warnings

from streaming import MDSWriter, StreamingDataset
from streaming.base.batching import generate_work
from streaming.base.util import clean_stale_shared_memory
from streaming.base.world import World

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
    OUT.write_text("[\n" + ",\n".join(json.dumps(one) for one in out) + "\n]\n")


if __name__ == "__main__":
    main()
