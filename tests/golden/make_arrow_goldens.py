"""Writes tests/golden/arrow/: small Arrow files and streams of every form that is read, folders of datasets' save_to_disk and of its cache, and rows.json with their rows as
pyarrow reads them; members of structs that are null are left out.
Made with pyarrow 26.0.1, datasets 5.2.0.

    python tests/golden/make_arrow_goldens.py
"""
import json
import os
import pathlib
import shutil
import tempfile

import datasets
import pyarrow as pa
import pyarrow.ipc

OUT = pathlib.Path(__file__).parent / "arrow"
TEXTS = ["The first line.", "größe: 東京 \U0001f600", "", "two\nlines\r\n", "short text 12"] + [f"The {'long ' * (i % 7)}sentence {i % 5}" for i in range(12)]


def without_nulls(value):
    if isinstance(value, dict):
        return {key: without_nulls(member) for key, member in value.items() if member is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def write(name, table, stream=True, batch_rows=None, **options):
    open_writer = pa.ipc.new_stream if stream else pa.ipc.new_file
    with open_writer(str(OUT / name), table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=batch_rows)
    rows[name] = [{key: without_nulls(value) for key, value in row.items()} for row in table.to_pylist()]


def texts(kind, nulls=False):
    return pa.table({"id": pa.array(range(len(TEXTS))), "text": pa.array([None if nulls and i % 4 == 2 else text for i, text in enumerate(TEXTS)], kind)})


def nested():
    message = pa.struct([("role", pa.string()), ("content", pa.string()), ("name", pa.string())])
    count = 9

    def maybe(i, value):
        return None if i % 4 == 3 else value

    columns = {
        "messages": pa.array([[{"role": "user", "content": f"Q{i} ü", "name": None}, {"role": "assistant", "content": "A" * i, "name": None}] * (i % 3) for i in range(count)], pa.list_(message)),
        "large": pa.array([maybe(i, list(range(i % 5))) for i in range(count)], pa.large_list(pa.int64())),
        "view": pa.array([maybe(i + 1, list(range(i % 4))) for i in range(count)], pa.list_view(pa.int32())),
        "large_view": pa.array([maybe(i + 2, list(range(i % 3))) for i in range(count)], pa.large_list_view(pa.int16())),
        "fixed": pa.array([maybe(i, [i, i + 1]) for i in range(count)], pa.list_(pa.uint8(), 2)),
        "deep": pa.array([{"x": maybe(i, [i % 2 == 0, None]), "y": maybe(i + 2, {"z": i / 8, "t": maybe(i, f"t{i}")})} for i in range(count)], pa.struct([("x", pa.list_(pa.bool_())), ("y", pa.struct([("z", pa.float64()), ("t", pa.string())]))])),
        "wide": pa.array([2**64 - 1 - i for i in range(count)], pa.uint64()),
        "small": pa.array([-i for i in range(count)], pa.int8()),
        "half": pa.array([i / 4 for i in range(count)], pa.float32()),
        "labels": pa.array([["no", "yes", None][i % 3] for i in range(count)]).dictionary_encode(),
    }
    return pa.table(columns)


def odd():
    """Columns that are not read, beside one that is."""
    import datetime
    import decimal

    union = pa.UnionArray.from_sparse(pa.array([0, 1, 0], pa.int8()), [pa.array([1, 2, 3]), pa.array(["a", "b", "c"])])
    dense = pa.UnionArray.from_dense(pa.array([0, 1, 0], pa.int8()), pa.array([0, 0, 1], pa.int32()), [pa.array([1, 3]), pa.array(["b"])])
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["r", "s"]))
    return pa.table({"nothing": pa.nulls(3), "union": union, "dense": dense, "runs": runs, "time": pa.array([datetime.datetime(2026, 1, 1)] * 3, pa.timestamp("us")), "decimal": pa.array([decimal.Decimal("1.5")] * 3),
                     "bytes": pa.array([b"\x00\x01"] * 3), "width": pa.array([b"ab"] * 3, pa.binary(2)), "pairs": pa.array([[("a", 1)]] * 3, pa.map_(pa.string(), pa.int64())), "text": pa.array(["one", "two", "three"])})


