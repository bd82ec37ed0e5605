"""torch.distributed's Gloo, timed as bench/collectives.cpp times Tycho's collectives: one process a rank, of two or more,
with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Rank 0 prints a line of JSON for each verb and size."""
import json
import time

import torch
import torch.distributed as dist

SMALLEST, LARGEST, BYTES_OF_A_ROUND, ROUNDS = 1 << 10, 64 << 20, 32 << 20, 5


def time_of(num_bytes, call):
    calls = max(2, min(300, BYTES_OF_A_ROUND // num_bytes))
    rounds = []
    for _ in range(ROUNDS):
        dist.barrier()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        rounds.append((time.perf_counter() - start) / calls)
    return min(rounds)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    num_bytes = SMALLEST
    while num_bytes <= LARGEST:
        whole, piece = torch.ones(num_bytes // 4), torch.ones(num_bytes // 4 // dist.get_world_size())
        calls = {
            "all_reduce": lambda: dist.all_reduce(whole),
            "all_gather": lambda: dist.all_gather_into_tensor(whole, piece),
            "reduce_scatter": lambda: dist.reduce_scatter_tensor(piece, whole),
            "broadcast": lambda: dist.broadcast(whole, 0),
        }
        for verb, call in calls.items():
            taken = time_of(num_bytes, call)
            if dist.get_rank() == 0:
                print(json.dumps({"verb": verb, "bytes": num_bytes, "us": taken * 1e6}), flush=True)
        num_bytes *= 4


main()
