#!/usr/bin/env python3
"""Writes splits.json: which files of a folder are of which split, as `datasets` finds them.

datasets 5.2.0, fsspec as it installs. Run in a virtual environment that has them:
    python tests/golden/splits/make_split_goldens.py
"""
import json
import os
import tempfile
from pathlib import Path

from datasets.data_files import DataFilesDict, get_data_patterns

FOLDERS = [
    ["data/train-00000-of-00002.parquet", "data/train-00001-of-00002.parquet", "data/test-00000-of-00001.parquet"],
    ["data/train_sft-00000-of-00001.parquet", "data/test_sft-00000-of-00001.parquet", "data/train_gen-00000-of-00001.parquet"],
    ["data/train-00000-of-00001.parquet", "extra/test.jsonl", "notes.txt"],
    ["train.jsonl", "validation.jsonl", "test.jsonl"],
    ["train.json.gz", "test.json.gz"],
    ["training.csv", "dev.csv", "eval.csv"],
    ["train/a.jsonl", "train/b.jsonl", "valid/a.jsonl"],
    ["my-train-split/a.txt", "my_val_2/b.txt", "evaluation/c.txt", "other/d.txt"],
    ["en/train/a.jsonl", "de/train/a.jsonl", "de/test/a.jsonl"],
    ["en/train.jsonl", "de/train.jsonl", "de/test_1.jsonl"],
    ["en-train.jsonl", "en-test.jsonl"],
    ["a.jsonl", "b.jsonl", "c.txt"],
    ["a.jsonl", "test.jsonl"],
    ["latest.jsonl", "trained.jsonl", "values.jsonl", "devices.jsonl"],
    ["Train.jsonl", "TEST.jsonl"],
    ["train1.jsonl", "test2.jsonl", "dev 3.jsonl", "a.val.b.jsonl"],
    ["train-test.jsonl", "b.jsonl"],
    ["train/test.jsonl", "train/train.jsonl", "other/val.jsonl"],
    ["part-0-of-2.parquet", "shards/train-00000-of-00002.parquet"],
    ["shards/train_0.jsonl.zst", "shards/eval_0.jsonl.zst"],
]


def splits_of(files):
    with tempfile.TemporaryDirectory() as folder:
        for name in files:
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x")
        found = DataFilesDict.from_patterns(get_data_patterns(folder), base_path=folder)
        return {str(split): sorted({os.path.relpath(path, folder) for path in paths}) for split, paths in found.items()}


if __name__ == "__main__":
    cases = [{"files": sorted(files), "splits": splits_of(files)} for files in FOLDERS]
    (Path(__file__).parent / "splits.json").write_text(
        "[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")
