"""Writes push.json: what huggingface_hub 2.4.0 asks of a hub when it creates a repository and commits a folder, and what the repository then holds.

The server is of the standard library: a hub, and a second host for large files, which refuses a token. Unknown calls are answered with 501 and
end this script. Run: pip install huggingface_hub==2.4.0; HF_HUB_DISABLE_XET=1 python push.py
"""
import base64
import fnmatch
import hashlib
import http.server
import json
import os
import pathlib
import tempfile
import threading
import urllib.parse

os.environ["HF_HUB_DISABLE_XET"] = "1"
TOKEN = "hf_atokenoftests"
REPO = "tests/pushed"
FIRST = "0123456789abcdef0123456789abcdef01234567"
PATTERNS = ["model.safetensors", "model-*-of-*.safetensors", "model.safetensors.index.json", "pytorch_model*.bin", "pytorch_model.bin.index.json"]
BASIC_BYTES, CHUNK_BYTES = 100, 64  # larger files go in parts
CARD = "---\nlibrary_name: transformers\n---\n# A model\n"


def is_large(path):
    return path.endswith((".safetensors", ".bin"))


def git_sha1(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class Repository:
    """What the stand-in keeps: bytes of files, objects of the store, branches."""

    def __init__(self, files):
        self.exists = files is not None
        self.files = {path: text.encode() for path, text in (files or {}).items()}
        self.objects = {sha256(data): data for path, data in self.files.items() if is_large(path)}
        self.branches = {"main": FIRST}
        self.parts, self.calls, self.problems = {}, [], []


state = None


class Host(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, status, body=b"", headers=()):
        if isinstance(body, (dict, list)):
            body, headers = json.dumps(body).encode(), [("Content-Type", "application/json"), *headers]
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def take(self, host):
        """Reads the body and notes the call."""
        if self.headers.get("Transfer-Encoding") == "chunked":
            data = b""
            while size := int(self.rfile.readline(), 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            data = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        url = urllib.parse.urlsplit(self.path)
        call = {"host": host, "method": self.command, "path": self.path if host == "hub" else url.path,
                "token": "Authorization" in self.headers}
        kind = self.headers.get("Content-Type", "")
        if data:
            call["type"] = kind
            call["body"] = [json.loads(line) for line in data.splitlines()] if "ndjson" in kind else json.loads(data) if "json" in kind else data.decode()
        state.calls.append(call)
        return url, call.get("body"), data

    def unknown(self):
        state.problems.append(f"unknown call: {self.command} {self.path}")
        self.send(501)


class Second(Host):
    def do_PUT(self):
        url, _, data = self.take("second")
        if "Authorization" in self.headers:
            state.problems.append("a token at the second host")
            return self.send(400)
        oid, _, part = url.path.removeprefix("/objects/").partition("/")
        if part:
            state.parts[oid, int(part)] = data
        else:
            state.objects[oid] = data
        self.send(200, headers=[("ETag", f'"{hashlib.sha256(data).hexdigest()}"')])


class Hub(Host):
    def do_GET(self):
        url, _, _ = self.take("hub")
        api = f"/api/models/{REPO}"
        if not state.exists:
            return self.send(404, {"error": "Repository not found"}, [("X-Error-Code", "RepoNotFound")])
        if url.path.startswith(api + "/revision/"):
            name = urllib.parse.unquote(url.path.split("/revision/")[1])
            if name not in state.branches:
                return self.send(404, {"error": "Revision not found"}, [("X-Error-Code", "RevisionNotFound")])
            return self.send(200, {"id": REPO, "sha": state.branches[name], "siblings": []})
        if url.path.startswith(api + "/tree/"):
            entries = []
            for path, data in sorted(state.files.items()):
                one = {"type": "file", "oid": git_sha1(data), "size": len(data), "path": path}
                if is_large(path):
                    one["oid"] = git_sha1(b"pointer to " + sha256(data).encode())
                    one["lfs"] = {"oid": sha256(data), "size": len(data), "pointerSize": 130}
                entries.append(one)
            return self.send(200, entries)
        self.unknown()

    def do_POST(self):
        url, body, data = self.take("hub")
        api = f"/api/models/{REPO}"
        if url.path.startswith("/complete/"):  # a signed address: no token
            oid = url.path.removeprefix("/complete/")
            parts = [state.parts[oid, part["partNumber"]] for part in body["parts"]]
            assert [part["etag"] for part in body["parts"]] == [f'"{hashlib.sha256(part).hexdigest()}"' for part in parts]
            state.objects[oid] = b"".join(parts)
            return self.send(200, {})
        if self.headers.get("Authorization") != "Bearer " + TOKEN:
            return self.send(401, {"error": "Invalid username or password."})
        if url.path == "/api/repos/create":
            status = 409 if state.exists else 200
            state.exists = True
            return self.send(status, {"url": f"{hub_url}/{REPO}"} | ({"error": "You already created this model repo"} if status == 409 else {}))
        if url.path == "/api/validate-yaml":
            return self.send(200, {"errors": [], "warnings": []})
        if url.path == f"/{REPO}.git/info/lfs/objects/batch":
            return self.send(200, {"transfer": "multipart", "objects": [self.actions(one) for one in body["objects"]]})
        if url.path.startswith("/verify/"):
            return self.send(200 if len(state.objects[body["oid"]]) == body["size"] else 404)
        if url.path.startswith(api + "/branch/"):
            state.branches[urllib.parse.unquote(url.path.split("/branch/")[1])] = FIRST
            return self.send(200, {})
        if url.path.startswith(api + "/preupload/"):
            return self.send(200, {"files": [self.mode(one) for one in body["files"]]})
        if url.path.startswith(api + "/commit/"):
            return self.commit(urllib.parse.unquote(url.path.split("/commit/")[1]), body)
        self.unknown()

    def actions(self, one):
        oid, size = one["oid"], one["size"]
        if oid in state.objects:
            return {"oid": oid, "size": size}
        upload = {"href": f"{second_url}/objects/{oid}?Signature=sig"}
        if size > BASIC_BYTES:
            parts = {f"{i + 1:05}": f"{second_url}/objects/{oid}/{i + 1}?Signature=sig" for i in range(-(-size // CHUNK_BYTES))}
            upload = {"href": f"{hub_url}/complete/{oid}?Signature=sig", "header": {"chunk_size": str(CHUNK_BYTES), **parts}}
        return {"oid": oid, "size": size, "authenticated": True, "actions": {"upload": upload, "verify": {"href": f"{hub_url}/verify/{REPO}"}}}

    def mode(self, one):
        data = state.files.get(one["path"])
        large = is_large(one["path"])
        answer = {"path": one["path"], "uploadMode": "lfs" if large else "regular", "shouldIgnore": False}
        return answer | ({"oid": sha256(data) if large else git_sha1(data)} if data is not None else {})

    def commit(self, branch, lines):
        if lines[0]["value"].get("parentCommit") != state.branches[branch]:
            return self.send(412, {"error": "A commit has happened since. Please refresh and try again."})
        for line in lines[1:]:
            value = line["value"]
            if line["key"] == "deletedFile":
                del state.files[value["path"]]
            elif line["key"] == "lfsFile":
                state.files[value["path"]] = state.objects[value["oid"]]
            else:
                state.files[value["path"]] = base64.b64decode(value["content"])
        state.branches[branch] = sha256(json.dumps(lines).encode())[:40]
        self.send(200, {"commitUrl": f"{hub_url}/{REPO}/commit/{state.branches[branch]}", "commitOid": state.branches[branch],
                        "pullRequestUrl": None, "hookOutput": "", "success": True})


def start(kind):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), kind)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


hub_url, second_url = start(Hub), start(Second)
os.environ.update(HF_ENDPOINT=hub_url, HF_HOME=tempfile.mkdtemp(), HF_TOKEN=TOKEN, HF_HUB_DISABLE_TELEMETRY="1", HF_HUB_DISABLE_UPDATE_CHECK="1")
import huggingface_hub  # noqa: E402
from huggingface_hub.errors import RevisionNotFoundError  # noqa: E402

assert huggingface_hub.__version__ == "2.4.0", huggingface_hub.__version__
api = huggingface_hub.HfApi()


def push(folder, branch):
    """The calls of `hf upload`, with deletions in the same commit and a parent that guards them."""
    api.create_repo(REPO, exist_ok=True)
    try:
        parent = api.repo_info(REPO, revision=branch).sha
    except RevisionNotFoundError:
        api.create_branch(REPO, branch=branch, exist_ok=True)
        parent = api.repo_info(REPO, revision=branch).sha
    stale = [path for path in api.list_repo_files(REPO, revision=parent)
             if path not in folder and any(fnmatch.fnmatch(path, pattern) for pattern in PATTERNS)]
    operations = [huggingface_hub.CommitOperationDelete(path) for path in stale]
    operations += [huggingface_hub.CommitOperationAdd(path, text.encode()) for path, text in sorted(folder.items())]
    return api.create_commit(REPO, operations, commit_message="A model", revision=branch, parent_commit=parent)


EXPORT = {"README.md": CARD, "config.json": '{"model_type": "llama"}\n', "empty.txt": "", "model-00001-of-00002.safetensors": "first " * 10,
          "model-00002-of-00002.safetensors": "second " * 30, "model.safetensors.index.json": "{}\n"}
EARLIER = {".gitattributes": "*.bin lfs\n", "README.md": CARD, "config.json": "{}\n", "model-00001-of-00002.safetensors": "first " * 10,
           "model-00001-of-00003.safetensors": "old", "model.safetensors": "older", "notes.txt": "mine\n", "pytorch_model-00001-of-00001.bin": "oldest",
           "training_args.bin": "mine too"}
SCENARIOS = [("a new repository", None, EXPORT, "main"), ("over an earlier export", EARLIER, EXPORT, "main"),
             ("a new branch", {"notes.txt": "mine\n"}, {"config.json": "{}\n"}, "v2/beta"),
             ("nothing new", {"README.md": CARD, "model.safetensors": "same"}, {"README.md": CARD, "model.safetensors": "same"}, "main")]
golden = {"client": "huggingface_hub 2.4.0, HF_HUB_DISABLE_XET=1", "basic_bytes": BASIC_BYTES, "chunk_bytes": CHUNK_BYTES, "scenarios": []}
for name, files, folder, branch in SCENARIOS:
    state = Repository(files)
    push(folder, branch)
    assert not state.problems, state.problems
    golden["scenarios"].append({"name": name, "repository": files, "folder": folder, "branch": branch,
                                "calls": sorted(state.calls, key=lambda call: json.dumps(call, sort_keys=True)),
                                "after": {path: data.decode() for path, data in sorted(state.files.items())}})
place = pathlib.Path(__file__).parent / "push.json"
place.write_text(json.dumps(golden, indent=1) + "\n")
