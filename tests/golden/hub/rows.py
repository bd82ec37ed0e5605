"""Writes rows/, data sets of the hub as files; with --read, prints what rows.json has: the texts that `datasets` reads in each of their splits.

--read asks the hub of HF_ENDPOINT, which is the stand-in of tests/host/datasets_peer.sh. Each split is read twice, downloaded and as a stream.
Made with datasets 5.2.0, huggingface_hub 2.4.0, pyarrow 26.0.1 and zstandard 0.25.0.
A text file is one document here, so it is read with sample_by="document".
"""
import gzip
import io
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
TEXTS = ["A story.", "", " spaces \t and tabs ", "two\nlines", "CR\r\nLF", "quotes \" and ' and, commas", "caf\u00e9 \U0001f642 \u2028 \u00a0",
         "back\\slash \\n", "<|endoftext|>", "null", "3.14", "end"]


def lines(texts, **more):
    return "".join(json.dumps({"id": i, "text": t, **more}, ensure_ascii=i % 2 == 0) + "\n" for i, t in enumerate(texts)).encode()


def table(texts):
    import pyarrow as pa
    return pa.table({"id": list(range(len(texts))), "text": texts, "meta": [{"n": i} for i in range(len(texts))]})


def parquet(texts, **options):
    import pyarrow.parquet
    out = io.BytesIO()
    pyarrow.parquet.write_table(table(texts), out, **options)
    return out.getvalue()


def arrow(texts, as_file=False):
    import pyarrow as pa
    out = io.BytesIO()
    with (pa.ipc.new_file if as_file else pa.ipc.new_stream)(out, table(texts).schema) as writer:
        writer.write_table(table(texts), max_chunksize=5)
    return out.getvalue()


def csv(texts, newline="\n"):
    import csv as module
    out = io.StringIO()
    writer = module.writer(out, lineterminator=newline)
    writer.writerows([["id", "text"], *enumerate(texts)])
    return out.getvalue().encode()


def zstd(data):
    import zstandard
    return zstandard.ZstdCompressor().compress(data)


# Empty fields, "null" and numbers are no texts in CSV: `datasets` reads them with pandas.
WORDS = [text for text in TEXTS if text not in ("", "null", "3.14")]


def repositories():
    return {
        "rows/parquet": {"data/train-00000-of-00002.parquet": parquet(TEXTS[:5]),
                         "data/train-00001-of-00002.parquet": parquet(TEXTS[5:], compression="zstd", row_group_size=3),
                         "data/test-00000-of-00001.parquet": parquet(TEXTS[::2], use_dictionary=False)},
        "rows/json": {"train.jsonl": lines(TEXTS), "dev.jsonl.gz": gzip.compress(lines(TEXTS[::3]), mtime=0),
                      "test.jsonl.zst": zstd(lines(TEXTS[1::2]))},
        "rows/csv": {"README.md": b"---\nconfigs:\n- config_name: whole\n  default: true\n  data_files:\n  - split: train\n    path: all/*.csv\n"
                                  b"  - split: held_out\n    path: other/b.csv\n- config_name: windows\n  data_files: crlf.csv\n---\n",
                     "all/1.csv": csv(WORDS), "all/2.csv": csv(WORDS[::-1]), "other/b.csv": csv(WORDS[:3]),
                     "other/c.csv": csv(["not read"]), "crlf.csv": csv(WORDS, "\r\n")},
        "rows/arrow": {"train/0.arrow": arrow(TEXTS), "train/1.arrow": arrow(TEXTS[::-1], as_file=True), "validation/0.arrow": arrow(TEXTS[:1])},
        "rows/text": {"train/a.txt": "One\ndocument.\n".encode(), "train/b.txt": "Another: caf\u00e9.".encode(), "eval/c.txt": b"A test.\n"},
        "rows/unsplit": {"b.jsonl": lines(TEXTS[:2]), "a.jsonl": lines(TEXTS[2:4]), "notes.txt": b"not rows"},
    }


def read(name):
    import datasets
    kwargs = {"sample_by": "document"} if name == "rows/text" else {}
    cases = []
    for configuration in datasets.get_dataset_config_names(name):
        streams = datasets.load_dataset(name, configuration, streaming=True, **kwargs)
        for split, rows in datasets.load_dataset(name, configuration, **kwargs).items():
            texts = rows["text"][:]
            assert [row["text"] for row in streams[split]] == texts, f"{name} {configuration} {split}: the stream differs"
            cases.append({"repository": name, "configuration": configuration, "split": str(split), "texts": texts})
    return cases


if "--read" in sys.argv:
    print(json.dumps([case for folder in sorted((HERE / "rows").iterdir()) for case in read(f"rows/{folder.name}")], indent=1))
else:
    for name, files in repositories().items():
        for path, data in files.items():
            (HERE / name / path).parent.mkdir(parents=True, exist_ok=True)
            (HERE / name / path).write_bytes(data)
