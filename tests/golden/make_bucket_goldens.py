"""Writes tests/golden/order/buckets.json: orders of rows in buckets of similar lengths, by NumPy and xxhash alone.

A case is {rows, batch, window, seed, epoch, order}: row i of the epoch is row (7 i + 3) % rows of the data, whose row r has
1 + (r * r + 5 r) % 23 tokens; `rows` has no factor 7. Made with NumPy 2.1.3 and xxhash 3.8.2:
  python tests/golden/make_bucket_goldens.py
"""
import json
import pathlib

import numpy
import xxhash

OUT = pathlib.Path(__file__).parent / "order" / "buckets.json"


def length(row):
    return 1 + (row * row + 5 * row) % 23


def in_buckets(rows, batch, window, seed, epoch):
    epoch_rows = [(7 * i + 3) % rows for i in range(rows)]
    whole = rows // batch * batch
    order = []
    for number, begin in enumerate(range(0, whole, window * batch)):
        part = sorted(epoch_rows[begin : min(begin + window * batch, whole)], key=length)
        batches = [part[i : i + batch] for i in range(0, len(part), batch)]
        places = numpy.arange(len(batches))
        numpy.random.default_rng(xxhash.xxh3_64_intdigest(f"length buckets {epoch} {number}", seed=seed)).shuffle(places)
        order += [row for place in places for row in batches[place]]
    return order + epoch_rows[whole:]


SHAPES = [(40, 4, 5), (40, 4, 3), (41, 4, 3), (100, 8, 100), (13, 13, 2), (90, 1, 10), (60, 7, 1), (5, 8, 2)]
cases = [
    {"rows": rows, "batch": batch, "window": window, "seed": seed, "epoch": epoch, "order": in_buckets(rows, batch, window, seed, epoch)}
    for rows, batch, window in SHAPES
    for seed, epoch in [(17, 0), (17, 1), (2**40 + 5, 3)]
]
OUT.write_text("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")
