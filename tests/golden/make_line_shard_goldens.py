"""Writes tests/golden/line_shards/: data sets of texts from mosaicml-streaming's own JSONWriter, XSVWriter, CSVWriter and TSVWriter.
Made with mosaicml-streaming 0.13.0. samples.json: what its StreamingDataset reads from each.

    python tests/golden/make_line_shard_goldens.py
"""
import json
import pathlib
import shutil
import tempfile

from streaming import CSVWriter, JSONWriter, StreamingDataset, TSVWriter, XSVWriter
from streaming.base.util import merge_index

OUT = pathlib.Path(__file__).parent / "line_shards"
COLUMNS = {"text": "str", "id": "int", "score": "float"}
TEXTS = ["The first line.", "größe: 東京 \U0001f600", "", "a \"quoted\" text; with: signs", "five\\n", "the sixth", "seven " * 9]
SAMPLES = [{"text": text, "id": 10 ** i - 3, "score": i / 3 - 1e-9} for i, text in enumerate(TEXTS)]
CHATS = [{"prompt": f"What is {i}?", "response": f"{i} is {i * i // max(i, 1)}."} for i in range(1, 6)]


def write(writer, name, samples, columns=COLUMNS, **options):
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    with writer(out=str(folder), columns=columns, **options) as out:
        for sample in samples:
            out.write(sample)


def read(name):
    with tempfile.TemporaryDirectory() as folder:  # it decompresses in place
        shutil.copytree(OUT / name, pathlib.Path(folder) / "copy")
        dataset = StreamingDataset(local=folder + "/copy", shuffle=False, batch_size=1)
        return [dict(sorted(dataset[i].items())) for i in range(dataset.num_samples)]


def main():
    many = dict(size_limit=150, hashes=["sha1", "xxh64"])
    newlines = [dict(sample, text=sample["text"] + "\nand, \ta second line") for sample in SAMPLES]
    write(JSONWriter, "json", newlines, **many)
    write(JSONWriter, "json_zstd", newlines, compression="zstd:7", **many)
    write(XSVWriter, "xsv", SAMPLES, separator=" | ", newline="\r\n", **many)
    write(CSVWriter, "csv", SAMPLES, **many)
    write(TSVWriter, "tsv_gz", SAMPLES, compression="gz", **many)
    write(JSONWriter, "chat", CHATS, {"prompt": "str", "response": "str"}, size_limit=200)
    write(JSONWriter, "merged/a", newlines, hashes=["sha1"])
    write(TSVWriter, "merged/b", SAMPLES, compression="snappy")
    merge_index([str(OUT / "merged" / part / "index.json") for part in "ab"], str(OUT / "merged"))
    names = ["json", "json_zstd", "xsv", "csv", "tsv_gz", "chat", "merged"]
    text = json.dumps({name: read(name) for name in names}, indent=1, ensure_ascii=False, sort_keys=True)
    (OUT / "samples.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
