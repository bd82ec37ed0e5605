"""Writes downloads.json: what huggingface_hub 2.4.0 asks of a hub, and the cache that it leaves.

The server is of the standard library: a hub with paged listings, and a second host for large files. Run:
  pip install huggingface_hub==2.4.0; HF_HUB_DISABLE_XET=1 python downloads.py
"""
import hashlib
import http.server
import json
import os
import pathlib
import tempfile
import threading
import urllib.parse

COMMIT = "0123456789abcdef0123456789abcdef01234567"
XET = "ab" * 32
FILES = {"README.md": b"hello\n", "data/config.json": b"{}\n", "weights.bin": b"0123456789" * 10}
LARGE = {"weights.bin"}
TOKEN = "hf_atokenoftests"
log, unknown = [], []


def git_sha1(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def entry(path):
    data = FILES[path]
    one = {"type": "file", "oid": git_sha1(data), "size": len(data), "path": path}
    if path in LARGE:
        one["oid"] = git_sha1(b"pointer to " + sha256(data).encode())
        one["lfs"] = {"oid": sha256(data), "size": len(data), "pointerSize": 130}
        one["xetHash"] = XET
    return one


class Host(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, status, body=b"", headers=()):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def note(self, host, path):
        token = " token" if self.headers.get("Authorization") else ""
        log.append(f"{host} {self.command} {path}{token}")


class Second(Host):
    def do_GET(self):
        path = urllib.parse.urlsplit(self.path).path
        self.note("second", path)
        self.send(200, FILES[path.removeprefix("/models/tests/tiny/")])


class Hub(Host):
    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        self.note("hub", self.path)
        url = urllib.parse.urlsplit(self.path)
        api = "/api/models/tests/tiny"
        if url.path == api + "/revision/main":
            self.send(200, json.dumps({"id": "tests/tiny", "sha": COMMIT, "siblings": []}).encode(),
                      [("Content-Type", "application/json")])
        elif url.path == f"{api}/tree/{COMMIT}":
            begin = int(urllib.parse.parse_qs(url.query).get("cursor", ["0"])[0])
            body = json.dumps([entry(path) for path in list(FILES)[begin:begin + 2]]).encode()
            first = self.path.split("&cursor=")[0]
            link = [("Link", f'<{hub_url}{first}&cursor=2>; rel="next"')] if begin == 0 else []
            self.send(200, body, link + [("Content-Type", "application/json")])
        elif url.path.startswith(f"/tests/tiny/resolve/{COMMIT}/"):
            path = url.path.split(COMMIT + "/")[1]
            headers = [("X-Repo-Commit", COMMIT), ("ETag", f'"{entry(path)["oid"]}"')]
            if path in LARGE:
                headers += [("X-Linked-Etag", f'"{sha256(FILES[path])}"'), ("X-Linked-Size", str(len(FILES[path]))),
                            ("X-Xet-Hash", XET), ("Location", f"{second_url}/models/tests/tiny/{path}?Signature=sig")]
                self.send(302, b"Found", headers)
            else:
                self.send(200, FILES[path], headers)
        else:
            unknown.append(self.path)
            self.send(501)


def start(kind):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), kind)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


hub_url, second_url = start(Hub), start(Second)
home = pathlib.Path(tempfile.mkdtemp())
os.environ.update(HF_ENDPOINT=hub_url, HF_HOME=str(home), HF_HUB_DISABLE_XET="1", HF_TOKEN=TOKEN,
                  HF_HUB_DISABLE_TELEMETRY="1", HF_HUB_DISABLE_UPDATE_CHECK="1")
import huggingface_hub  # noqa: E402

assert huggingface_hub.__version__ == "2.4.0", huggingface_hub.__version__
huggingface_hub.snapshot_download("tests/tiny")
assert not unknown, unknown
cache = {}
for path in sorted((home / "hub").rglob("*")):
    name = str(path.relative_to(home / "hub"))
    if path.is_symlink():
        cache[name] = {"link": os.readlink(path)}
    elif path.is_file() and not name.startswith(".locks"):
        cache[name] = {"text": path.read_text()}
files = {path: {"text": data.decode(), "is_large": path in LARGE} for path, data in FILES.items()}
golden = {"client": "huggingface_hub 2.4.0", "commit": COMMIT, "xet_hash": XET, "files": files, "requests": sorted(log), "cache": cache}
place = pathlib.Path(__file__).parent / "downloads.json"
place.write_text(json.dumps(golden, indent=1) + "\n")

# The other direction, once `hub_test` has left a cache of ours: OUR_CACHE=DIR, read without a connection.
if os.environ.get("OUR_CACHE"):
    log.clear()
    found = huggingface_hub.snapshot_download("tests/tiny", cache_dir=os.environ["OUR_CACHE"], local_files_only=True)
    for path, data in FILES.items():
        assert (pathlib.Path(found) / path).read_bytes() == data, path
        again = huggingface_hub.hf_hub_download("tests/tiny", path, cache_dir=os.environ["OUR_CACHE"], local_files_only=True)
        assert pathlib.Path(again).read_bytes() == data, path
    huggingface_hub.snapshot_download("tests/tiny", cache_dir=os.environ["OUR_CACHE"])
    assert all("resolve" not in line for line in log), log
    print("huggingface_hub reads the cache of ours:", found)