def saved():
    chats = [{"messages": [{"role": "user", "content": f"Question {i}?"}, {"role": "assistant", "content": f"Answer {i}."}]} for i in range(6)]
    tokens = [{"input_ids": [1, 2, 3 + i], "labels": [7, 8 + i]} for i in range(6)]
    (OUT / "saved").mkdir()
    datasets.Dataset.from_dict({"text": TEXTS}).save_to_disk(str(OUT / "saved/texts"), num_shards=2)
    datasets.Dataset.from_list(chats).save_to_disk(str(OUT / "saved/chats"))
    datasets.Dataset.from_list(tokens).save_to_disk(str(OUT / "saved/tokens"))
    halves = datasets.Dataset.from_dict({"text": TEXTS})
    datasets.DatasetDict({"train_sft": halves.select(range(10)), "test_sft": halves.select(range(10, 17))}).save_to_disk(str(OUT / "saved/splits"))
    # load_from_disk and map leave a file beside the data that is not part of it.
    datasets.load_from_disk(str(OUT / "saved/texts")).map(lambda row: {"text": "MAPPED " + row["text"]})
    with tempfile.TemporaryDirectory() as temp:
        for split in ("train", "validation"):
            pathlib.Path(temp, f"{split}.jsonl").write_text("".join(json.dumps({"text": f"{split} {i}"}) + "\n" for i in range(4)))
        datasets.load_dataset("json", data_files={"train": f"{temp}/train.jsonl", "validation": f"{temp}/validation.jsonl"}, cache_dir=f"{temp}/cache")
        (OUT / "cache").mkdir()
        for path in pathlib.Path(temp, "cache").rglob("*"):
            if path.suffix in (".arrow", ".json"):
                shutil.copy(path, OUT / "cache" / path.name)


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    write("stream.arrow", texts(pa.string()), batch_rows=5)
    write("file.arrow", texts(pa.string()), stream=False, batch_rows=5)
    write("feather.feather", texts(pa.string()), stream=False, compression="lz4")
    for codec in ("lz4", "zstd"):
        write(f"{codec}.arrow", texts(pa.string()), compression=codec)
        write(f"{codec}_nested.arrow", nested(), compression=codec, batch_rows=4)
    long_texts = pa.table({"text": ["".join(chr(97 + (i * j * j) % 23) for j in range(9000)) for i in range(1, 12)] * 2})
    write("lz4_linked.arrow", long_texts, compression="lz4")  # more than one block of 64 KiB; the test knows the rule
    del rows["lz4_linked.arrow"]
    write("large_string.arrow", texts(pa.large_string(), nulls=True))
    write("string_view.arrow", texts(pa.string_view(), nulls=True))
    write("nulls.arrow", texts(pa.string(), nulls=True))
    encoded = pa.table({"text": pa.array(TEXTS).dictionary_encode()})
    write("dictionary.arrow", encoded)
    write("dictionary_file.arrow", encoded, stream=False)
    parts = pa.Table.from_batches([pa.record_batch({"text": pa.array(part).dictionary_encode()}) for part in (["a", "b", "a"], ["a", "b", "c", "b"], ["d", "d"])])
    write("dictionary_replaced.arrow", parts)
    write("dictionary_deltas.arrow", parts.slice(0, 7), emit_dictionary_deltas=True)
    write("inside_struct.arrow", pa.table({"meta": pa.array([{"text": "in"}, {"text": None}, None, {"text": "side"}])}))
    write("nested.arrow", nested(), batch_rows=4)
    write("empty.arrow", texts(pa.string()).slice(0, 0))
    write("odd.arrow", odd())
    del rows["odd.arrow"]
    saved()
    (OUT / "rows.json").write_text(json.dumps(rows, separators=(",", ":"), ensure_ascii=False) + "\n")


rows = {}
main()
