"""Writes tests/golden/parquet/: small Parquet files in every form that is read, texts.json with their texts, and nested/rows.json with the rows of
those in nested/, whose columns are lists and structs, or the name of a file with the same; members of structs that are null are left out.
Made with pyarrow 26.0.1.

    python tests/golden/make_parquet_goldens.py
"""
import datetime
import decimal
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


def chats(count=40):
    """Conversations as list<struct>, with members that are null, and what else data sets of the hub have beside them."""
    rows = []
    for i in range(count):
        turns = [{"role": "user", "content": f"Question {i}: größe?", "name": None}, {"role": "assistant", "content": "Answer. " * (i % 5 + 1), "name": None}]
        rows.append({"messages": ([{"role": "system", "content": "", "name": None}] if i % 3 == 0 else []) + turns * (1 + i % 4),
                     "prompt_id": f"{i:032x}", "score": None if i % 7 == 0 else i / 4, "tags": None if i % 5 == 0 else [f"t{j}" for j in range(i % 3)]})
    return rows


MESSAGE = pa.struct([("role", pa.string()), ("content", pa.string()), ("name", pa.string())])
CHAT = pa.schema([("messages", pa.list_(MESSAGE)), ("prompt_id", pa.string()), ("score", pa.float64()), ("tags", pa.list_(pa.string()))])
DEEP = pa.schema([
    ("a", pa.list_(pa.list_(pa.int32()))), ("b", pa.struct([("x", pa.list_(pa.bool_())), ("y", pa.struct([("z", pa.int64())]))])),
    ("c", pa.list_(pa.struct([("k", pa.list_(pa.struct([("n", pa.float32())])))]))), ("d", pa.bool_()), ("e", pa.int64())])


def deep(count=60):
    """Every place where something can be missing or empty."""
    def maybe(i, value):
        return None if i % 4 == 3 else value

    return [{"a": maybe(i, [maybe(j, list(range(i % 3))) for j in range(i % 5)]),
             "b": maybe(i + 1, {"x": maybe(i // 2, [maybe(j, j % 2 == 0) for j in range(i % 4)]), "y": maybe(i // 3, {"z": maybe(i // 5, 2**40 * i)})}),
             "c": maybe(i + 2, [maybe(j, {"k": maybe(i + j, [maybe(j + m, {"n": m / 8}) for m in range(j)])}) for j in range(i % 5)]),
             "d": maybe(i, i % 3 == 0), "e": i * i - 900} for i in range(count)]


def without_nulls(value):
    if isinstance(value, dict):
        return {key: without_nulls(member) for key, member in value.items() if member is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def write_nested():
    (OUT / "nested").mkdir(exist_ok=True)
    chat, nested = pa.Table.from_pylist(chats(), schema=CHAT), pa.Table.from_pylist(deep(), schema=DEEP)
    turns = pa.schema([("input_ids", pa.list_(pa.int32())), ("labels", pa.list_(pa.int64()))])
    tokens = pa.Table.from_pylist([{"input_ids": list(range(3, 9)), "labels": [10 + i, 11]} for i in range(30)], schema=turns)
    files = {
        "chat": (chat, {"compression": "zstd", "use_dictionary": True}),
        "chat_v2": (chat, {"data_page_version": "2.0", "compression": "snappy", "use_dictionary": True}),
        "chat_pages": (chat, {"data_page_size": 100, "write_batch_size": 3, "row_group_size": 13}),
        "chat_old_lists": (chat, {"use_compliant_nested_type": False, "compression": "lz4"}),
        "deep": (nested, {}),
        "deep_v2": (nested, {"data_page_version": "2.0", "compression": "gzip", "data_page_size": 60, "write_batch_size": 4}),
        "deep_dictionary": (nested.drop_columns(["d"]), {"use_dictionary": True, "row_group_size": 11}),
        "deep_delta": (nested.select(["a", "e"]), {"column_encoding": {"a.list.element.list.element": "DELTA_BINARY_PACKED", "e": "DELTA_BINARY_PACKED"}}),
        "tokens": (tokens, {"compression": "brotli", "use_dictionary": True}),
        "empty": (chat.slice(0, 0), {}),
    }
    rows = {}
    for name, (data, options) in files.items():
        write("nested/" + name, data, **options)
        made = pq.read_table(OUT / "nested" / f"{name}.parquet").to_pylist()
        assert made == data.to_pylist()
        wanted = [{key: without_nulls(value) for key, value in row.items()} for row in made]
        rows[name] = next((other for other, same in rows.items() if same == wanted), wanted)
    lines = [f"{json.dumps(name)}: {json.dumps(made, separators=(',', ':'))}" for name, made in rows.items()]
    (OUT / "nested" / "rows.json").write_text("{" + ",\n".join(lines) + "}\n")


def odd_types():
    """Texts beside what is not read: 96-bit timestamps, decimals as bytes and as whole numbers, bytes of a fixed length."""
    prices = [decimal.Decimal("1.25"), None]
    columns = {"id": pa.array([0, 1]), "seen": pa.array([datetime.datetime(2026, 1, 2), None], pa.timestamp("ns")),
               "price": pa.array(prices, pa.decimal128(20, 2)), "cents": pa.array(prices, pa.decimal128(9, 2)),
               "digest": pa.array([b"0123456789abcdef"] * 2, pa.binary(16)), "text": pa.array(["one", "two"])}
    write("odd_types", pa.table(columns), use_deprecated_int96_timestamps=True, store_decimal_as_integer=True)


def main():
    OUT.mkdir(exist_ok=True)
    odd_types()
    write_nested()
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
