#!/usr/bin/env python3
"""Compares what `wandb sync` sent to wandb_server.py with the metrics.jsonl of the run.

    read_wandb.py RUN STATE.json NUM_ATTEMPTS
"""
import json
import pathlib
import sys


def filled(value):
    """Without empty tables, which wandb leaves out."""
    return {k: filled(v) for k, v in value.items() if v != {} and filled(v) != {}} if isinstance(value, dict) else value


run_dir, num_attempts = pathlib.Path(sys.argv[1]), int(sys.argv[3])
state = json.loads(pathlib.Path(sys.argv[2]).read_text())
assert not state["unknown"], f"calls that the server does not know: {state['unknown']}"
run = state["runs"][(run_dir / "wandb_run_id.txt").read_text().strip()]

losses = {}  # step -> the losses of all attempts
for line in open(run_dir / "metrics.jsonl"):
    record = json.loads(line)
    if "loss" in record:
        losses.setdefault(record["step"], []).append(record["loss"])

rows = [row for row in run["history"] if row and "loss" in row]
steps = [row["_step"] for row in rows]
assert len(rows) == len(run["history"]), "places without a row"
assert steps == sorted(set(steps)), f"steps do not grow: {steps}"
# The step at the time of a kill may be missing.
missing = set(losses) - set(steps)
assert len(missing) < num_attempts and not set(steps) - set(losses), f"missing {missing}"
for row in rows:
    assert row["loss"] in losses[row["_step"]], f"step {row['_step']}: {row['loss']} for {losses[row['_step']]}"
assert run["summary"]["loss"] == losses[max(losses)][-1], run["summary"]
for name, source, num_rows, least_tables in [("icl/words/0-shot", "icl_outputs", 2, 1), ("loss_by_position", "loss_by_position", 16, 2)]:
    lines = [json.loads(line) for line in open(run_dir / f"{source}.jsonl")]
    tables = {row["_step"]: row[name] for row in rows if name in row}
    assert len(tables) >= least_tables and run["summary"][name] == tables[lines[-1]["step"]] == tables[max(tables)], tables
    for step, table in tables.items():
        wanted = [line for line in lines if line["step"] == step][-num_rows:]  # of several attempts the newest
        file = json.loads(run["files"][table["path"]])
        assert table["_type"] == "table-file" and len(file["columns"]) == table["ncols"], table
        assert len(file["data"]) == table["nrows"] == len(wanted) == num_rows, file
        for cells, line in zip(file["data"], wanted):
            assert dict(zip(file["columns"], cells)) == {column: line.get(column) for column in file["columns"]}, cells
recipe = json.loads((run_dir / "recipe.json").read_text())
config = {key: entry["value"] for key, entry in run["config"].items() if key not in ("_wandb", "wandb_version")}
assert filled(config) == filled(recipe), "the configuration is not the recipe"
assert (run["displayName"], run["project"], run["group"], run["tags"]) == (recipe["run_name"], "words", "g", ["a", "small"]), run
assert run["exit"][-1] == 0, run["exit"]
print(f"{len(steps)} steps, {len(missing)} missing")
