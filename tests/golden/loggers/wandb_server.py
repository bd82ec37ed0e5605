#!/usr/bin/env python3
"""A small server with the calls of W&B's that `wandb sync` makes: GraphQL for runs and files, and the file stream of numbers. What
arrives is kept as W&B keeps it, rows of the history by their place, and written to a file after every call.

    wandb_server.py PORT STATE.json
"""
import gzip
import http.server
import json
import sys
import threading

PORT, STATE = int(sys.argv[1]), sys.argv[2]
runs, unknown, lock = {}, [], threading.Lock()


def keep():
    with open(STATE, "w") as file:
        json.dump({"runs": runs, "unknown": unknown}, file)


def bucket(run):
    return {"id": "id-" + run["name"], "name": run["name"], "displayName": run["displayName"], "description": "", "sweepName": None,
            "config": json.dumps(run["config"]), "historyLineCount": len(run["history"]),
            "historyTail": json.dumps([json.dumps(row) for row in run["history"][-1:]]),
            "eventsLineCount": 0, "eventsTail": "[]", "logLineCount": 0, "summaryMetrics": json.dumps(run["summary"]), "tags": run["tags"],
            "wandbConfig": json.dumps({k: v for k, v in run["config"].get("_wandb", {}).get("value", {}).items() if k == "t"}),
            "project": {"id": "p", "name": run["project"], "entity": {"id": "e", "name": "team"}}}


def upsert(values):
    name = values["name"] or values["id"].removeprefix("id-")
    found = name in runs
    run = runs.setdefault(name, {"name": name, "displayName": "", "project": "", "group": "", "tags": [], "config": {}, "history": [],
                                 "summary": {}, "exit": [], "files": {}})
    for key, to in {"displayName": "displayName", "project": "project", "groupName": "group", "tags": "tags"}.items():
        if values.get(key):
            run[to] = values[key]
    if values.get("config"):
        run["config"].update(json.loads(values["config"]))
    return {"upsertBucket": {"bucket": bucket(run), "inserted": not found}}


def answer(query, values):
    """What the GraphQL of W&B answers; None for a call that is not known."""
    if "upsertBucket" in query:
        return upsert(values)
    if "__type(" in query:
        return {"ServerSettingsType": {"fields": []}, "QueryType": {"fields": []}, "MutationType": {"fields": []}, "TypeInfo": None}
    if "viewer" in query:
        return {"viewer": {"id": "1", "entity": "team", "username": "me", "flags": "{}", "teams": {"edges": []}}, "serverInfo": None}
    if "serverInfo" in query:
        return {"serverInfo": None}
    if "createRunFiles" in query:
        name = values.get("run") or values.get("runName")
        urls = [{"name": f, "uploadUrl": f"http://127.0.0.1:{PORT}/upload/{name}/{f}"} for f in values["files"]]
        return {"createRunFiles": {"runID": "id-" + name, "uploadHeaders": [], "files": urls}}
    if "uploadHeaders" in query or "uploadUrl" in query:
        name, files = values["run"], values["files"]
        edges = [{"node": {"name": f, "url": f"http://127.0.0.1:{PORT}/upload/{name}/{f}", "updatedAt": None}} for f in files]
        return {"model": {"bucket": {"id": "id-" + name, "files": {"uploadHeaders": [], "edges": edges}}}}
    if "bucket(" in query:
        run = runs.get(values.get("name") or values.get("run"))
        return {"model": {"id": "p", "name": values["project"], "entity": {"id": "e", "name": "team"}, "bucket": bucket(run) if run else None}}
    return None


def stream(run, sent):
    for name, part in (sent.get("files") or {}).items():
        if name == "wandb-history.jsonl":
            # A line replaces the one at its place; what lies between is missing, and stays so.
            rows = run["history"]
            for at, line in enumerate(part["content"], part["offset"]):
                rows.extend([None] * (at + 1 - len(rows)))
                rows[at] = json.loads(line)
        elif name == "wandb-summary.json":
            run["summary"].update(json.loads(part["content"][-1]))
    if sent.get("complete"):
        run["exit"].append(sent.get("exitcode"))


class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def body(self):
        data = b""
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return gzip.decompress(data) if self.headers.get("Content-Encoding") == "gzip" else data

    def reply(self, value):
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.reply({})

    def do_PUT(self):
        content = self.body().decode(errors="replace")
        with lock:
            _, _, name, file = self.path.split("?")[0].split("/", 3)
            runs[name]["files"][file] = content
            keep()
        self.reply({})

    def do_POST(self):
        sent = json.loads(self.body() or "{}")
        with lock:
            if self.path == "/graphql":
                value = answer(sent["query"], sent.get("variables") or {})
                if value is None:
                    unknown.append(sent["query"])
                result = {"data": value or {}}
            elif self.path.endswith("/file_stream"):
                stream(runs[self.path.split("/")[4]], sent)
                result = {"limits": {}}
            else:
                if not self.path.startswith("/sdk/"):  # wandb's own telemetry
                    unknown.append(self.path)
                result = {}
            keep()
        self.reply(result)


http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Server).serve_forever()
