"""Writes tests/golden/conversion/: what LLM Foundry's own converters make of small texts, as index.json and hashes of shards.

Its convert_text_to_mds.py and convert_dataset_json.py run as they are; only Composer's object stores are left out, files are taken
in sorted order (LLM Foundry takes them as the file system lists them), and shards may be smaller than 64 MiB.
Made with llm-foundry 0.22.0, mosaicml-streaming 0.12.0, transformers 4.51.3, tokenizers 0.21.4 and datasets 3.6.0, in Python 3.11 with torch:
  python3 -m venv /opt/foundry-data
  /opt/foundry-data/bin/pip install --no-deps llm-foundry==0.22.0 mosaicml-streaming==0.12.0
  /opt/foundry-data/bin/pip install torch==2.11.0 transformers==4.51.3 tokenizers==0.21.4 huggingface_hub==0.33.4 datasets==3.6.0 \\
    xxhash==3.8.2 zstandard==0.25.0 zstd==1.5.7.2 brotli==1.2.1 python-snappy==0.7.3 omegaconf==2.4.0 catalogue==2.0.10 pillow boto3
  /opt/foundry-data/bin/python tests/golden/make_conversion_goldens.py
"""
import functools
import gzip
import json
import os
import pathlib
import shutil
import sys
import tempfile
import types

import xxhash
import zstandard

HERE = pathlib.Path(__file__).parent
OUT = HERE / "conversion"
CORPUS = (HERE / "tokenizer/corpus.txt").read_bytes()
CRLF = b"Ends of lines:\r\nof Windows,\r\rof old Macs, \n\r\nand mixed \xe2\x82\xac\xf0\x9f\x99\x82\r"


def converters():
    """LLM Foundry's two scripts without the rest of LLM Foundry: its packages would import models, loggers and the cloud."""
    root = next(pathlib.Path(p) / "llmfoundry" for p in sys.path if (pathlib.Path(p) / "llmfoundry").is_dir())
    for name in ["", ".data", ".utils", ".command_utils", ".command_utils.data_prep"]:
        package = types.ModuleType("llmfoundry" + name)
        package.__path__ = [str(root.joinpath(*name.split(".")[1:]))]
        sys.modules[package.__name__] = package
    for name in ["composer", "composer.utils", "composer.utils.object_store", "composer.utils.retrying"]:
        sys.modules[name] = types.ModuleType(name)
    utils = sys.modules["composer.utils"]
    utils.ObjectStore = object
    utils.maybe_create_object_store_from_uri = lambda uri: None
    utils.parse_uri = lambda uri: ("", "", uri)
    sys.modules["composer.utils.object_store"].ObjectStoreTransientError = OSError
    sys.modules["composer.utils.retrying"].retry = lambda *a, **k: (lambda f: f)
    streaming = pathlib.Path(root).parent / "streaming"
    for name in ["", ".base"]:
        package = types.ModuleType("streaming" + name)
        package.__path__ = [str(streaming.joinpath(*name.split(".")[1:]))]
        sys.modules[package.__name__] = package
    from streaming.base.format.mds.writer import MDSWriter
    sys.modules["streaming"].MDSWriter = MDSWriter
    import llmfoundry.data.data as data
    sys.modules["llmfoundry.data"].ConcatTokensDataset = data.ConcatTokensDataset
    sys.modules["llmfoundry.data"].NoConcatDataset = data.NoConcatDataset
    from llmfoundry.command_utils.data_prep import convert_dataset_json, convert_text_to_mds
    return convert_text_to_mds, convert_dataset_json


def texts():
    """Inputs that are committed: small, with all that is treacherous about ends of lines and of documents."""
    parts = [CORPUS[:700], CORPUS[700:1900], CORPUS[1900:1960], CORPUS[1960:]]
    return {"a.txt": parts[0], "b/empty.txt": b"", "c.txt": CRLF + parts[1], "d.txt": parts[2], "e.txt": parts[3],
            "special.txt": b"One<|endoftext|>two\r\n<|begin_of_text|>three"}


def records():
    lines = [text.decode() for text in texts().values()] + ["", " ", "tab\t \\ \"quoted\" \u00e9\u20ac\U0001f642\u0000 end"]
    body = [json.dumps({"id": i, "text": line, "meta": {"text": "not this"}}, ensure_ascii=i % 2 == 0) for i, line in enumerate(lines)]
    return ("\n".join(body[:4]) + "\n\n" + "\r\n".join(body[4:])).encode()


def long_text():
    """More than two of LLM Foundry's pieces of 1,000,000 characters; made again by the test, as in its comment."""
    return (CORPUS.replace(b"\n", b"\r\n") + CRLF) * 370


