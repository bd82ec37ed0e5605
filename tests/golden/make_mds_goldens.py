"""Writes tests/golden/mds/: data sets from mosaicml-streaming's own MDSWriter. Made with mosaicml-streaming 0.13.0.

    python tests/golden/make_mds_goldens.py              # writes them
    python tests/golden/make_mds_goldens.py FOLDER...    # reads data sets that Tycho wrote, and prints their samples
"""
import pathlib
import shutil
import sys

import numpy as np
from streaming import MDSWriter, StreamingDataset
from streaming.base.util import merge_index

OUT = pathlib.Path(__file__).parent / "mds"


def write(name, columns, samples, **options):
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    with MDSWriter(out=str(folder), columns=columns, **options) as writer:
        for sample in samples:
            writer.write(sample)


def tokens(count, length, dtype):
    return [{"tokens": np.arange(i, i + length, dtype=dtype)} for i in range(count)]


def main():
    int32 = {"tokens": "ndarray:int32"}
    write("two_samples", int32, [{"tokens": np.array(t, np.int32)} for t in ([1, 2, 3], [4, 5])])
    write("text_and_id", {"text": "str", "id": "int"}, [{"text": "ab", "id": 7}, {"text": "", "id": -1}])
    write("shards", int32, tokens(11, 10, np.int32), size_limit=400, hashes=["xxh3_128"])
    write("long_samples", int32, tokens(2, 300, np.int32))
    write("uint16", {"tokens": "ndarray:uint16"}, tokens(5, 10, np.uint16))
    write("untyped", {"tokens": "ndarray"}, tokens(5, 10, np.int64))
    write("fixed_shape", {"tokens": "ndarray:int32:10"}, tokens(5, 10, np.int32))
    write("raw_bytes", {"tokens": "bytes"}, [{"tokens": s["tokens"].tobytes()} for s in tokens(5, 10, np.int64)])
    write("compressed", int32, tokens(5, 10, np.int32), compression="zstd:3")
    write("merged/b", int32, tokens(5, 10, np.int32), hashes=["sha1"])
    write("merged/a", int32, tokens(11, 10, np.int32), size_limit=400, compression="gz", hashes=["xxh64"])
    merge_index([str(OUT / "merged" / part / "index.json") for part in "ab"], str(OUT / "merged"))


def show(folder):
    dataset = StreamingDataset(local=folder, shuffle=False, batch_size=1, validate_hash="xxh3_128")
    for sample in dataset:
        print(*sample["tokens"])


if sys.argv[1:]:
    for argument in sys.argv[1:]:
        show(argument)
else:
    main()
