"""What the real mosaicml-streaming reads and writes, for tests/host/streaming_peer.sh. Tokens are lines of numbers.

    python streaming_peer.py read FOLDER                     prints the tokens of every sample, with checksums compared
    python streaming_peer.py write FOLDER COMPRESSION FILE   writes these samples, several shards
    python streaming_peer.py write_lines FOLDER FORMAT COMPRESSION FILE   writes shards of text: json, xsv, csv or tsv
    python streaming_peer.py show FOLDER                     prints every sample of shards of text, as JSON
    python streaming_peer.py values < JSON                   the same of what `tycho data sample --json` shows
    python streaming_peer.py rows FOLDER COLUMN              prints a column of every sample as JSON
    python streaming_peer.py write-rows FOLDER FILE          writes lines of JSON as LLM Foundry's convert_finetuning_dataset does
    python streaming_peer.py tokens < JSON                   the tokens that `tycho data sample --json` shows
"""
import json
import os
import shutil
import sys

import numpy as np


def read(folder):
    from streaming import StreamingDataset
    from streaming.base.util import clean_stale_shared_memory

    clean_stale_shared_memory()
    copy = folder + "-copy"  # it puts decompressed files beside the others
    shutil.copytree(folder, copy)
    shard = json.load(open(os.path.join(folder, "index.json")))["shards"][0]
    name = (shard["hashes"] or [None])[0]
    dataset = StreamingDataset(local=copy, shuffle=False, batch_size=1, validate_hash=name)
    for i in range(dataset.num_samples):
        print(*dataset[i]["tokens"])
    shutil.rmtree(copy)


def write(folder, compression, file):
    from streaming import MDSWriter

    columns = {"tokens": "ndarray:int32"}
    with MDSWriter(out=folder, columns=columns, compression=compression, hashes=["sha1", "xxh64"], size_limit=20000) as writer:
        for line in open(file):
            writer.write({"tokens": np.array(line.split(), np.int32)})


def write_lines(folder, kind, compression, file):
    from streaming import CSVWriter, JSONWriter, TSVWriter, XSVWriter

    writers = {"json": JSONWriter, "csv": CSVWriter, "tsv": TSVWriter, "xsv": XSVWriter}
    options = {"separator": " ~ ", "newline": "\r\n"} if kind == "xsv" else {}
    columns = {"text": "str", "id": "int", "score": "float"}
    with writers[kind](out=folder, columns=columns, compression=compression or None, hashes=["md5", "xxh3_64"], size_limit=9000,
                       **options) as writer:
        for i, line in enumerate(open(file)):
            writer.write({"text": "größe " + line.strip(), "id": i - 5, "score": i / 7 * 10.0 ** (i % 40 - 20)})


def show(folder):
    from streaming import StreamingDataset
    from streaming.base.util import clean_stale_shared_memory

    clean_stale_shared_memory()
    shutil.copytree(folder, folder + "-copy")
    dataset = StreamingDataset(local=folder + "-copy", shuffle=False, batch_size=1)
    for i in range(dataset.num_samples):
        print(json.dumps(dataset[i], sort_keys=True))
    shutil.rmtree(folder + "-copy")


def values():
    for sample in json.load(sys.stdin):
        row = sample["columns"]
        print(json.dumps({"id": int(row["id"]), "score": float(row["score"]), "text": row["text"]}))


def rows(folder, column):
    from streaming import StreamingDataset
    from streaming.base.util import clean_stale_shared_memory

    clean_stale_shared_memory()
    dataset = StreamingDataset(local=folder, shuffle=False, batch_size=1)
    for i in range(dataset.num_samples):
        print(json.dumps(dataset[i][column]))


def write_rows(folder, file):
    from streaming import MDSWriter

    lines = [json.loads(line) for line in open(file)]
    columns = {name: "json" if name == "messages" else "str" for name in lines[0]}
    with MDSWriter(out=folder, columns=columns, hashes=["sha1", "xxh64"]) as writer:
        for line in lines:
            writer.write(line)


def main():
    if sys.argv[1] == "rows":
        rows(*sys.argv[2:])
    elif sys.argv[1] == "write-rows":
        write_rows(*sys.argv[2:])
    elif sys.argv[1] == "read":
        read(sys.argv[2])
    elif sys.argv[1] == "write_lines":
        write_lines(*sys.argv[2:])
    elif sys.argv[1] == "show":
        show(sys.argv[2])
    elif sys.argv[1] == "values":
        values()
    elif sys.argv[1] == "write":
        write(*sys.argv[2:])
    else:
        for sample in json.load(sys.stdin):
            print(*sample["tokens"])


main()
