"""Writes rows/ and rows.json: data sets of the hub as files, and the texts that `datasets` reads in each of their splits.

The server is of the standard library: listings in one page, files without a redirect. Made with datasets 5.2.0, huggingface_hub 2.4.0,
pyarrow 26.0.1 and zstandard 0.25.0:
  HF_HUB_DISABLE_XET=1 python rows.py            # writes both; with --check: compares, and writes nothing
A text file is one document here, so it is read with sample_by="document".
"""
import gzip
import hashlib
import http.server
import io
import json
import os
import pathlib
import sys
import tempfile
import threading
import urllib.parse

HERE = pathlib.Path(__file__).parent
COMMIT = "0123456789abcdef0123456789abcdef01234567"
TEXTS = ["A story.", "", " spaces \t and tabs ", "two\nlines", "CR\r\nLF", "quotes \" and ' and, commas", "caf\u00e9 \U0001f642 \u2028 \u00a0",
         "back\\slash \\n", "<|endoftext|>", "null", "3.14", "end"]


def lines(texts, **more):
    return "".join(json.dumps({"id": i, "text": t, **more}, ensure_ascii=i % 2 == 0) + "\n" for i, t in enumerate(texts)).encode()


def table(texts):
    import pyarrow as pa
    return pa.table({"id": list(range(len(texts))), "text": texts, "meta": [{"n": i} for i in range(len(texts))]})


def parquet(texts, **options):
    import pyarrow.parquet
    out = io.BytesIO()
    pyarrow.parquet.write_table(table(texts), out, **options)
    return out.getvalue()


def arrow(texts, as_file=False):
    import pyarrow as pa
    out = io.BytesIO()
    with (pa.ipc.new_file if as_file else pa.ipc.new_stream)(out, table(texts).schema) as writer:
        writer.write_table(table(texts), max_chunksize=5)
    return out.getvalue()


def csv(texts, newline="\n"):
    import csv as module
    out = io.StringIO()
    writer = module.writer(out, lineterminator=newline)
    writer.writerows([["id", "text"], *enumerate(texts)])
    return out.getvalue().encode()


def zstd(data):
    import zstandard
    return zstandard.ZstdCompressor().compress(data)


# Empty fields, "null" and numbers are no texts in CSV: `datasets` reads them with pandas.
WORDS = [text for text in TEXTS if text not in ("", "null", "3.14")]


def repositories():
    return {
        "rows/parquet": {"data/train-00000-of-00002.parquet": parquet(TEXTS[:5]),
                         "data/train-00001-of-00002.parquet": parquet(TEXTS[5:], compression="zstd", row_group_size=3),
                         "data/test-00000-of-00001.parquet": parquet(TEXTS[::2], use_dictionary=False)},
        "rows/json": {"train.jsonl": lines(TEXTS), "dev.jsonl.gz": gzip.compress(lines(TEXTS[::3]), mtime=0),
                      "test.jsonl.zst": zstd(lines(TEXTS[1::2]))},
        "rows/csv": {"README.md": b"---\nconfigs:\n- config_name: whole\n  default: true\n  data_files:\n  - split: train\n    path: all/*.csv\n"
                                  b"  - split: held_out\n    path: other/b.csv\n- config_name: windows\n  data_files: crlf.csv\n---\n",
                     "all/1.csv": csv(WORDS), "all/2.csv": csv(WORDS[::-1]), "other/b.csv": csv(WORDS[:3]),
                     "other/c.csv": csv(["not read"]), "crlf.csv": csv(WORDS, "\r\n")},
        "rows/arrow": {"train/0.arrow": arrow(TEXTS), "train/1.arrow": arrow(TEXTS[::-1], as_file=True), "validation/0.arrow": arrow(TEXTS[:1])},
        "rows/text": {"train/a.txt": "One\ndocument.\n".encode(), "train/b.txt": "Another: caf\u00e9.".encode(), "eval/c.txt": b"A test.\n"},
        "rows/unsplit": {"b.jsonl": lines(TEXTS[:2]), "a.jsonl": lines(TEXTS[2:4]), "notes.txt": b"not rows"},
    }


