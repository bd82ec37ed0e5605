"""Writes tests/golden/plain_tokens/: tokens as nanoGPT, OLMo and build-nanogpt write them, and their rows.

Made with numpy 2.3.5. nanoGPT's data/*/prepare.py writes `ids.tofile` or a memmap of uint16; OLMo's .npy files are memmaps too, without NumPy's header; build-nanogpt's fineweb.py
writes `np.save` of uint16. Version 2 and 3 of the header are those of numpy.lib.format.write_array.

    python tests/golden/make_plain_token_goldens.py
"""
import json
import pathlib
import shutil

import numpy as np

OUT = pathlib.Path(__file__).parent / "plain_tokens"
SEQ_LEN = 8


def rows_of(tokens):
    """Rows of nanoGPT's get_batch at every SEQ_LEN-th place, which are those of build-nanogpt's loader of one sequence."""
    return [list(map(int, tokens[at : at + SEQ_LEN + 1])) for at in range(0, len(tokens) - SEQ_LEN, SEQ_LEN)]


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    rng = np.random.default_rng(23)
    small = rng.integers(0, 50257, 75)
    large = rng.integers(0, 128256, 75)
    rows = {}

    small.astype(np.uint16).tofile(OUT / "nanogpt.bin")
    rows["nanogpt.bin"] = rows_of(np.memmap(OUT / "nanogpt.bin", dtype=np.uint16, mode="r"))

    for name, dtype, tokens in (("olmo_uint16.npy", np.uint16, small), ("olmo_uint32.npy", np.uint32, large)):
        memmap = np.memmap(OUT / name, dtype=dtype, mode="w+", shape=tokens.shape)
        memmap[:] = tokens
        memmap.flush()
        rows[name] = rows_of(np.memmap(OUT / name, dtype=dtype, mode="r"))

    for name, dtype, tokens in (
        ("saved_uint16.npy", np.uint16, small),
        ("saved_uint32.npy", np.uint32, large),
        ("saved_int32.npy", np.int32, large),
        ("saved_int64.npy", np.int64, large),
    ):
        np.save(OUT / name, tokens.astype(dtype))
        rows[name] = rows_of(np.load(OUT / name))
    for version in (2, 3):
        name = f"version_{version}.npy"
        with open(OUT / name, "wb") as file:
            np.lib.format.write_array(file, small.astype(np.uint16), version=(version, 0))
        rows[name] = rows_of(np.load(OUT / name))

    np.save(OUT / "refused_big_endian.npy", small.astype(">u2"))
    np.save(OUT / "refused_float.npy", small.astype(np.float32))
    np.save(OUT / "refused_matrix.npy", small.astype(np.uint16).reshape(5, 15))
    (OUT / "rows.json").write_text(json.dumps(rows, separators=(",", ":")) + "\n")


main()
