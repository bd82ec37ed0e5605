#!/usr/bin/env python3
"""A small server with the calls of W&B's that Tycho, `wandb sync`, a run of the official client and `wandb.Api` make: GraphQL for runs,
alerts and artifacts, and the file stream. What arrives is kept as W&B keeps it, lines by their place, and written to a file after every
call. A call that is not known is answered with 501 and kept, so that a test can fail.

    wandb_server.py PORT STATE.json [TRANSCRIPT.jsonl]
"""
import gzip
import http.server
import json
import re
import sys
import threading

PORT, STATE = int(sys.argv[1]), sys.argv[2]
TRANSCRIPT = open(sys.argv[3], "a", buffering=1) if len(sys.argv) > 3 else None
BASE = f"http://127.0.0.1:{PORT}"
LINES = {"wandb-history.jsonl": "history", "wandb-events.jsonl": "events", "output.log": "console"}
FEATURES = ["EXPAND_DEFINED_METRIC_GLOBS", "CLIENT_IDS", "ARTIFACT_TAGS", "LARGE_FILENAMES", "MARK_RUN_FILES_UPLOADED"]
runs, artifacts, unknown, lock = {}, {}, [], threading.Lock()


def keep():
    with open(STATE, "w") as file:
        json.dump({"runs": runs, "artifacts": artifacts, "unknown": unknown}, file)


def project(name):
    return {"id": "p", "name": name, "entity": {"id": "e", "name": "team"}}


def bucket(run):
    tail = {name: json.dumps([json.dumps(row) for row in run[name][-1:]]) for name in ("history", "events")}
    return {"id": "id-" + run["name"], "name": run["name"], "displayName": run["displayName"], "description": "", "sweepName": None,
            "config": json.dumps(run["config"]), "historyLineCount": len(run["history"]), "historyTail": tail["history"],
            "eventsLineCount": len(run["events"]), "eventsTail": tail["events"], "logLineCount": len(run["console"]),
            "summaryMetrics": json.dumps(run["summary"]), "tags": run["tags"],
            "wandbConfig": json.dumps({k: v for k, v in run["config"].get("_wandb", {}).get("value", {}).items() if k == "t"}),
            "project": project(run["project"])}


def as_read(run):
    """A run as wandb.Api asks for it."""
    keys, last = {}, -1
    for row in filter(None, run["history"]):
        last = max(last, row["_step"])
        for name, value in row.items():
            kind = "number" if isinstance(value, (int, float)) else "string" if isinstance(value, str) else "map"
            keys.setdefault(name, {"typeCounts": [{"type": kind, "count": 0}], "monotonic": name.startswith("_")})["typeCounts"][0]["count"] += 1
    return {"id": "id-" + run["name"], "projectId": "1", "tags": run["tags"], "name": run["name"], "displayName": run["displayName"],
            "sweepName": None, "state": "finished" if run["exit"] else "running", "config": json.dumps(run["config"]), "group": run["group"],
            "jobType": "", "commit": None, "readOnly": False, "createdAt": "2026-11-27T00:00:00Z", "heartbeatAt": "2026-11-27T00:00:00Z",
            "description": "", "notes": "", "systemMetrics": json.dumps(run["events"][-1] if run["events"] else {}),
            "summaryMetrics": json.dumps(run["summary"]), "historyLineCount": len(run["history"]),
            "user": {"name": "me", "username": "me"}, "historyKeys": {"step": 0, "lastStep": last, "sets": [], "keys": keys}}


def upsert(values):
    name = values["name"] or values["id"].removeprefix("id-")
    found = name in runs
    run = runs.setdefault(name, {"name": name, "displayName": "", "project": "", "group": "", "tags": [], "config": {}, "history": [],
                                 "events": [], "console": [], "summary": {}, "exit": [], "files": {}, "alerts": []})
    for key, to in {"displayName": "displayName", "project": "project", "groupName": "group", "tags": "tags"}.items():
        if values.get(key):
            run[to] = values[key]
    if values.get("config"):
        run["config"].update(json.loads(values["config"]))
    return {"upsertBucket": {"bucket": bucket(run), "inserted": not found}}


def create_run_files(values):
    name = values.get("run") or values.get("runName")
    urls = [{"name": f, "uploadUrl": f"{BASE}/upload/{name}/{f}"} for f in values["files"]]
    return {"createRunFiles": {"runID": "id-" + name, "uploadHeaders": [], "files": urls}}


def create_artifact(values):
    given = values["input"]
    name = given["artifactCollectionName"]
    key = f"{name}-{given['digest']}"
    latest = [a for a in artifacts.values() if a["name"] == name and a["state"] == "COMMITTED"]
    one = artifacts.setdefault(key, {"id": key, "name": name, "type": given["artifactTypeName"], "digest": given["digest"], "state": "PENDING",
                                     "aliases": [a["alias"] for a in given["aliases"]], "metadata": given["metadata"], "files": {}})
    return {"createArtifact": {"artifact": {"id": key, "state": one["state"],
                                            "artifactSequence": {"latestArtifact": {"id": latest[-1]["id"]} if latest else None}}}}


def create_manifest(values):
    file = {"id": "file:" + values["artifactID"]}
    if values["includeUpload"]:
        file |= {"uploadUrl": f"{BASE}/artifact/{values['artifactID']}/{values['name']}", "uploadHeaders": []}
    return {"createArtifactManifest": {"artifactManifest": {"id": "manifest:" + values["artifactID"], "file": file}}}


