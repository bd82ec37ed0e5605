"""Writes tests/golden/mds_values/: every encoding and every compression of mosaicml-streaming's MDSWriter, and every checksum.
Made with mosaicml-streaming 0.13.0, NumPy 2.1.3, zstd 1.5.7.2, Brotli 1.2.1, python-snappy 0.7.3.

    python tests/golden/make_mds_value_goldens.py              # writes them
    python tests/golden/make_mds_value_goldens.py FOLDER...    # reads data sets that Tycho wrote, and prints their samples
"""
import json
import pathlib
import shutil
import sys
from decimal import Decimal

import numpy as np
from PIL import Image
from streaming import MDSWriter, StreamingDataset
from streaming.base.hashing import get_hashes

OUT = pathlib.Path(__file__).parent / "mds_values"
SCALARS = ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]


def write(name, columns, samples, **options):
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    with MDSWriter(out=str(folder), columns=columns, **options) as writer:
        for sample in samples:
            writer.write(sample)


def scalars():
    columns = {name: name for name in SCALARS}
    lowest = {n: (np.iinfo(n).min if "int" in n else np.finfo(n).min) for n in SCALARS}
    highest = {n: (np.iinfo(n).max if "int" in n else np.finfo(n).max) for n in SCALARS}
    small = {n: (7 if "int" in n else 0.1) for n in SCALARS}
    write("scalars", columns, [lowest, highest, small])


def texts():
    columns = {"a": "str", "b": "bytes", "c": "json", "d": "str_int", "e": "str_float", "f": "str_decimal", "g": "int"}
    write("texts", columns, [
        {"a": "caf\u00e9 \U0001f600\n", "b": b"\x00\xff", "c": {"z": [1, 2.5, 1e16, 1e-7, None, True], "a": "\u00e9\x7f\"\\\u2028"},
         "d": 10**30, "e": 1e22, "f": Decimal("1.50E+7"), "g": 2**62},
        {"a": "", "b": b"", "c": [], "d": -5, "e": 0.1, "f": Decimal("-0.001"), "g": -1},
        {"a": "x", "b": b"x", "c": {"big": float("inf"), "not": float("nan")}, "d": 0, "e": float("-inf"), "f": Decimal("NaN"), "g": 0},
    ])


def arrays():
    columns = {"fixed": "ndarray:int16:2,3", "typed": "ndarray:float32", "free": "ndarray", "long": "ndarray:uint8"}
    cube = np.arange(24, dtype=np.uint64).reshape(2, 3, 4)
    write("arrays", columns, [
        {"fixed": np.arange(6, dtype=np.int16).reshape(2, 3), "typed": np.array([[0.5, -1]], np.float32), "free": cube,
         "long": np.zeros(300, np.uint8)},
        {"fixed": -np.ones((2, 3), np.int16), "typed": np.ones((1, 1, 2), np.float32),
         "free": np.array([1.5], np.float16), "long": np.full((1, 70000), 9, np.uint8)},
    ])


def pictures():
    def picture(width, height, mode):
        return Image.frombytes(mode, (width, height), bytes(range(width * height * len(mode))))

    columns = {"a": "pil", "b": "png", "c": "jpeg", "d": "list[pil]", "e": "list[png]", "f": "list[jpeg]", "g": "jpeg_array",
               "h": "jpegarray"}
    rgb, grey = picture(3, 2, "RGB"), picture(4, 2, "L")
    write("pictures", columns, [
        {"a": rgb, "b": rgb, "c": rgb, "d": [rgb, grey], "e": [grey], "f": [rgb, rgb], "g": [b"jpeg", b"bytes"], "h": [b"x"]},
    ])


def compressed():
    samples = [{"tokens": np.arange(i, i + 40, dtype=np.int32) % 50} for i in range(12)]
    for compression in ["zstd", "zstd:19", "gz", "gz:1", "br", "br:5", "bz2", "bz2:1", "snappy"]:
        write("compressed_" + compression.replace(":", "_"), {"tokens": "ndarray:int32"}, samples, compression=compression,
              size_limit=1200, hashes=["sha1", "xxh64"])


def hashes():
    samples = [{"tokens": np.arange(i, i + 10, dtype=np.int32)} for i in range(3)]
    write("hashes", {"tokens": "ndarray:int32"}, samples, hashes=sorted(get_hashes()))


def plain(value):
    if isinstance(value, np.ndarray):
        return [value.dtype.name, list(value.shape), value.ravel()[:8].tolist()]
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, bytes):
        return value.hex()[:32]
    if isinstance(value, Image.Image):
        return [*value.size, value.mode]
    if isinstance(value, list) and value and isinstance(value[0], Image.Image):
        return [plain(v) for v in value]
    if isinstance(value, Decimal):
        return str(value)
    return value


def show(folder):
    for sample in StreamingDataset(local=folder, shuffle=False, batch_size=1):
        print(json.dumps({key: plain(value) for key, value in sample.items()}))


if sys.argv[1:]:
    for argument in sys.argv[1:]:
        show(argument)
else:
    for make in (scalars, texts, arrays, pictures, compressed, hashes):
        make()
