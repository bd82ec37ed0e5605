#!/usr/bin/env python3
"""The official client beside Tycho on one server (wandb_server.py): it sends a run of its own, killed and resumed, with a histogram, an
alert and a reference; then wandb.Api reads that run and Tycho's. Compares what it reads of Tycho's run with metrics.jsonl.

    judge_wandb.py send [kill]                         a run of the official client, or its first half
    judge_wandb.py read RUN                            reads both runs, and compares Tycho's with the run folder RUN
    judge_wandb.py golden RUN TRANSCRIPT.jsonl GOLDEN  writes wandb_calls.json, which tests in C++ compare with
"""
import json
import os
import pathlib
import re
import signal
import sys

PROJECT, OWN, SAVED = "words", "official", 19


def send(is_killed):
    import wandb
    run = wandb.init(project=PROJECT, entity="team", id=OWN, name="own", group="g", tags=["a"], config={"seed": 1}, resume="allow",
                     settings=wandb.Settings(silent=True))
    for step in range(0 if is_killed else SAVED, 60):  # the client sends a row when the next one begins
        run.log({"loss": 1 / (step + 1)}, step=step)
        if is_killed and step == SAVED:
            run.alert("first half", "text")
            import time
            time.sleep(20)  # until the file stream has sent it
            os.kill(os.getpid(), signal.SIGKILL)
    run.log({"shape": wandb.Histogram(np_histogram=([1, 2, 3], [0, 0.5, 1, 1.5]))})
    run.alert("a title", "a text", level="WARN")
    artifact = wandb.Artifact("checkpoint-official", "model", metadata={"step": 8})
    artifact.add_reference("az://account/container/step-8", name="step-8", checksum=False)
    run.log_artifact(artifact, aliases=["latest", "step-8"])
    run.finish()


def own_id(folder):
    return (pathlib.Path(folder) / "wandb_run_id.txt").read_text().strip()


def read_rows(run_id):
    import wandb
    run = wandb.Api().run(f"team/{PROJECT}/{run_id}")
    return run, list(run.scan_history())


def read(folder):
    _, rows = read_rows(OWN)
    losses = [row["_step"] for row in rows if "loss" in row]
    assert losses == list(range(60)), f"the official client's own run: {losses}"
    run, rows = read_rows(own_id(folder))
    wanted = {}
    for line in open(pathlib.Path(folder) / "metrics.jsonl"):
        record = json.loads(line)
        if "loss" in record:
            wanted.setdefault(record["step"], []).append(record["loss"])
    steps = [row["_step"] for row in rows if "loss" in row]
    assert steps == sorted(wanted), f"{len(steps)} steps for {len(wanted)}"
    for row in rows:
        assert "loss" not in row or row["loss"] in wanted[row["_step"]], row
    histograms = [name for row in rows for name, value in row.items() if isinstance(value, dict) and value.get("_type") == "histogram"]
    assert histograms, "no histogram"
    recipe = json.loads((pathlib.Path(folder) / "recipe.json").read_text())
    assert run.config["seed"] == recipe["seed"] and run.name == recipe["run_name"] and run.state == "finished", (run.config, run.name, run.state)
    print(f"wandb.Api reads {len(steps)} steps and {len(histograms)} histograms of Tycho's run, and 60 steps of its own")
    return rows


def words_of(query):
    return sorted(set(re.findall(r"[A-Za-z_]\w*", query)))


def golden(folder, transcript, path):
    import wandb
    calls, inputs, stream = {}, {}, set()
    for line in open(transcript):
        entry = json.loads(line)
        sent = entry["request"]
        if not entry["agent"].startswith("wandb-core"):
            continue
        if "query" in sent:
            name = re.search(r"\b(?:query|mutation)\s+(\w+)", sent["query"])[1]
            calls.setdefault(name, set()).update(words_of(sent["query"]))
            for key, value in (sent.get("variables") or {}).items():
                if key == "input":
                    inputs.setdefault(name, set()).update(value)
        else:
            stream |= set(sent)
    rows = read(folder)
    kinds = {name: "map" if isinstance(value, dict) else type(value).__name__ for row in rows for name, value in row.items()
             if "/" not in name and not name.startswith("eval")}
    text = {"about": f"what wandb {wandb.__version__} sends and reads, by judge_wandb.py",
            "calls": {name: " ".join(sorted(words)) for name, words in sorted(calls.items())},
            "inputs": {name: " ".join(sorted(keys)) for name, keys in sorted(inputs.items())},
            "stream": " ".join(sorted(stream)), "row": kinds}
    pathlib.Path(path).write_text(json.dumps(text, indent=1) + "\n")


if sys.argv[1] == "send":
    send(len(sys.argv) > 2)
elif sys.argv[1] == "read":
    read(sys.argv[2])
else:
    golden(*sys.argv[2:])