def create_artifact_files(values):
    nodes = [{"node": {"storagePath": f["name"], "uploadUrl": f"{BASE}/artifact/{f['artifactID']}/{f['name']}", "uploadHeaders": [],
                       "uploadMultipartUrls": None, "artifact": {"id": f["artifactID"]}}} for f in values["input"]["artifactFiles"]]
    return {"createArtifactFiles": {"files": {"edges": nodes}}}


def commit_artifact(values):
    one = artifacts[values["artifactID"]]
    one["state"] = "COMMITTED"
    return {"commitArtifact": {"artifact": {"id": one["id"], "digest": one["digest"]}}}


def alert(values):
    runs[values["runName"]]["alerts"].append([values["title"], values["text"], values["severity"]])
    return {"notifyScriptableRunAlert": {"success": True}}


def resume_status(values):
    run = runs.get(values.get("name") or values.get("run"))
    return {"model": {**project(values["project"]), "bucket": bucket(run) if run else None}}


def run_query(values):
    run = runs.get(values["name"])
    return {"project": {"id": "p", "internalId": "1", "run": as_read(run) if run else None}}


def history_page(values):
    run = runs[values["run"]]
    rows = [row for row in run["history"] if row and values["minStep"] <= row["_step"] < values["maxStep"]]
    return {"project": {"run": {"history": [json.dumps(row) for row in rows[:values["pageSize"]]]}}}


def run_files(values):
    name, files = values["run"], values["files"]
    edges = [{"node": {"name": f, "url": f"{BASE}/upload/{name}/{f}", "updatedAt": None}} for f in files]
    return {"model": {"bucket": {"id": "id-" + name, "files": {"uploadHeaders": [], "edges": edges}}}}


VIEWER = {"viewer": {"id": "1", "entity": "team", "username": "me", "email": "", "flags": "{}", "teams": {"edges": []}}, "serverInfo": None}
CALLS = {
    "Viewer": lambda _: VIEWER,
    "ServerFeaturesQuery": lambda _: {"serverInfo": {"features": [{"name": name, "isEnabled": True} for name in FEATURES]}},
    "OrganizationCoreWeaveOrganizationID": lambda _: {"entity": {"organization": None}},
    "UpsertBucket": upsert, "RunResumeStatus": resume_status, "CreateRunFiles": create_run_files, "NotifyScriptableRunAlert": alert,
    "ArtifactType": lambda _: {"project": {"artifact": None}}, "CreateArtifact": create_artifact, "CreateArtifactManifest": create_manifest,
    "CreateArtifactFiles": create_artifact_files, "CommitArtifact": commit_artifact, "Run": run_query, "RunHistoryKeys": run_query,
    "RunParquetHistory": lambda _: {"project": {"run": {"parquetHistory": {"parquetUrls": [], "liveData": []}}}}, "HistoryPage": history_page,
}


def answer(query, values):
    """What the GraphQL of W&B answers; None for a call that is not known."""
    name = re.search(r"\b(?:query|mutation)\s+(\w+)", query)
    if name and name[1] in CALLS:
        return CALLS[name[1]](values)
    if "__type(" in query:  # older clients
        return {"ServerSettingsType": {"fields": []}, "QueryType": {"fields": []}, "MutationType": {"fields": []}, "TypeInfo": None}
    if "upsertBucket" in query:
        return upsert(values)
    if "viewer" in query:
        return VIEWER
    if "serverInfo" in query:
        return {"serverInfo": None}
    if "uploadHeaders" in query or "uploadUrl" in query:
        return run_files(values)
    return None


def stream(run, sent):
    for name, part in (sent.get("files") or {}).items():
        if name in LINES:
            # A line replaces the one at its place; what lies between is missing, and stays so.
            lines = run[LINES[name]]
            for at, line in enumerate(part["content"], part["offset"]):
                lines.extend([None] * (at + 1 - len(lines)))
                lines[at] = line if name == "output.log" else json.loads(line)
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

    def reply(self, value, status=200):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def refuse(self, what):
        unknown.append(what)
        return {"errors": [{"message": "unknown call"}]}, 501

    def do_GET(self):
        if not self.path.startswith("/sdk/"):
            with lock:
                self.refuse(self.path)
                keep()
        self.reply({}, 501)

    def do_PUT(self):
        content = self.body().decode(errors="replace")
        with lock:
            kind, name, file = self.path.split("?")[0][1:].split("/", 2)
            (artifacts if kind == "artifact" else runs)[name]["files"][file] = content
            keep()
        self.reply({})

    def do_POST(self):
        body = self.body()
        if self.path.startswith("/sdk/"):  # wandb's own telemetry
            return self.reply({})
        sent, status = json.loads(body or "{}"), 200
        with lock:
            if self.path == "/graphql":
                value = answer(sent["query"], sent.get("variables") or {})
                result, status = ({"data": value}, 200) if value is not None else self.refuse(sent["query"])
            elif self.path.endswith("/file_stream"):
                stream(runs[self.path.split("/")[4]], sent)
                result = {"exitcode": None, "limits": {}}
            else:
                result, status = self.refuse(self.path)
            if TRANSCRIPT:
                agent = (self.headers.get("User-Agent") or "").split("/")[0]
                TRANSCRIPT.write(json.dumps({"agent": agent, "path": self.path, "request": sent, "answer": result}) + "\n")
            keep()
        self.reply(result, status)


http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Server).serve_forever()
