#!/usr/bin/env python3
"""Writes records.wandb and events.wandb with wandb's own messages and file writer, for wandb_file_test.cpp.

The messages are those of wandb 0.31.0. Its file writer is no longer Python, so the one of 0.19.11 is used; the format is
the same.

    python3 -m venv /tmp/wb && /tmp/wb/bin/pip install wandb==0.31.0
    /tmp/wb/bin/pip install --no-deps --target /tmp/wb/old wandb==0.19.11
    /tmp/wb/bin/python tests/golden/loggers/wandb_records.py /tmp/wb/old
"""
import hashlib
import importlib.util
import pathlib
import sys

import wandb
from wandb.proto import wandb_internal_pb2 as pb


def data_store(old):
    wandb._assert_is_internal_process = True
    spec = importlib.util.spec_from_file_location("datastore", f"{old}/wandb/sdk/internal/datastore.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.DataStore()


def row(kind, item, numbers, step, time_s, runtime_s):
    everything = dict(numbers, _timestamp=time_s, _runtime=runtime_s, _step=str(step))
    return kind(**{item: [(pb.HistoryItem if item == "item" else pb.SummaryItem)(nested_key=[key], value_json=value)
                          for key, value in everything.items()]})


def records():
    version = pb.VersionInfo(producer="tycho", min_consumer="0.70.0")
    yield pb.Record(num=1, header=pb.HeaderRecord(version_info=version))
    run = pb.RunRecord(run_id="abcd1234", entity="team", project="proj", run_group="g", display_name="mpt-125m",
                       tags=["a", "größer"], host="node1", resume=True)
    run.start_time.seconds, run.start_time.nanos = 1700000000, 250000000
    run.config.update.add(key="lr", value_json="0.001")
    run.config.update.add(key="model", value_json='{"kind":"mpt","width":64}')
    run.config.update.add(key="_wandb", value_json="{}")
    yield pb.Record(num=2, run=run)
    # Long enough for three blocks.
    long = {f"metric number {i:05d}": f"{i}.5" for i in range(2500)}
    yield pb.Record(num=3, summary=row(pb.SummaryRecord, "update", {"loss": "3.5"}, 1, "1700000001.5", "1.25"))
    history = row(pb.HistoryRecord, "item", {"loss": "3.5", "x": "NaN", "y": "-Infinity"}, 1, "1700000001.5", "1.25")
    history.step.num = 1
    yield pb.Record(num=4, history=history)
    history = row(pb.HistoryRecord, "item", long, 70000, "1700000002.0", "1.75")
    history.step.num = 70000
    yield pb.Record(num=5, history=history)
    yield pb.Record(num=6, exit=pb.RunExitRecord(exit_code=1, runtime=7))


def events():
    stats = pb.StatsRecord()
    stats.timestamp.seconds, stats.timestamp.nanos = 1700000003, 500000000
    stats.item.add(key="cpu", value_json="12.5")
    stats.item.add(key="gpu.0.gpu", value_json="99.0")
    yield pb.Record(num=1, stats=stats)
    yield pb.Record(num=2, alert=pb.AlertRecord(title="loss spike", text="größer", level="WARN"))
    artifact = pb.ArtifactRecord(run_id="abcd1234", project="proj", entity="team", type="model", name="checkpoint-abcd1234",
                                 digest=DIGEST, metadata='{"step":8,"bytes":10}', user_created=True, aliases=["latest", "step-8"],
                                 finalize=True, client_id=CLIENT_IDS[0], sequence_client_id=CLIENT_IDS[1])
    artifact.manifest.version, artifact.manifest.storage_policy = 1, "wandb-storage-policy-v1"
    artifact.manifest.storage_policy_config.add(key="storageLayout", value_json='"V2"')
    artifact.manifest.contents.add(path="step-8", digest=REFERENCE, ref=REFERENCE)
    yield pb.Record(num=3, artifact=artifact)


# The digest as wandb.Artifact has it after add_reference(REFERENCE, name="step-8", checksum=False).
REFERENCE = "az://account/container/step-000000008.1a2b3c4d"
artifact = wandb.Artifact("checkpoint-abcd1234", "model")
artifact.add_reference(REFERENCE, name="step-8", checksum=False)
DIGEST = artifact.digest
assert artifact.manifest.to_manifest_json()["contents"]["step-8"]["digest"] == REFERENCE


def client_id(text):
    return "".join(hashlib.sha256((text + more).encode()).hexdigest() for more in ("", " again"))


CLIENT_IDS = client_id("abcd1234checkpoint-abcd1234" + DIGEST), client_id("abcd1234checkpoint-abcd1234")
for name, all_records in [("records.wandb", records()), ("events.wandb", events())]:
    path = pathlib.Path(__file__).parent / name
    path.unlink(missing_ok=True)
    store = data_store(sys.argv[1])
    store.open_for_write(str(path))
    for record in all_records:
        store._write_data(record.SerializeToString(deterministic=True))
    store.close()