def git_sha1(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class Hub(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    files, unknown = {}, []

    def log_message(self, *_):
        pass

    def reply(self, status, body=b"", **headers):
        if not isinstance(body, bytes):
            body, headers["Content_Type"] = json.dumps(body).encode(), "application/json"
        self.send_response(status)
        for name, value in {"Content_Length": str(len(body)), "X_Repo_Commit": COMMIT, **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def absent(self, code):
        self.reply(404, {"error": code}, X_Error_Code=code)

    def entries(self, repository, folder, recursive):
        found, folders = [], set()
        for path, data in self.files[repository].items():
            if folder and not path.startswith(folder + "/"):
                continue
            rest = path[len(folder) + 1:] if folder else path
            if "/" in rest:
                top = (folder + "/" if folder else "") + rest.split("/")[0]
                if top not in folders:
                    folders.add(top)
                    found.append({"type": "directory", "oid": "0" * 40, "size": 0, "path": top})
            if "/" not in rest or recursive:
                found.append({"type": "file", "oid": git_sha1(data), "size": len(data), "path": path})
        return found

    def do_GET(self):
        url = urllib.parse.urlparse(self.path)
        query, parts = urllib.parse.parse_qs(url.query), [urllib.parse.unquote(p) for p in url.path.strip("/").split("/")]
        is_api = parts[0] == "api"
        parts = parts[1:] if is_api else parts
        repository, rest = "/".join(parts[1:3]), parts[3:]
        files = self.files.get(repository)
        if parts[0] != "datasets" or files is None:
            return self.absent("RepoNotFound")
        if is_api and (not rest or rest[0] == "revision"):
            return self.reply(200, {"id": repository, "sha": COMMIT, "private": False, "gated": False, "disabled": False, "tags": [],
                                    "siblings": [{"rfilename": path} for path in files]})
        if is_api and rest[0] == "tree":
            return self.reply(200, self.entries(repository, "/".join(rest[2:]), query.get("recursive", ["False"])[0] not in ("False", "0")))
        if is_api and rest[0] == "paths-info":
            length = int(self.headers["Content-Length"])
            wanted = urllib.parse.parse_qs(self.rfile.read(length).decode())["paths"]
            return self.reply(200, [e for e in self.entries(repository, "", True) if e["path"] in wanted])
        if not is_api and rest and rest[0] == "resolve":
            path = "/".join(rest[2:])
            return self.reply(200, files[path], ETag=f'"{git_sha1(files[path])}"') if path in files else self.absent("EntryNotFound")
        self.unknown.append(f"{self.command} {self.path}")
        self.reply(501)

    do_HEAD = do_POST = do_GET


def read(repository):
    import datasets
    name = repository
    kwargs = {"sample_by": "document"} if name == "rows/text" else {}
    cases = []
    for configuration in datasets.get_dataset_config_names(name):
        for split, rows in datasets.load_dataset(name, configuration, **kwargs).items():
            cases.append({"repository": name, "configuration": configuration, "split": str(split), "texts": rows["text"][:]})
    return cases


def main(check):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ.update(HF_ENDPOINT=f"http://127.0.0.1:{server.server_port}", HF_HOME=tempfile.mkdtemp(), HF_HUB_DISABLE_XET="1",
                      HF_DATASETS_DISABLE_PROGRESS_BARS="1")
    if check:
        for path in (p for p in (HERE / "rows").rglob("*") if p.is_file()):
            name = path.relative_to(HERE).as_posix().split("/", 2)
            Hub.files.setdefault("/".join(name[:2]), {})[name[2]] = path.read_bytes()
    else:
        Hub.files = repositories()
        for name, files in Hub.files.items():
            for path, data in files.items():
                (HERE / name / path).parent.mkdir(parents=True, exist_ok=True)
                (HERE / name / path).write_bytes(data)
    text = json.dumps([case for name in sorted(Hub.files) for case in read(name)], indent=1) + "\n"
    assert not Hub.unknown, Hub.unknown
    if not check:
        (HERE / "rows.json").write_text(text)
    elif text != (HERE / "rows.json").read_text():
        sys.exit("datasets reads other rows than rows.json has:\n" + text)
    print(f"{text.count('repository')} splits")


if __name__ == "__main__":
    main("--check" in sys.argv)
