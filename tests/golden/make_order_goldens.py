"""Writes tests/golden/order/: sample orders of mosaicml-streaming's own StreamingDataset and DataLoader.

    python tests/golden/make_order_goldens.py

Made with mosaicml-streaming 0.13.0, NumPy 2.1.3 and torch 2.15.0. Each case names data sets by the sizes of their shards,
the arguments of StreamingDataset, and a world of nodes, ranks and workers. What is written of a case: for some epochs, the
number of batches of a rank, the CRC-32 of each rank's samples (int64, little endian, batch after batch), and the first and
last batch of rank 0. Batches come from torch's DataLoader with drop_last=True; the samples of a data set are their numbers.

An epoch that is arranged again from its middle must give the same batches: the script asserts it.
"""
import json
import logging
import multiprocessing
import os
import pathlib
import shutil
import tempfile
import warnings
import zlib

import numpy as np
import torch
from streaming import MDSWriter, Stream, StreamingDataset
from streaming.base.batching import generate_work
from streaming.base.shuffle import get_shuffle
from streaming.base.partition import get_partitions
from streaming.base.util import clean_stale_shared_memory
from streaming.base.world import World

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
OUT = pathlib.Path(__file__).parent / "order"
TEMP = pathlib.Path(tempfile.mkdtemp())


def crc(ids):
    return zlib.crc32(np.asarray(ids, "<i8").tobytes())


def make_data(shards):
    """A data set whose sample i holds the number i, in shards of these sizes."""
    name = TEMP / ("d" + "_".join(map(str, shards)))
    if name.exists():
        return str(name)
    parts = []
    first = 0
    for i, size in enumerate(shards):
        with MDSWriter(out=str(name / f"{i:05}"), columns={"id": "int"}, size_limit=1 << 26) as writer:
            for j in range(size):
                writer.write({"id": first + j})
        first += size
        info = json.loads((name / f"{i:05}" / "index.json").read_text())["shards"]
        assert len(info) == 1
        info[0]["raw_data"]["basename"] = f"{i:05}/" + info[0]["raw_data"]["basename"]
        parts += info
    (name / "index.json").write_text(json.dumps({"version": 2, "shards": parts}))
    return str(name)


class Loader(torch.utils.data.IterableDataset):
    """What a worker of the rank would yield of an epoch's arrangement."""

    def __init__(self, work):
        self.work = work  # workers, batches, batch

    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        ids = self.work[info.id if info else 0].flatten()
        yield from (int(i) for i in ids if i != -1)


def batches_of_rank(work, batch):
    """As DataLoader gives them with drop_last: workers by turns, each with whole batches of its own samples."""
    workers = [[int(i) for i in w.flatten() if i != -1] for w in work]
    cut = [[w[i:i + batch] for i in range(0, len(w) - batch + 1, batch)] for w in workers]
    out, t = [], 0
    while any(len(c) > t for c in cut):
        out += [c[t] for c in cut if len(c) > t]
        t += 1
    return out


def build(case):
    streams = [Stream(local=make_data(s["shards"]), **{k: v for k, v in s.items() if k != "shards"}) for s in case["streams"]]
    return StreamingDataset(streams=streams, batch_size=case["batch"],
                            **{k: v for k, v in case["args"].items() if k != "replication"})


def arrange(dataset, world, epoch, sample):
    dataset._resume(world, epoch)  # sets the defaults that depend on the world
    return generate_work(dataset.batching_method, dataset, world, epoch, sample)


