#!/usr/bin/env python3
"""What t.log.wandb online adds to the steps and to the end of a run when its server is well, hangs, fails, limits, resets or refuses the key.

    bench/wandb_steps.py TYCHO [SECONDS [SLICE_MS]]

A run with it and one without it, of one thread each, go on by turns: one is stopped while the other trains for a slice of time, in random
order and on the same core, so that what else the machine does hits both alike; threads of the logger may use the other cores. Each pair of
slices gives the ratio of its two median steps; steps that a stop falls into do not count. Processes differ by luck, so there are several
rounds. On a loaded machine even that is not good to 1 %, so processor time is shown, too: that of the thread that trains for each step, as a
ratio; and that of all other threads as a share of it, which is what they would add to a step if they had no core of their own. Shown are
medians over rounds, and their range. In the first round the run with the logger is told to end (SIGINT), and the time until it is gone is
shown. "none" is two runs without the logger: what noise alone does. Exits with 1 when the median step or the processor time of its thread is
above 1.01 in every round, or when an end takes more than 10 s.
"""
import http.server
import json
import os
import pathlib
import random
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

from result_file import result_file

TYCHO, SECONDS, SLICE_S = pathlib.Path(sys.argv[1]).resolve(), float((sys.argv + ["", ""])[2] or 60), int((sys.argv + ["", "", ""])[3] or 25) / 1000
ROOT = pathlib.Path(__file__).resolve().parent.parent
FATES = ["none", "well", "hangs", "500", "429", "resets", "401"]
NUM_ROUNDS, NUM_WARM_STEPS, MOST_RATIO, MOST_END_S = 4, 50, 1.01, 10

RECIPE = """
local t = require "tycho"
local r = t.recipe "steps"
r.model = t.model.llama { layers = 2, width = 64, heads = 4, ffn_width = 128, vocab_size = 512 }
r.tokenizer, r.train_data = "data/tokenizer.json", t.data.mds { local_dir = "data" }
r.seq_len, r.global_batch, r.threads, r.max_duration = 64, "2sp", 1, "10000000ba"
r.optimizer = t.optim.adamw { lr = 1e-3 }
r.ckpt.every = "100000ba"
return r
"""


def answer(query, values, url):
    """What W&B answers, as far as Tycho reads it."""
    if query == "UpsertBucket":
        return {"upsertBucket": {"bucket": {"id": "x", "project": {"name": values["project"], "entity": {"name": "team"}}}}}
    if query == "CreateRunFiles":
        return {"createRunFiles": {"uploadHeaders": [], "files": [{"name": name, "uploadUrl": url} for name in values["files"]]}}
    return {"createArtifact": {"artifact": {"id": "x", "state": "COMMITTED"}}, "model": None}


class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        fate = self.server.fate
        if fate == "hangs":
            return time.sleep(3600)
        if fate == "resets":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            return self.connection.close()
        sent, body = self.rfile.read(int(self.headers.get("Content-Length") or 0)), b"{}"
        if fate == "well" and self.path == "/graphql":
            call = json.loads(sent)
            url = "http://127.0.0.1:%d/file" % self.server.server_address[1]
            body = json.dumps({"data": answer(call["operationName"], call["variables"], url)}).encode()
        if fate == "well" and self.path.endswith("/file_stream"):
            self.server.num_rows += len(json.loads(sent).get("files", {}).get("wandb-history.jsonl", {"content": []})["content"])
        self.send_response(200 if fate == "well" else int(fate))
        if fate == "429":
            self.send_header("Retry-After", "1")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_PUT = do_POST


