#!/usr/bin/env python3
"""Reads the run of MLflow that a run folder names, with MLflow itself, and compares it with metrics.jsonl.

    python3 -m venv v && v/bin/pip install mlflow==3.17.2
    v/bin/python tests/golden/loggers/read_mlflow.py RUN TRACKING_URI STATUS
"""
import json
import os
import pathlib
import sys

os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"  # MLflow 3 reads folders only when it is told to
import mlflow

run_dir, uri, status = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
client = mlflow.MlflowClient(tracking_uri=uri)
run_id = (run_dir / "mlflow_run_id.txt").read_text().strip()
run = client.get_run(run_id)

losses = {}  # step -> the losses of all attempts
for line in open(run_dir / "metrics.jsonl"):
    record = json.loads(line)
    if "loss" in record:
        losses.setdefault(record["step"], []).append(record["loss"])

points = client.get_metric_history(run_id, "loss")
steps = [point.step for point in points]
assert sorted(steps) == sorted(set(steps)), f"{len(steps)} points of {len(set(steps))} steps"
assert sorted(steps) == sorted(losses), f"other steps: {sorted(set(steps) ^ set(losses))}"
for point in points:
    assert point.value in losses[point.step], f"step {point.step}: {point.value} for {losses[point.step]}"
assert run.info.status == status, f"{run.info.status}, not {status}"
mlflow.set_tracking_uri(uri)
newest = json.loads(run.data.tags["mlflow.loggedArtifacts"])
assert len(newest) == 2, newest
for found, folder, file, num_rows in [(newest[0], "icl/words/0-shot", "icl_outputs", 2), (newest[1], "loss_by_position", "loss_by_position", 16)]:
    rows = [json.loads(line) for line in open(run_dir / f"{file}.jsonl")]
    rows = [row for row in rows if row["step"] == rows[-1]["step"]]
    assert found == {"path": f"tables/{folder}/step-{rows[-1]['step']:09}.json", "type": "table"}, found
    table = mlflow.artifacts.load_dict(f"runs:/{run_id}/{found['path']}")
    assert len(table["data"]) == len(rows) == num_rows, table
    for cells, row in zip(table["data"], rows):
        assert dict(zip(table["columns"], cells)) == {column: row.get(column) for column in table["columns"]}, cells
recipe = json.loads((run_dir / "recipe.json").read_text())
assert run.info.run_name == recipe["run_name"], run.info.run_name
assert run.data.params["seed"] == str(recipe["seed"])
assert run.data.params["optimizer.lr"] == str(recipe["optimizer"]["lr"])
assert run.data.tags["team"] == "a" and run.data.tags["mlflow.source.name"] == "tycho"
assert client.get_experiment(run.info.experiment_id).name == "my words"
again = sum(len(all_losses) > 1 for all_losses in losses.values())
print(f"MLflow {mlflow.__version__}: {len(steps)} steps, {again} of them trained again, {len(run.data.params)} parameters")
