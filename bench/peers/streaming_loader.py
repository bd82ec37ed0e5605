"""An epoch of tokens through mosaicml-streaming and PyTorch's DataLoader, with nothing that trains on it.

    python bench/peers/streaming_loader.py write FOLDER TOKENS COMPRESSION|none    a data set of rows of 2048 tokens
    python bench/peers/streaming_loader.py read FOLDER WORKERS BATCH               JSON: tokens, seconds, CPU seconds of all processes
"""
import json
import resource
import sys
import time

import numpy as np
import torch
from streaming import MDSWriter, StreamingDataset
from streaming.base.util import clean_stale_shared_memory

SEQ_LEN = 2048


def write(folder, tokens, compression):
    rng = np.random.default_rng(17)
    weights = 1 / np.arange(1, 32769)
    ends = np.cumsum(weights / weights.sum())
    with MDSWriter(out=folder + "/train", columns={"tokens": "ndarray:int32"}, compression=None if compression == "none" else compression) as writer:
        for _ in range(tokens // SEQ_LEN):
            row = np.searchsorted(ends, rng.random(SEQ_LEN)).astype(np.int32)
            writer.write({"tokens": np.minimum(row, 32767)})


class Tokens(StreamingDataset):
    def __getitem__(self, index):
        return torch.from_numpy(super().__getitem__(index)["tokens"].astype(np.int64))  # as LLM Foundry's text dataset


def cpu_s():
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def read(folder, workers, batch):
    clean_stale_shared_memory()
    torch.set_num_threads(1)
    start_cpu = cpu_s()
    dataset = Tokens(local=folder + "/train", shuffle=True, shuffle_algo="py1e", shuffle_seed=9176, batch_size=batch, num_canonical_nodes=1)
    loader = torch.utils.data.DataLoader(dataset, batch_size=batch, num_workers=workers, drop_last=True)
    tokens, start = 0, None
    begun = time.perf_counter()
    for rows in loader:
        if start is None:
            start = time.perf_counter()
        else:
            tokens += rows.numel()
    seconds = time.perf_counter() - start
    del loader
    print(json.dumps({"tokens": tokens, "seconds": seconds, "open_s": start - begun, "cpu_s": cpu_s() - start_cpu}))


if sys.argv[1] == "write":
    write(sys.argv[2], int(sys.argv[3]), sys.argv[4])
else:
    read(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
