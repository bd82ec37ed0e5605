"""Writes names.json: what huggingface_hub 2.4.0 reads in names of the hub. Run: python names.py (pip install huggingface_hub==2.4.0)."""
import json
import pathlib

import huggingface_hub
from huggingface_hub.errors import HfUriError
from huggingface_hub.utils import parse_hf_uri

assert huggingface_hub.__version__ == "2.4.0", huggingface_hub.__version__
TEXTS = """hf://a/b
hf://models/a/b
hf://datasets/a/b
hf://datasets/a/b/
hf://datasets/a/b/x/y.json
hf://datasets/a/b@main
hf://datasets/a/b@main/x/y@2.json
hf://datasets/a/b/x@2.json
hf://a/b@feature%2Fx/config.json
hf://a/b@refs/pr/10
hf://a/b@refs/pr/10/config.json
hf://a/b@refs/convert/parquet
hf://datasets/a/b@refs/convert/parquet-v2/en/0000.parquet
hf://a/b@refs/other/x
hf://a/b@
hf://a/b@/x
hf://dataset/a/b
hf://model/a/b
hf://datasets
hf://datasets/
hf://
hf://a--b/c
hf://a/b.git
hf://a/b..c
hf://-a/b
hf://a/b-
hf://a/b c
hf://a/b//x
hf://a/b/x//y
hf://a/caf\u00e9
hf://a/b@v1.0
hf://a/0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456
hf://A.b_c-d/E.f_g-1""".split("\n")


def read(text):
    try:
        uri = parse_hf_uri(text)
    except HfUriError:
        return None
    return {"kind": uri.type, "id": uri.id, "revision": uri.revision or "", "path": uri.path_in_repo}


place = pathlib.Path(__file__).parent / "names.json"
place.write_text(json.dumps([{"text": text, "name": read(text)} for text in TEXTS], indent=1) + "\n")
