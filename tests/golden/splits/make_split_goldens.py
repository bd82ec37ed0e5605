#!/usr/bin/env python3
"""Writes splits.json: which files of a folder are of which configuration and split, as `datasets` finds them.

datasets 5.2.0 with fsspec 2026.9.0. Run in a virtual environment that has them:
    python tests/golden/splits/make_split_goldens.py
A case has the folder's files, README.md if there is one, the configuration that is asked for, and what load_dataset_builder
chooses: the configuration's name and the files of each split, in order; or "error". A file that two patterns of a split match
is loaded twice by `datasets`; it is listed once here.
"""
import json
import os
import tempfile
from pathlib import Path

from datasets import load_dataset_builder, logging
from datasets.data_files import DataFilesDict, get_data_patterns

# Folders whose names alone decide; files may be of any kind.
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
    ["train/b.jsonl", "a_train/a.jsonl", "training/c.jsonl"],
    ["train/.hidden.jsonl", "train/a.jsonl", "__pycache__/train/b.jsonl", ".cache/train/c.jsonl"],
    ["data/a.b_1-00000-of-00001.parquet"],
    ["data/train-00000-of-00001-abcdef0123456789.parquet", "data/validation-00000-of-00001-abcdef0123456789.parquet"],
]

# Whole data sets, with README.md and the configuration that is asked for.
C4 = """---
license: odc-by
configs:
- config_name: en
  data_files:
  - split: train
    path: en/c4-train.*.json.gz
  - split: validation
    path: en/c4-validation.*.json.gz
- config_name: realnewslike
  data_files:
  - split: train
    path: realnewslike/c4-train.*.json.gz
---
# C4
"""
C4_FILES = ["en/c4-train.00001-of-01024.json.gz", "en/c4-train.00000-of-01024.json.gz", "en/c4-validation.00000-of-00008.json.gz",
            "realnewslike/c4-train.00000-of-00512.json.gz", "multilingual/c4-af.json.gz", ".gitattributes"]


def card(text):
    return f"---\n{text}---\nwords\n"


DATA_SETS = [
    (C4_FILES, C4, "en"),
    (C4_FILES, C4, "realnewslike"),
    (C4_FILES, C4, None),
    (C4_FILES, C4, "de"),
    (["a.jsonl", "b.csv"], card("configs:\n- config_name: default\n  data_files: b.csv\n- config_name: other\n  data_files: a.jsonl\n"), None),
    (["a.jsonl", "b.jsonl"], card("configs:\n- config_name: one\n  data_files: a.jsonl\n- config_name: two\n  data_files: b.jsonl\n  default: true\n"), None),
    (["a.jsonl", "b.jsonl"], card("configs:\n- config_name: only\n  data_files:\n  - b.jsonl\n  - a.jsonl\n"), None),
    (["a.jsonl", "b.jsonl"], card("configs:\n- config_name: one\n  default: true\n  data_files: a.jsonl\n- config_name: two\n  data_files: b.jsonl\n  default: true\n"), None),
    (["a.jsonl"], card("configs:\n- config_name: one\n  data_files: a.jsonl\n- config_name: two\n  data_files: a.jsonl\ndataset_info:\n- config_name: two\n"), None),
    (["x/train/a.jsonl", "x/test/a.jsonl", "y/train/a.jsonl"],
     card("configs:\n- config_name: x\n  data_dir: x\n- config_name: y\n  data_dir: y\n"), "x"),
    (["x/b-train.parquet", "x/c.parquet", "y.parquet"],
     card("configs:\n- config_name: y\n  data_files: y.parquet\n- config_name: x\n  data_dir: x\n  data_files:\n  - split: train\n    path: b-*\n  - split: rest\n    path: c.parquet\n"), "x"),
    (["data/train-00000-of-00001.parquet", "data/test_prefs-00000-of-00001.parquet", "README.txt"],
     card("configs:\n- config_name: default\n  data_files:\n  - split: train\n    path: data/train-*\n  - split: test_prefs\n    path:\n    - data/test_prefs-*\n"), None),
    (["a/b/c.parquet", "d.parquet", "a/e.parquet"], card("configs:\n- config_name: default\n  data_files: '**/*.parquet'\n"), None),
    (["a/b/c.parquet", "d.parquet"], card("configs:\n- config_name: default\n  data_files: '*/*.parquet'\n"), None),
    (["a1.csv", "a2.csv", "b3.csv", "a.csv"], card("configs:\n- config_name: default\n  data_files: 'a[0-9].csv'\n"), None),
    (["a1.csv", "b2.csv", "c3.csv"], card("configs:\n- config_name: default\n  data_files: '[!a]?.csv'\n"), None),
    (["./a.csv", "b.csv"], card("configs:\n- config_name: default\n  data_files: './a.csv'\n"), None),
    (["a.csv"], card("configs:\n- config_name: default\n  data_files: missing.csv\n"), None),
    (["a.csv"], card("configs:\n- config_name: default\n  data_files: 'missing*.csv'\n"), None),
    (["a.csv"], card("configs:\n- config_name: default\n  data_files: '**.csv'\n"), None),
    (["a.csv"], card("configs:\n- config_name: default\n  data_files:\n  - split: tr-ain\n    path: a.csv\n"), None),
    (["a.csv"], card("configs:\n- config_name: default\n  data_files:\n  - split: train\n    path: a.csv\n  - split: train\n    path: a.csv\n"), None),
    (["a.csv"], card("configs:\n- data_files: a.csv\n"), None),
    (["a.csv", "b.csv"], card("license: mit\n"), None),
    (["a.csv", "b.csv"], card("license: mit\n"), "en"),
    (["a.parquet", "LICENSE.txt", "notes.md", "scores.png"], None, None),
    (["a.parquet", "b.jsonl"], None, None),
    (["a.jsonl", "b.jsonl", "c.parquet"], None, None),
    (["train.json", "train.txt", "test.json"], None, None),
    (["train/a.parquet", "train/notes.log", "test/b.parquet"], None, None),
    (["notes.log"], None, None),
    ([], None, None),
    (["sub/config.json", "dataset_dict.json", "a.json"], None, None),
    (["data/a-b-00000-of-00001.parquet"], None, None),
    (["a.jsonl"], "words without a card\n", None),
    (["plain/train.txt", "plain/valid.txt"], "\n---\nconfigs: []\n---\n", None),
]


def make(folder, files):
    for name in files:
        path = Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")


def relative(splits, folder):
    return {str(split): list(dict.fromkeys(os.path.relpath(path, folder) for path in paths)) for split, paths in splits.items()}


def splits_of(files):
    with tempfile.TemporaryDirectory() as folder:
        make(folder, files)
        return relative(DataFilesDict.from_patterns(get_data_patterns(folder), base_path=folder), folder)


def chosen(files, readme, name):
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as cache:
        make(folder, files)
        if readme is not None:
            (Path(folder) / "README.md").write_text(readme)
        try:
            config = load_dataset_builder(folder, name, cache_dir=cache).config
            return {"configuration": config.name.split("-" + "data_files")[0] if not name else name, "splits": relative(config.data_files, folder)}
        except Exception as error:
            return {"error": type(error).__name__}


if __name__ == "__main__":
    logging.set_verbosity_error()
    cases = [{"files": sorted(files), "splits": splits_of(files)} for files in FOLDERS]
    for files, readme, name in DATA_SETS:
        cases.append({"files": sorted(str(Path(file)) for file in files), "readme": readme, "asked": name, "chosen": chosen(files, readme, name)})
    (Path(__file__).parent / "splits.json").write_text(
        "[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")
