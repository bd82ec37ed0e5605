#!/usr/bin/env python3
"""Tokens per second of one core from text files to MDS shards: `tycho data convert` against LLM Foundry's convert_text_to_mds.py, on
the text of LibTorch's headers (one document each) or of another folder. Both must write the same shards and the same index.json.

    TYCHO_FOUNDRY=FOUNDRY/bin/python python3 bench/convert.py

Fresh processes alternate, all on the same core. Tycho's time is that of the whole process, with its start and the fsync of what it
wrote; LLM Foundry's begins after Python has loaded its modules. FOUNDRY is the environment that tests/golden/make_conversion_goldens.py
describes. Writes build/bench/convert.json. Standard library only.
"""
import argparse
import datetime
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from result_file import result_file
from sample_order import processor
from texts import add_options, whole_texts

BENCH = pathlib.Path(__file__).resolve().parent
CONCAT_TOKENS, EOS_TEXT = 2048, "<|endoftext|>"
VERSIONS = """import sys, importlib.metadata as m
print("python", sys.version.split()[0], *(f"{p} {m.version(p)}" for p in ("llm-foundry", "mosaicml-streaming", "transformers", "tokenizers")))"""


def run(core, command, **environment):
    command = ["taskset", "-c", core, *command]
    done = subprocess.run([str(word) for word in command], env={**os.environ, **environment}, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"failed with exit code {done.returncode}: {command}\n{done.stdout[-1000:]}{done.stderr[-2000:]}")
    return done.stdout


def written(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name == "index.json" or path.suffix == ".mds"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument("--tycho", default=BENCH.parent / "build/cpu/bin/tycho")
    parser.add_argument("--foundry", default=os.environ.get("TYCHO_FOUNDRY"), required="TYCHO_FOUNDRY" not in os.environ)
    parser.add_argument("--vocabulary", type=int, default=32768)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--core", default="1")
    options = parser.parse_args()
    load_before, rounds = os.getloadavg(), []
    with tempfile.TemporaryDirectory() as scratch:
        work = pathlib.Path(scratch)
        texts, tokenizer = work / "texts", work / "tokenizer"
        texts.mkdir(), tokenizer.mkdir()
        num_bytes = sum((texts / f"{i:06}.txt").write_bytes(text) for i, text in enumerate(whole_texts(options)))
        run(options.core, [options.tycho, "tokenizer", "train", texts, "--vocab-size", options.vocabulary, "--out", tokenizer / "tokenizer.json"])
        (tokenizer / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": EOS_TEXT}))

        def ours():
            start = time.perf_counter()
            run(options.core, [options.tycho, "data", "convert", texts, "--tokenizer", tokenizer / "tokenizer.json", "--eos-text", EOS_TEXT,
                               "--concat-tokens", CONCAT_TOKENS, "--out", work / "tycho", "--threads", 1])
            return {"seconds": time.perf_counter() - start}

        def theirs():
            text = run(options.core, [options.foundry, BENCH / "peers/foundry_convert.py", texts, tokenizer, work / "foundry", CONCAT_TOKENS,
                                      EOS_TEXT], TOKENIZERS_PARALLELISM="false", RAYON_NUM_THREADS="1", HF_HUB_OFFLINE="1")
            return json.loads(text[text.rindex("{") :])

        for _ in range(options.rounds):
            for name in ("tycho", "foundry"):
                shutil.rmtree(work / name, ignore_errors=True)
            rounds.append({"tycho": ours(), "foundry": theirs()})
            if written(work / "tycho/train") != written(work / "foundry"):
                sys.exit("the two sides do not write the same bytes: nothing is compared")
        index = json.loads((work / "tycho/train/index.json").read_text())
        tokens = CONCAT_TOKENS * sum(shard["samples"] for shard in index["shards"])
    speed = {side: tokens / statistics.median(r[side]["seconds"] for r in rounds) for side in ("tycho", "foundry")}
    print(f"{num_bytes / 1e6:.1f} MB of text, {tokens / 1e6:.2f} M tokens: tycho {speed['tycho'] / 1e6:.2f} M tokens/s, "
          f"LLM Foundry {speed['foundry'] / 1e6:.3f} M tokens/s, {speed['tycho'] / speed['foundry']:.1f} times")
    versions = {"foundry": run(options.core, [options.foundry, "-c", VERSIONS]).strip(),
                "commit": run(options.core, ["git", "-C", BENCH, "rev-parse", "HEAD"]).strip()}
    report = {"versions": versions, "date": datetime.datetime.now().isoformat(timespec="seconds"), "processor": processor(),
              "cores": os.cpu_count(), "load_before": load_before, "load_after": os.getloadavg(), "command": sys.argv,
              "text_bytes": num_bytes, "tokens": tokens, "tokens_per_s": speed, "ratio": speed["tycho"] / speed["foundry"], "rounds": rounds}
    result_file("convert").write_text(json.dumps(report, indent=1) + "\n")


main()
