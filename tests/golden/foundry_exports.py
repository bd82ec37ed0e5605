"""Every MPT of foundry_oracles, through Tycho and back, loaded by LLM Foundry's own class: all tensors must be taken, and the losses be the oracle's.

Writes foundry_exports.json: for each case the config.json that LLM Foundry accepted and the shapes of the tensors, which
hf_export_test holds every export to. Models with rope_impl dail need FLASH_ATTN as in foundry_oracles.py and are checked with
it; all others are checked without, and must load where there is no flash-attn. So it is run twice:
  python tests/golden/foundry_exports.py build/cpu/bin/tycho
  FLASH_ATTN=/opt/flash-attn/flash_attn-2.7.4.post1 python tests/golden/foundry_exports.py build/cpu/bin/tycho
Made with llm-foundry 0.22.0, transformers 4.51.3 and torch 2.11.0, installed as foundry_oracles.py says.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import torch
import transformers
from safetensors.torch import load_file

from foundry_oracles import OUT as CASES
from foundry_oracles import foundry_mpt

OUT = pathlib.Path(__file__).parent / "foundry_exports.json"
HAS_FLASH = "FLASH_ATTN" in os.environ


def is_dail(config):
    return bool(config["attn_config"]["rope"]) and config["attn_config"]["rope_impl"] == "dail"


def export(tycho, case, folder):
    for source, target in [(case, folder / "run"), (folder / "run", folder / "hf")]:
        subprocess.run([tycho, "convert", source, target], check=True, capture_output=True)
    return folder / "hf"


def check(model_class, config_class, exported, oracle):
    config = config_class.from_pretrained(exported)
    model, info = model_class.from_pretrained(exported, config=config, output_loading_info=True)
    left = info["missing_keys"] + info["unexpected_keys"] + info["mismatched_keys"]
    assert not left, left
    inputs = {"sequence_id": oracle["sequence_id"].long()} if "sequence_id" in oracle else {}
    with torch.no_grad():
        logits = model.float().train()(input_ids=oracle["ids"].long(), **inputs).logits.double()
    labels = oracle["labels"].long()[:, 1:]
    losses = torch.nn.functional.cross_entropy(logits[:, :-1].transpose(1, 2), labels, reduction="none").sum(1)
    return float(((losses - oracle["losses"]) / oracle["losses"]).abs().max())


def main():
    tycho = sys.argv[1]
    config_class, model_class = foundry_mpt(flash_attn=HAS_FLASH)
    transformers.logging.set_verbosity_error()
    accepted = json.loads(OUT.read_text()) if OUT.exists() else {}
    failed = []
    for case in sorted(CASES.iterdir()):
        with tempfile.TemporaryDirectory() as folder:
            exported = export(tycho, case, pathlib.Path(folder))
            config = json.loads((exported / "config.json").read_text())
            if is_dail(config) != HAS_FLASH:
                continue
            try:
                error = check(model_class, config_class, exported, load_file(case / "oracle.safetensors"))
                assert error < 1e-5, f"losses differ by {error}"
            except Exception as problem:
                failed.append(case.name)
                print(case.name, "FAILED", type(problem).__name__, problem)
                continue
            shapes = {name: list(t.shape) for name, t in load_file(exported / "model.safetensors").items()}
            accepted[case.name] = {"config": config, "tensors": dict(sorted(shapes.items()))}
            print(case.name, error)
    lines = [f"{json.dumps(name)}: {json.dumps(accepted[name])}" for name in sorted(accepted)]
    OUT.write_text("{" + ",\n".join(lines) + "}\n")
    if failed:
        sys.exit(f"{len(failed)} failed: {' '.join(failed)}")


if __name__ == "__main__":
    main()
