"""Writes tests/golden/token_files/: token files of other systems, and the rows that their own readers give.

Made with megatron-core 0.16.1 (its IndexedDatasetBuilder and reader) and datatrove 0.10.1 (TokenizedFile,
DatatroveFileDataset). fairseq's index is that of Megatron-LM without the documents. llm.c is no package: the header is that of its dev/data/data_common.py.

    python tests/golden/make_token_file_goldens.py
"""
import json
import pathlib
import shutil
import struct

import numpy as np

OUT = pathlib.Path(__file__).parent / "token_files"
SEQ_LEN = 8
EOS = 0


def documents():
    rng = np.random.default_rng(17)
    return [[*map(int, rng.integers(1, 500, length)), EOS] for length in (5, 1, 23, 9, 40, 3)]


def windows(tokens, stride):
    return [list(map(int, tokens[at : at + SEQ_LEN + 1])) for at in range(0, len(tokens) - SEQ_LEN, stride)]


def megatron(rows):
    from megatron.core.datasets.indexed_dataset import IndexedDataset, IndexedDatasetBuilder

    for name, dtype in (("megatron_uint16", np.uint16), ("megatron_int32", np.int32)):
        builder = IndexedDatasetBuilder(str(OUT / f"{name}.bin"), dtype=dtype)
        for document in documents():
            half = len(document) // 2  # two sequences in a document
            builder.add_document(document, [half, len(document) - half])
        builder.finalize(str(OUT / f"{name}.idx"))
        read = IndexedDataset(str(OUT / name))
        tokens = np.concatenate([read[i] for i in range(len(read))])
        rows[name] = windows(tokens, SEQ_LEN)
    # fairseq's MMapIndexedDataset: the same without a list of documents.
    flat = np.concatenate(documents()).astype(np.int64)
    lengths = [len(document) for document in documents()]
    (OUT / "fairseq.bin").write_bytes(flat.tobytes())
    pointers = np.cumsum([0, *lengths[:-1]], dtype=np.int64) * 8
    (OUT / "fairseq.idx").write_bytes(
        b"MMIDIDX\x00\x00" + struct.pack("<QBQ", 1, 5, len(lengths)) + np.array(lengths, np.int32).tobytes() + pointers.tobytes()
    )
    rows["fairseq"] = windows(flat, SEQ_LEN)


def nanoset(rows):
    from datatrove.pipeline.tokens.tokenizer import TokenizedFile
    from datatrove.utils.dataset import DatatroveFileDataset

    for name, size in (("nanoset", 2), ("nanoset_large", 4)):
        file = TokenizedFile(str(OUT), f"{name}.ds", tokenizer_name_or_path="gpt2", save_final_metadata=True, token_size=size)
        for document in documents():
            file.write(document, None)
        file.close()
        read = DatatroveFileDataset(str(OUT / f"{name}.ds"), SEQ_LEN, token_size=size)
        rows[name] = [read[i]["input_ids"].tolist() for i in range(len(read))]


def llmc(rows):
    flat = np.concatenate(documents())
    for name, magic, version, dtype in (("llmc_gpt2", 20240520, 1, np.uint16), ("llmc_llama3", 20240801, 7, np.uint32)):
        header = np.zeros(256, np.int32)
        header[:3] = magic, version, len(flat)
        (OUT / f"{name}.bin").write_bytes(header.tobytes() + flat.astype(dtype).tobytes())
        rows[name] = windows(flat, SEQ_LEN)


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    rows = {}
    megatron(rows)
    nanoset(rows)
    llmc(rows)
    (OUT / "rows.json").write_text(json.dumps(rows, separators=(",", ":")) + "\n")


main()
