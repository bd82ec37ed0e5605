"""Writes tests/golden/icl/core.json: CORE as DCLM's own repository defines and computes it.

tasks: the 22 tasks of eval/mmlu_and_lowvar.yaml that additional_aggregation.json counts, with the random baselines (in %) of
eval_meta_data.csv; accuracies: made up; centred and core: what aggregated_metrics.py makes of these accuracies.
Made with mlfoundations/dclm at 361714b (8 September 2025) and pandas 3.1.1:
  python tests/golden/icl/make_core_goldens.py CHECKOUT_OF_DCLM
"""
import csv
import importlib.util
import json
import pathlib
import random
import sys

import pandas
import yaml

HERE = pathlib.Path(__file__).parent


def main():
    dclm = pathlib.Path(sys.argv[1]) / "eval"
    spec = importlib.util.spec_from_file_location("aggregated_metrics", dclm / "aggregated_metrics.py")
    metrics = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(metrics)
    aggregation = json.loads((dclm / "additional_aggregation.json").read_text())
    core = aggregation["low_variance_datasets"]
    meta = {row["Eval Task"]: row for row in csv.DictReader((dclm / "eval_meta_data.csv").open())}
    tasks = [task for task in yaml.safe_load((dclm / "mmlu_and_lowvar.yaml").read_text())["icl_tasks"] if task["label"] in core]
    assert sorted(task["label"] for task in tasks) == sorted(core) and len(core) == 22
    assert all([int(meta[task["label"]]["#shots"])] == task["num_fewshot"] for task in tasks)
    random.seed(22)
    accuracies = {label: round(random.random(), 4) for label in core}
    table = pandas.read_csv(dclm / "eval_meta_data.csv")
    found = metrics.get_aggregated_results({"eval_metrics": {"icl": accuracies}}, table, aggregation)
    centred = dict(zip(table["Eval Task"], table["centered results"]))
    for task in tasks:
        task["random_baseline_percent"] = float(meta[task["label"]]["Random baseline"])
    golden = {"tasks": tasks, "accuracies": accuracies, "centred": {label: centred[label] for label in core}, "core": found["Core_v2"]}
    (HERE / "core.json").write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