def run(case):
    clean_stale_shared_memory()
    dataset = build(case)
    nodes, ranks, workers = case["world"]
    world = World(nodes, ranks, workers, 0)
    replication = case["args"].get("replication")
    if replication:
        world = world.replicate(replication)
    result = {"epoch_size": int(dataset.epoch_size), "epochs": {}}
    for epoch in case["epochs"]:
        work = arrange(dataset, world, epoch, 0)
        per_rank = [batches_of_rank(work[n, r], case["batch"]) for n in range(world.num_nodes)
                    for r in range(world.ranks_per_node)]
        count = min(map(len, per_rank))
        per_rank = [b[:count] for b in per_rank]
        result["epochs"][str(epoch)] = {
            "batches": count,
            "crc": [crc(b) for b in per_rank],
            "first": per_rank[0][0] if count else [],
            "last": per_rank[-1][-1] if count else [],
        }
        if epoch == case["epochs"][0] and count > 1:
            seen = count // 2 * case["batch"] * world.num_ranks
            work = arrange(dataset, world, epoch, seen)
            rest = [batches_of_rank(work[n, r], case["batch"])[:count - count // 2] for n in range(world.num_nodes)
                    for r in range(world.ranks_per_node)]
            # Not so only where ranks outnumber what is left: samples are repeated for them anew.
            assert rest == [b[count // 2:] for b in per_rank] or case["name"] == "many_ranks_few_samples", case["name"]
    del dataset
    return result


def one(shards, **args):
    return [{"shards": shards}], args


def cases():
    small, even, odd = [7, 5, 6, 4], [50] * 8, [37, 61, 5, 90, 44, 12, 71, 3, 55, 28]
    out = []

    def add(name, streams, args, batch=4, world=(1, 1, 1), epochs=(0, 1)):
        args = {"shuffle": True, "shuffle_seed": 17, **args}
        out.append({"name": name, "streams": streams, "args": args, "batch": batch, "world": list(world),
                    "epochs": list(epochs)})

    for algo in ("naive", "py1s", "py2s", "py1br", "py1e"):
        for ncn, world in ((1, (1, 1, 1)), (2, (1, 2, 3)), (4, (2, 2, 2)), (2, (4, 1, 0 + 1)), (8, (2, 4, 1))):
            add(f"{algo}_ncn{ncn}_{world[0]}x{world[1]}x{world[2]}", *one(odd, shuffle_algo=algo, num_canonical_nodes=ncn,
                shuffle_block_size=60), batch=3, world=world, epochs=(0, 3))
    for algo in ("py1s", "py2s"):
        add(f"{algo}_defaults", *one(odd, shuffle_algo=algo), world=(1, 2, 1))
    for algo in ("py1br", "py1e"):
        for block in (2, 7, 40, 1000):
            add(f"{algo}_block{block}", *one(odd, shuffle_algo=algo, num_canonical_nodes=3, shuffle_block_size=block))
        add(f"{algo}_defaults", *one(odd, shuffle_algo=algo, shuffle_seed=9176), world=(2, 1, 1))
    add("in_order", *one(odd, shuffle=False, num_canonical_nodes=3), world=(1, 2, 2))
    add("tiny", *one(small, shuffle_algo="py1e", num_canonical_nodes=2, shuffle_block_size=12), batch=2, world=(2, 2, 2))
    add("many_ranks_few_samples", *one(small, shuffle_algo="py1s", num_canonical_nodes=1), batch=1, world=(1, 16, 1))
    for size in (9, 200, 399, 400, 401, 1000, "1k"):
        add(f"epoch_size_{size}", *one(even, shuffle_algo="py1e", epoch_size=size, num_canonical_nodes=2,
            shuffle_block_size=100))
    add("epoch_size_fixed", *one(odd, shuffle_algo="py1s", epoch_size=150, sampling_method="fixed", num_canonical_nodes=2))
    add("epoch_size_in_order", *one(odd, shuffle=False, epoch_size=150, num_canonical_nodes=2))
    add("granularity_16", *one(odd, shuffle_algo="py1br", epoch_size=190, sampling_granularity=16, num_canonical_nodes=2,
        shuffle_block_size=60))
    add("granularity_1000", *one(odd, shuffle_algo="naive", epoch_size=600, sampling_granularity=1000, num_canonical_nodes=1))
    add("large_shards_few_drawn", *one([12000, 15000], shuffle_algo="py1s", epoch_size=300, num_canonical_nodes=1), batch=8)
    add("large_shards_many_drawn", *one([12000, 15000], shuffle_algo="py1e", epoch_size=17000, num_canonical_nodes=2),
        batch=8)
    add("large_py1e", *one([900] * 40, shuffle_algo="py1e", num_canonical_nodes=2, shuffle_block_size=5000), batch=64,
        world=(1, 2, 1))
    add("large_py1br", *one([900] * 40, shuffle_algo="py1br", num_canonical_nodes=2, shuffle_block_size=5000), batch=64,
        world=(1, 2, 1))
    add("large_py1e_one_node", *one([900] * 60, shuffle_algo="py1e", num_canonical_nodes=1, shuffle_block_size=3000),
        batch=64)
    for n in (9, 2, 3):
        many = [{"shards": [11 + i, 7], "proportion": 0.1 + 0.07 * i} for i in range(n)]
        add(f"proportions_of_{n}", many, {"shuffle_algo": "py1e", "num_canonical_nodes": 2, "shuffle_block_size": 40,
            "epoch_size": 173})
    two = [{"shards": odd}, {"shards": even}]

    def weigh(*weights):
        return [{**s, **w} for s, w in zip(two, weights)]

    mixes = {
        "plain": (weigh({}, {}), {}),
        "proportion": (weigh({"proportion": 0.25}, {"proportion": 0.75}), {}),
        "proportion_sized": (weigh({"proportion": 1}, {"proportion": 2}), {"epoch_size": 500}),
        "repeat": (weigh({"repeat": 0.5}, {"repeat": 1.3}), {}),
        "choose": (weigh({"choose": 100}, {"repeat": 2}), {}),
        "sized": (weigh({}, {}), {"epoch_size": 333}),
    }
    for name, (streams, args) in mixes.items():
        for method in ("random", "stratified", "per_stream", "device_per_stream"):
            if name in ("plain", "sized") and method != "random" and name != "plain":
                continue
            world = (2, 2, 2) if name in ("proportion", "choose") else (1, 2, 1)
            add(f"{method}_{name}", streams, {"shuffle_algo": "py1e", "num_canonical_nodes": 2, "shuffle_block_size": 90,
                "batching_method": method, **args}, batch=5, world=world)
    for method in ("stratified", "per_stream", "device_per_stream"):
        for algo in ("py1s", "py1br", "naive"):
            add(f"{method}_{algo}", weigh({"proportion": 0.4}, {"proportion": 0.6}),
                {"shuffle_algo": algo, "num_canonical_nodes": 4, "shuffle_block_size": 70, "batching_method": method},
                batch=3, world=(2, 1, 1))
        add(f"{method}_in_order", weigh({"proportion": 0.4}, {"proportion": 0.6}),
            {"shuffle": False, "num_canonical_nodes": 2, "batching_method": method}, batch=3, world=(1, 2, 1))
        add(f"{method}_fixed", weigh({"proportion": 0.4}, {"proportion": 0.6}),
            {"shuffle_algo": "py1s", "num_canonical_nodes": 2, "batching_method": method, "sampling_method": "fixed",
             "epoch_size": 450}, batch=3, world=(1, 2, 1))
    add("replication_2", *one(odd, shuffle_algo="py1e", num_canonical_nodes=1, replication=2, shuffle_block_size=90),
        batch=3, world=(1, 4, 1))
    return out


def numpy_goldens():
    out = {"choice": [], "integers": [], "uniform": []}
    for seed, n, k in ((0, 10, 3), (1, 10, 10), (2, 1, 1), (3, 20000, 300), (4, 20000, 600), (5, 10000, 9999), (6, 12001, 12001)):
        rng = np.random.default_rng(seed)
        picked = rng.choice(n, k, False)
        out["choice"].append([seed, n, k, crc(picked), int(rng.integers(0, 1 << 40))])
    for seed, low, high in ((0, 0, 1), (1, 5, 12), (2, 0, 1 << 32), (3, 0, (1 << 32) + 5), (4, -3, 3_000_000_000)):
        rng = np.random.default_rng(seed)
        out["integers"].append([seed, low, high, [int(x) for x in rng.integers(low, high, 8)]])
    rng = np.random.default_rng(7)
    out["uniform"] = [float(x).hex() for x in rng.uniform(-2.5, 4.25, 6)]
    return out


def large_goldens():
    """The shuffles themselves over more than a million samples."""
    sizes = np.array([8180] * 140 + [1234])
    out = []
    for algo in ("py1s", "py2s", "py1br", "py1e", "naive"):
        for ncn in (1, 3):
            ids = get_shuffle(algo, sizes, ncn, 9176, 2, 300000)
            out.append([algo, ncn, 9176, 2, 300000, crc(ids)])
    return {"shard": 8180, "shards": 140, "last": 1234, "orders": out}


def main():
    # A DataLoader of torch with workers gives what batches_of_rank says.
    clean_stale_shared_memory()
    case = {"streams": [{"shards": [37, 61, 5]}], "args": {"shuffle": True, "shuffle_algo": "py1e", "num_canonical_nodes": 1},
            "batch": 4}
    for workers in (0, 2, 3):
        dataset = build(case)
        real = [[int(i) for i in b["id"]] for b in torch.utils.data.DataLoader(dataset, 4, num_workers=workers, drop_last=True)]
        work = arrange(dataset, World(1, 1, max(workers, 1), 0), 0, 0)
        assert real == batches_of_rank(work[0, 0], 4), "DataLoader gives other batches"
        del dataset
        clean_stale_shared_memory()
    # A data set keeps files open after it is deleted: a process for a few cases each.
    all_cases = cases()
    with multiprocessing.Pool(1, maxtasksperchild=5) as pool:
        results = [{**case, **made} for case, made in zip(all_cases, pool.imap(run, all_cases))]
    OUT.mkdir(exist_ok=True)
    lines = ",\n".join(json.dumps(r) for r in results)
    (OUT / "orders.json").write_text("[\n" + lines + "\n]\n")
    (OUT / "numpy.json").write_text(json.dumps(numpy_goldens()) + "\n")
    (OUT / "large.json").write_text(json.dumps(large_goldens()) + "\n")
    print(len(results), "cases")
    shutil.rmtree(TEMP)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
