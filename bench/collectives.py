#!/usr/bin/env python3
"""Time of collectives between ranks of this machine, 1 KiB to 64 MiB of fp32: Tycho against torch.distributed over Gloo.

    ninja -C build/cpu bench_collectives
    TYCHO_PEERS=/path/to/peers/bin/python python3 bench/collectives.py

Fresh pairs of processes alternate. Prints a Markdown table of medians over the pairs and of their ratios, and writes every
number to build/bench/collectives.json. Standard library only.
"""
import argparse
import datetime
import json
import os
import pathlib
import secrets
import socket
import statistics
import subprocess
import sys

from result_file import result_file

BENCH = pathlib.Path(__file__).resolve().parent


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def run(command, num_ranks):
    """One process a rank. What rank 0 measured: {(verb, bytes): µs}."""
    shared = {**os.environ, "WORLD_SIZE": str(num_ranks), "LOCAL_WORLD_SIZE": str(num_ranks), "MASTER_ADDR": "127.0.0.1",
              "MASTER_PORT": str(free_port()), "TYCHO_TOKEN": secrets.token_hex(16), "OMP_NUM_THREADS": "1"}
    ranks = [subprocess.Popen(command, env={**shared, "RANK": str(r), "LOCAL_RANK": str(r)}, text=True,
                              stdout=subprocess.PIPE if r == 0 else subprocess.DEVNULL) for r in range(num_ranks)]
    lines = ranks[0].communicate()[0].splitlines()
    if any([rank.wait() != 0 for rank in ranks]):
        sys.exit(f"failed: {command}")
    return {(one["verb"], one["bytes"]): one["us"] for one in map(json.loads, lines)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=BENCH / ".." / "build" / "cpu" / "bin" / "bench_collectives")
    parser.add_argument("--peers", default=os.environ.get("TYCHO_PEERS"), help="Python with PyTorch")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=5)
    args = parser.parse_args()
    if not args.peers:
        sys.exit("name a Python with PyTorch: --peers or TYCHO_PEERS")
    tycho, gloo, load = [], [], os.getloadavg()
    for pair in range(args.pairs):
        tycho.append(run([str(args.binary)], args.ranks))
        gloo.append(run([args.peers, str(BENCH / "peers" / "gloo_collectives.py")], args.ranks))
        print(f"pair {pair + 1} of {args.pairs}", file=sys.stderr)
    print(f"| {args.ranks} ranks | bytes | Tycho, µs | Gloo, µs | ratio |\n|---|---|---|---|---|")
    for key in tycho[0]:
        mine, theirs = (statistics.median(one[key] for one in side) for side in (tycho, gloo))
        print(f"| {key[0]} | {key[1]} | {mine:.1f} | {theirs:.1f} | {theirs / mine:.2f}x |")
    results = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(), "ranks": args.ranks, "cores": os.cpu_count(),
               "load before": load, "command": sys.argv}
    for name, side in (("tycho", tycho), ("gloo", gloo)):
        results[name] = [[{"verb": verb, "bytes": size, "us": us} for (verb, size), us in one.items()] for one in side]
    result_file("collectives").write_text(json.dumps(results, indent=1) + "\n")


main()