def cases():
    whole = {"tokenizer": "tokenizer/whole.json", "config": {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|endoftext|>"}}
    llama = {"tokenizer": "chat/tokenizer.json", "config": {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<|begin_of_text|>",
                                                            "eos_token": "<|end_of_text|>"}}
    eos, bos = {"eos_text": "<|endoftext|>"}, {"bos_text": "<|endoftext|>"}
    for kind, inputs in [("text", "texts"), ("jsonl", "records.jsonl")]:
        yield kind, inputs, {**whole, **eos, "concat_tokens": 64}
        yield kind + "_bos_and_eos", inputs, {**whole, **eos, "bos_text": "a b", "concat_tokens": 33}
        for length in [7, 16, 64]:
            yield f"{kind}_no_wrap_{length}", inputs, {**whole, **eos, "no_wrap": True, "concat_tokens": length}
        yield kind + "_no_wrap_bos", inputs, {**whole, **bos, "no_wrap": True, "concat_tokens": 5}
        yield kind + "_shards", inputs, {**whole, **eos, "concat_tokens": 32, "size_limit": 1000}
        yield kind + "_llama3", inputs, {**llama, "concat_tokens": 64}
        yield kind + "_llama3_twice", inputs, {**llama, "bos_text": "<|begin_of_text|>", "eos_text": "<|end_of_text|>", "concat_tokens": 21}
        for name, tokens in [("GPTNeoXTokenizerFast", {"add_bos_token": True, "add_eos_token": True}), ("GPTNeoXTokenizerFast", {}),
                             ("LlamaTokenizerFast", {}), ("LlamaTokenizerFast", {"add_bos_token": False, "add_eos_token": True}),
                             ("GPT2TokenizerFast", {"add_bos_token": True}), ("PreTrainedTokenizerFast", {"add_bos_token": True}),
                             ("CohereTokenizerFast", {"bos_token": {"content": "<|endoftext|>", "__type": "AddedToken"}})]:
            config = {"tokenizer_class": name, "bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "unk_token": None, **tokens}
            flags = {} if kind == "text" else {"eos_text": "<|endoftext|>"}
            label = "_".join([kind, name, *(f"{k}_{v}" for k, v in tokens.items() if isinstance(v, bool))])
            yield label, inputs, {"tokenizer": "tokenizer/whole.json", "config": config, **flags, "concat_tokens": 30}
    yield "long_text", "long", {**whole, **eos, "concat_tokens": 512}
    yield "long_text_no_wrap", "long", {**whole, **eos, "concat_tokens": 512, "no_wrap": True}
    yield "long_text_llama3", "long", {**llama, "concat_tokens": 512}


def convert(modules, inputs, flags, folder):
    text_module, json_module = modules
    from streaming import MDSWriter
    writer = functools.partial(MDSWriter, size_limit=flags.get("size_limit", 1 << 26))
    text_module.MDSWriter = json_module.MDSWriter = writer
    tokenizer = folder / "tokenizer"
    tokenizer.mkdir()
    shutil.copy(HERE / flags["tokenizer"], tokenizer / "tokenizer.json")
    (tokenizer / "tokenizer_config.json").write_text(json.dumps(flags["config"]))
    out = folder / "out"
    common = dict(concat_tokens=flags["concat_tokens"], bos_text=flags.get("bos_text"), eos_text=flags.get("eos_text"),
                  no_wrap=flags.get("no_wrap", False), compression="")
    if inputs.endswith(".jsonl"):
        json_module.convert_dataset_json_from_args(path=str(OUT / inputs), out_root=str(out), split="train", tokenizer=str(tokenizer),
                                                   num_workers=None, **{**common, "compression": None})
    else:
        source = OUT / inputs
        if inputs == "long":
            source = folder / "long"
            source.mkdir()
            (source / "long.txt").write_bytes(long_text())
        unsorted = text_module.get_object_names.__wrapped__ if hasattr(text_module.get_object_names, "__wrapped__") else text_module.get_object_names
        text_module.get_object_names = functools.wraps(unsorted)(lambda folder: sorted(unsorted(folder)))
        text_module.convert_text_to_mds_from_args(
            output_folder=str(out), input_folder=str(source), tokenizer_name=str(tokenizer), use_tokenizer_eos=False, processes=1,
            reprocess=True, trust_remote_code=False, logging_level="ERROR", **common)
    index = (out / "index.json").read_text()
    shards = {p.name: xxhash.xxh3_128_hexdigest(p.read_bytes()) for p in sorted(out.glob("*.mds"))}
    return {"index": index, "shards": shards}


def main():
    for name, text in texts().items():
        path = OUT / "texts" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
    (OUT / "records.jsonl").write_bytes(records())
    half = len(records()) // 2
    members = [gzip.compress(part, mtime=0) for part in (records()[:half], records()[half:])]
    (OUT / "records.jsonl.gz").write_bytes(b"".join(members))
    (OUT / "records.jsonl.zst").write_bytes(b"".join(zstandard.compress(part) for part in (records()[:half], records()[half:])))
    (OUT / "d.txt.gz").write_bytes(gzip.compress(texts()["d.txt"], mtime=0) + bytes(100))
    modules, made = converters(), []
    os.environ["HF_DATASETS_OFFLINE"] = "1"
    for name, inputs, flags in cases():
        with tempfile.TemporaryDirectory() as folder:
            os.environ["HF_DATASETS_CACHE"] = folder + "/cache"
            made.append({"name": name, "inputs": inputs, **flags, **convert(modules, inputs, flags, pathlib.Path(folder))})
            print(name, len(made[-1]["shards"]), file=sys.stderr)
    (OUT / "cases.json").write_text("[\n" + ",\n".join(json.dumps(c, sort_keys=True) for c in made) + "\n]\n")


if __name__ == "__main__":
    main()
