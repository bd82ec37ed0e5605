#!/usr/bin/env python3
"""Reads what the loggers of a run wrote with the readers of their own systems, and compares it with metrics.jsonl.

The run folder is that of a run with t.log.tensorboard {}, t.log.csv {}, t.log.wandb {...} and t.log.prometheus { file =
"RUN/metrics.prom" }, best one that was killed and resumed:

    python3 -m venv /tmp/peers && /tmp/peers/bin/pip install tensorboard==2.21.0 wandb==0.31.0 prometheus-client==0.26.0
    /tmp/peers/bin/pip install --no-deps --target /tmp/peers/old wandb==0.19.11
    /tmp/peers/bin/python tests/golden/loggers/read_loggers.py RUN /tmp/peers/old
"""
import csv
import glob
import importlib.util
import json
import math
import pathlib
import sys

run, old = pathlib.Path(sys.argv[1]), sys.argv[2]


def same(a, b, relative=0.0):
    return a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= relative * abs(b)


# Step -> loss of the newest attempt, and of all of them.
newest, losses, attempts = {}, {}, 0
for line in open(run / "metrics.jsonl"):
    record = json.loads(line)
    attempts = max(attempts, record["attempt"])
    if "loss" in record:
        newest[record["step"]] = record["loss"]
        losses.setdefault(record["step"], []).append(record["loss"])
again = sum(newest[step] != losses[step][0] for step in newest)
print(f"metrics.jsonl: {len(newest)} steps, {attempts} attempts, {again} steps with another loss when trained again")
assert newest


def check(name, points, expected, relative=0.0):
    steps = [step for step, _ in points]
    assert steps == sorted(set(steps)), f"{name}: {len(steps)} points of {len(set(steps))} steps"
    assert steps == sorted(expected), f"{name}: other steps: {sorted(set(steps) ^ set(expected))}"
    for step, loss in points:
        assert same(loss, expected[step], relative), f"{name}: step {step}: {loss} for {expected[step]}"
    print(f"{name}: {len(points)} points, as expected")


def tensorboard_points():
    from tensorboard.backend.event_processing import event_accumulator, plugin_event_accumulator
    folder = str(run)
    plain = event_accumulator.EventAccumulator(folder, size_guidance={"scalars": 0})
    plain.Reload()
    yield "TensorBoard (scalars)", [(e.step, e.value) for e in plain.Scalars("train/loss")]
    plugins = plugin_event_accumulator.EventAccumulator(folder, size_guidance={"tensors": 0})
    plugins.Reload()
    yield "TensorBoard (plugins)", [(e.step, float(e.tensor_proto.float_val[0])) for e in plugins.Tensors("train/loss")]
    assert plugins.SummaryMetadata("recipe").plugin_data.plugin_name == "text"
    text = plugins.Tensors("recipe")[-1].tensor_proto.string_val[0].decode()
    assert (run / "recipe.lua").read_text() in text
    print("TensorBoard (text): the recipe")
    check_histograms(plugins)


def check_histograms(plugins):
    """Those of t.cb.histograms, where the run has some: events.jsonl has them too."""
    from tensorboard.util import tensor_util
    wanted = {}  # (name, step) -> facts of the newest attempt
    for line in open(run / "events.jsonl"):
        record = json.loads(line)
        if record["kind"] == "histogram":
            wanted[record["facts"]["name"], record["facts"]["step"]] = record["facts"]
    read = 0
    for name in {name for name, _ in wanted}:
        assert plugins.SummaryMetadata(name).plugin_data.plugin_name == "histograms"
        for event in plugins.Tensors(name):
            facts = wanted[name, event.step]
            rows = tensor_util.make_ndarray(event.tensor_proto)
            assert rows.shape == (len(facts["counts"]), 3), rows.shape
            assert list(rows[:, 2]) == facts["counts"]
            assert same(rows[0, 0], facts["low"]) and same(rows[-1, 1], facts["high"])
            assert (rows[1:, 0] == rows[:-1, 1]).all(), "gaps between bins"
            read += 1
    assert read == len(wanted), f"{read} histograms of {len(wanted)}"
    print(f"TensorBoard (histograms): {read}, as expected")


def wandb_points():
    import wandb
    from wandb.proto import wandb_internal_pb2
    wandb._assert_is_internal_process = True
    spec = importlib.util.spec_from_file_location("datastore", f"{old}/wandb/sdk/internal/datastore.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    points, ids = [], set()
    for path in sorted(glob.glob(str(run / "wandb/offline-run-*/run-*.wandb"))):
        store = module.DataStore()
        store.open_for_scan(path)
        kinds = []
        while (data := store.scan_data()) is not None:
            record = wandb_internal_pb2.Record()
            record.ParseFromString(data)
            kinds.append(record.WhichOneof("record_type"))
            if kinds[-1] == "run":
                ids.add(record.run.run_id)
                config = {item.key: json.loads(item.value_json) for item in record.run.config.update}
                assert config == json.load(open(run / "recipe.json")), "the recipe as configuration"
            if kinds[-1] == "history":
                row = {item.nested_key[0]: json.loads(item.value_json) for item in record.history.item}
                assert row["_step"] == record.history.step.num
                if "loss" in row:
                    points.append((row["_step"], row["loss"]))
        assert kinds[:2] == ["header", "run"], kinds
    assert len(ids) == 1, ids
    return points


for name, points in tensorboard_points():
    check(name, points, newest, relative=1e-6)
with open(run / "metrics.csv", newline="") as file:
    rows = [row for row in csv.DictReader(file) if row["loss"]]
check("CSV", [(int(row["step"]), float(row["loss"])) for row in rows], newest)
# The first attempt's loss, but the newest one's for the last step before a kill, which was not written yet.
points = wandb_points()
written = {step: loss if loss in losses[step] else losses[step][0] for step, loss in points}
check("W&B", points, {step: written.get(step, losses[step][0]) for step in losses})
late = [step for step, loss in written.items() if loss != losses[step][0]]
assert len(late) < attempts, late
print(f"W&B: written by a later attempt: {late}")

from prometheus_client.parser import text_string_to_metric_families

families = {f.name: f for f in text_string_to_metric_families((run / "metrics.prom").read_text())}
last = max(newest)
assert families["tycho_step"].samples[0].value == last
assert same(families["tycho_loss"].samples[0].value, newest[last])
print(f"Prometheus: {len(families)} families, loss of step {last}")