class Run:
    def __init__(self, name, port):
        sinks = "[log.jsonl{},log.wandb{project=p,mode=online}]" if port else "[log.jsonl{}]"
        environment = dict(os.environ, WANDB_BASE_URL=f"http://127.0.0.1:{port}", WANDB_API_KEY="0" * 40, no_proxy="127.0.0.1")
        self.metrics = pathlib.Path(f"runs/{name}/metrics.jsonl")
        self.process = subprocess.Popen([TYCHO, "run", "steps.lua", f"run_name={name}", f"log.sinks={sinks}"], env=environment,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def steps(self):
        """Begins and ends of its steps, in seconds of the clock."""
        lines = self.metrics.read_text().splitlines() if self.metrics.exists() else []
        lines = [json.loads(line) for line in lines[NUM_WARM_STEPS:-1]]
        return [(line["time"] - line["step_s"], line["time"]) for line in lines]

    def train(self):
        """Trains for a slice of time, and says when that was."""
        began = time.time()
        self.process.send_signal(signal.SIGCONT)
        time.sleep(SLICE_S)
        self.process.send_signal(signal.SIGSTOP)
        return began, time.time()

    def cpu_s(self):
        """Processor time of the thread that trains, and of all others."""
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task")
        by_thread = {int(task.name): int((task / "schedstat").read_text().split()[0]) / 1e9 for task in tasks.iterdir()}
        trains = by_thread.pop(self.process.pid)
        return trains, sum(by_thread.values())

    def end(self):
        """How long it takes."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGINT)
        self.process.wait()
        return time.monotonic() - began


def medians(steps, slices):
    """The median step of each slice, None where it has no whole step."""
    found, at = [], 0
    for began, ended in slices:
        inside = []
        while at < len(steps) and steps[at][1] <= ended:
            if steps[at][0] >= began:
                inside.append(steps[at][1] - steps[at][0])
            at += 1
        found.append(statistics.median(inside) if inside else None)
    return found


def measure(server, fate, is_first, core):
    """One round: ratios of medians and of processor time, shares of the other threads, and how long the end took."""
    server.fate, server.num_rows, name = fate, 0, f"{fate}-{time.time()}"
    runs = [Run(f"{name}-on", 0 if fate == "none" else server.server_address[1]), Run(f"{name}-off", 0)]
    for run in runs:
        while not run.steps():
            time.sleep(0.1)
        os.sched_setaffinity(run.process.pid, {core})  # the thread that trains alone
        run.process.send_signal(signal.SIGSTOP)
    time.sleep(SLICE_S)
    slices, before, num_before = [[], []], [run.cpu_s() for run in runs], [len(run.steps()) for run in runs]
    for _ in range(int(SECONDS / NUM_ROUNDS / 2 / SLICE_S)):
        for which in random.sample([0, 1], 2):
            slices[which].append(runs[which].train())
    time.sleep(SLICE_S)
    after, steps = [run.cpu_s() for run in runs], [run.steps() for run in runs]
    (on, off), end_s = runs, 0
    if is_first:
        on.process.send_signal(signal.SIGCONT)
        end_s = on.end()
        if fate == "well" and server.num_rows != len(on.steps()) + NUM_WARM_STEPS + 1:
            sys.exit(f"the server has {server.num_rows} rows, not {len(on.steps()) + NUM_WARM_STEPS + 1}")
    for run in runs:
        run.process.kill()
        run.process.wait()
    pairs = [pair for pair in zip(*map(medians, steps, slices)) if None not in pair]
    trains, others = ([then[i] - now[i] for now, then in zip(before, after)] for i in range(2))
    per_step = [taken / (len(own) - num) for taken, own, num in zip(trains, steps, num_before)]
    return {"ratio": statistics.median(one / other for one, other in pairs), "trains": per_step[0] / per_step[1],
            "share": others[0] / trains[0], "share_without": others[1] / trains[1], "cpu_ms": 1000 * per_step[0], "pairs": len(pairs), "end_s": end_s}


results, missed = {}, False
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for command in (["tokenizer", "train", ROOT / "docs", "--ext", ".md", "--vocab-size", "512", "--out", "data/tokenizer.json"],
                    ["data", "convert", ROOT / "docs", "--ext", ".md", "--tokenizer", "data/tokenizer.json", "--concat-tokens", "64",
                     "--eos-text", "<|endoftext|>", "--out", "data"]):
        subprocess.run([TYCHO, *command], check=True, stdout=subprocess.DEVNULL)
    pathlib.Path("steps.lua").write_text(RECIPE)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"{'server':8} {'median step':>24} {'its processor time':>24} {'other threads':>18} {'without':>8} {'ms':>6} {'pairs':>6} {'end':>7}", flush=True)
    for fate in FATES:
        rounds = [measure(server, fate, i == 0, max(os.sched_getaffinity(0))) for i in range(NUM_ROUNDS)]
        results[fate], shown = rounds, ""
        for name in ("ratio", "trains"):
            values = [one[name] for one in rounds]
            shown += f" {statistics.median(values):.4f} ({min(values):.3f}-{max(values):.3f})".rjust(25)
        middle = {name: statistics.median(one[name] for one in rounds) for name in ("share", "share_without", "cpu_ms")}
        most, end_s = max(one["share"] for one in rounds), rounds[0]["end_s"]
        missed = missed or end_s > MOST_END_S or any(min(one[name] for one in rounds) > MOST_RATIO for name in ("ratio", "trains"))
        print(f"{fate:8}{shown} {100 * middle['share']:6.2f} % (to {100 * most:.2f}) {100 * middle['share_without']:6.2f} % {middle['cpu_ms']:6.2f} "
              f"{sum(one['pairs'] for one in rounds):6} {end_s:5.1f} s", flush=True)
result_file("wandb_steps").write_text(json.dumps(results))
sys.exit(missed)
