"""Writes an MDS data set of random tokens with the frequencies of a language (Zipf's law), so that there is something to
learn. Same arguments, same bytes. Standard library only: python3 bench/synthetic_mds.py OUT --vocab 4096 --seq-len 256"""

import argparse
import array
import itertools
import json
import os
import random
import struct
import sys


def write_dataset(out_dir, vocab, seq_len, samples, seed=17):
    """One shard of `samples` sequences in the column "tokens"."""
    os.makedirs(out_dir)
    encoding = f"ndarray:int32:{seq_len}"
    columns = {"column_encodings": [encoding], "column_names": ["tokens"], "column_sizes": [4 * seq_len]}
    fixed = {"compression": None, "format": "mds", "hashes": [], "size_limit": None, "version": 2}
    config = json.dumps({**columns, **fixed}, sort_keys=True).encode()
    generator = random.Random(seed)
    weights = list(itertools.accumulate(1.0 / (rank + 1) for rank in range(vocab)))
    tokens = array.array("i", generator.choices(range(vocab), cum_weights=weights, k=samples * seq_len))
    if sys.byteorder == "big":
        tokens.byteswap()
    begin = 4 + 4 * (samples + 1) + len(config)
    offsets = [begin + 4 * seq_len * i for i in range(samples + 1)]
    with open(os.path.join(out_dir, "shard.00000.mds"), "wb") as shard:
        shard.write(struct.pack(f"<I{samples + 1}I", samples, *offsets))
        shard.write(config)
        shard.write(tokens.tobytes())
    raw = {"basename": "shard.00000.mds", "bytes": offsets[-1], "hashes": {}}
    entry = {**columns, **fixed, "raw_data": raw, "samples": samples, "zip_data": None}
    with open(os.path.join(out_dir, "index.json"), "w") as index:
        json.dump({"shards": [entry], "version": 2}, index, sort_keys=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out")
    parser.add_argument("--vocab", type=int, required=True)
    parser.add_argument("--seq-len", type=int, required=True)
    parser.add_argument("--samples", type=int, default=256)
    parser.add_argument("--seed", type=int, default=17)
    args = parser.parse_args()
    write_dataset(args.out, args.vocab, args.seq_len, args.samples, args.seed)


if __name__ == "__main__":
    main()
