"""Writes tests/golden/parquet/: small Parquet files in every form that is read, and texts.json with their texts.
Made with pyarrow 26.0.1.

    python tests/golden/make_parquet_goldens.py
"""
import json
import pathlib

import pyarrow as pa
import pyarrow.parquet as pq

OUT = pathlib.Path(__file__).parent / "parquet"
TEXTS = ["The first line.", "größe: 東京 \U0001f600", "", "two\nlines\r\n", "The first line.", "The first word"]
TEXTS += [f"The {'long ' * (i % 7)}sentence number {i % 13}" for i in range(60)]
SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("text", pa.string()), pa.field("more", pa.list_(pa.int32()))])


def table(texts=TEXTS, schema=SCHEMA):
    return pa.table({"id": range(len(texts)), "text": texts, "more": [[i, i + 1] for i in range(len(texts))]}, schema=schema)


def write(name, data=None, **options):
    options = {"compression": "none", "use_dictionary": False, **options}
    pq.write_table(table() if data is None else data, OUT / f"{name}.parquet", **options)


def main():
    OUT.mkdir(exist_ok=True)
    for codec in ("snappy", "gzip", "brotli", "zstd", "lz4"):
        write(codec, compression=codec, use_dictionary=["text"])
    write("plain")
    write("plain_v2", data_page_version="2.0")
    write("zstd_v2", data_page_version="2.0", compression="zstd")
    write("dictionary_v2", data_page_version="2.0", compression="snappy", use_dictionary=["text"])
    write("groups", row_group_size=17, data_page_size=64, write_batch_size=5, use_dictionary=["text"])
    write("dictionary_too_large", use_dictionary=["text"], dictionary_pagesize_limit=60, data_page_size=200, write_batch_size=5)
    write("delta_length", column_encoding={"text": "DELTA_LENGTH_BYTE_ARRAY"}, data_page_size=200, write_batch_size=11)
    write("delta_text", column_encoding={"text": "DELTA_BYTE_ARRAY"}, compression="zstd")
    write("delta_text_v2", column_encoding={"text": "DELTA_BYTE_ARRAY"}, data_page_version="2.0", row_group_size=40)
    required = pa.schema([pa.field("id", pa.int64()), pa.field("text", pa.large_string(), nullable=False),
                          pa.field("more", pa.list_(pa.int32()))])
    write("required", table(schema=required))
    write("required_v2", table(schema=required), data_page_version="2.0", compression="zstd")
    write("inside_struct", pa.table({"meta": [{"n": i, "text": text} for i, text in enumerate(TEXTS)]}), compression="snappy")
    write("same", table(["always the same"] * 1000), use_dictionary=["text"], compression="zstd")
    write("nulls", table(TEXTS[:5] + [None] + TEXTS[5:]), use_dictionary=["text"], compression="zstd")
    write("all_null_v2", table([None] * 3), data_page_version="2.0", compression="zstd")
    write("empty", table([]))
    key = {"inside_struct": "meta"}
    texts = {}
    for path in sorted(OUT.glob("*.parquet")):
        column = pq.read_table(path)[key.get(path.stem, "text")].to_pylist()
        rows = [row["text"] if isinstance(row, dict) else row for row in column]
        texts[path.stem] = "common" if rows == TEXTS else rows[:1] if path.stem == "same" else rows
    texts["common"] = TEXTS
    (OUT / "texts.json").write_text(json.dumps(texts, indent=0, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
