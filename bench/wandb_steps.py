#!/usr/bin/env python3
"""What t.log.wandb online adds to the steps and to the end of a run when its server is well, hangs, fails, limits, resets or refuses the key.

    bench/wandb_steps.py TYCHO [SECONDS [SLICE_MS]]    # 60 s of training for each server, if not told

A run with it and one without it, of one thread each, go on by turns: one is stopped while the other trains for a slice of time, in random
order and on the same core, so that what else the machine does hits both alike; threads of the logger may use the other cores. Each pair of
slices gives the ratio of its two median steps; steps that a stop falls into do not count. On a loaded machine that is not good to 1 %, so
processor time is shown, too: that of the thread that trains for each step, as a ratio; and that of all other threads as a share of it, which
is what they would add to a step if they had no core of their own. Processes differ by luck, so there are many short rounds, each with two new
processes: shown are medians over rounds, and where 95 of 100 medians lie if rounds are drawn again from those that there were. In the first
round the run with the logger is told to end (SIGTERM), and the time until it is gone is shown. "none" is two runs without the logger: what
noise alone does. "in logger" is the share of that thread's processor time in the logger, by perf's samples in one run, if there is perf.
"within 1 %" is about the ratio of processor time: yes if that range ends below 1.01, no if it begins above, else open. Exits with 1
for a "no", or when an end takes more than 10 s.
"""
import http.server
import json
import os
import pathlib
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

from paired_runs import Run, by_turns, drawn, end_all
from result_file import result_file

TYCHO, SECONDS, SLICE_S = pathlib.Path(sys.argv[1]).resolve(), float((sys.argv + ["", ""])[2] or 60), int((sys.argv + ["", "", ""])[3] or 25) / 1000
ROOT = pathlib.Path(__file__).resolve().parent.parent
FATES = ["none", "well", "hangs", "500", "429", "resets", "401"]
NUM_ROUNDS, NUM_WARM_STEPS, MOST_RATIO, MOST_END_S, PERF_S = 16, 50, 1.01, 10, 10

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


def in_logger(pid):
    """Share of the samples of the thread that trains that lie in the logger, which hands the step to its own thread; None without perf."""
    if not shutil.which("perf"):
        return None
    subprocess.run(["perf", "record", "-e", "cpu-clock", "-F", "2000", "--call-graph", "dwarf,8192", "-t", str(pid), "-o", "perf.data", "--", "sleep",
                    str(PERF_S)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    shown = subprocess.run(["perf", "report", "-i", "perf.data", "--children", "--no-inline", "-g", "none", "--stdio"], check=True, capture_output=True, text=True).stdout
    return max([float(line.split("%")[0]) / 100 for line in shown.splitlines() if "BackgroundSink::step" in line], default=0)


def measure(server, fate, is_first):
    """One round, and how long the end took."""
    server.fate, server.num_rows, name = fate, 0, f"{fate}-{time.time()}"
    sink = {"on": [] if fate == "none" else ["log.sinks=[log.jsonl{},log.wandb{project=p,mode=online}]"], "off": []}
    environment = {"WANDB_BASE_URL": "http://127.0.0.1:%d" % server.server_address[1], "WANDB_API_KEY": "0" * 40, "no_proxy": "127.0.0.1"}
    runs = [Run(TYCHO, "steps.lua", f"{name}-{which}", sink[which], environment, NUM_WARM_STEPS) for which in ("on", "off")]
    found, on = by_turns(runs, SECONDS / NUM_ROUNDS, SLICE_S), runs[0]
    found["end_s"], found["in_logger"] = 0, None
    if is_first:
        on.process.send_signal(signal.SIGCONT)
        found["in_logger"] = in_logger(on.process.pid)
        found["end_s"] = on.end()
        if fate == "well" and server.num_rows != len(on.steps()) + NUM_WARM_STEPS + 1:
            sys.exit(f"the server has {server.num_rows} rows, not {len(on.steps()) + NUM_WARM_STEPS + 1}")
    end_all(runs)
    return found


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
    print(f"{'server':8} {'median step':>22} {'its processor time':>22} {'within 1 %':>10} {'in logger':>9} {'other threads':>16} {'without':>8} {'ms':>6} {'end':>7}", flush=True)
    for fate in FATES:
        rounds = results[fate] = [measure(server, fate, i == 0) for i in range(NUM_ROUNDS)]
        step, trains = drawn(rounds, "ratio"), drawn(rounds, "trains")
        shown = "".join(f"{f'{middle:.4f} ({low:.3f}-{high:.3f})':>23}" for middle, low, high in (step, trains))
        within = "no" if trains[1] > MOST_RATIO else "yes" if trains[2] < MOST_RATIO else "open"
        middle = {name: statistics.median(one[name] for one in rounds) for name in ("share", "share_without", "cpu_ms")}
        logger = "-" if rounds[0]["in_logger"] is None else f"{100 * rounds[0]['in_logger']:.2f} %"
        most, end_s = max(one["share"] for one in rounds), rounds[0]["end_s"]
        missed = missed or end_s > MOST_END_S or within == "no"
        print(f"{fate:8}{shown} {within:>10} {logger:>9} {100 * middle['share']:5.2f} % (to {100 * most:.1f}) {100 * middle['share_without']:6.2f} % "
              f"{middle['cpu_ms']:6.2f} {end_s:5.1f} s", flush=True)
result_file("wandb_steps").write_text(json.dumps(results))
sys.exit(missed)
