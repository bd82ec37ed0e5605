"""Loads an exported folder in the class that its config.json names, and compares its logits with a family's golden.

FOLDER is what `tycho convert` wrote, REFERENCE an expected.safetensors, for example of families/qwen3_tied/. The logits
must be those of the reference to 1e-5, and every tensor of the folder must be one that the class wants. A folder that
was read from a wrapper is exported as the text model alone.

By hand. Made with transformers 5.23.0 and torch 2.11.0:
  python tests/golden/family_exports.py FOLDER REFERENCE
"""
import json
import pathlib
import sys

import torch
import transformers
from safetensors.torch import load_file

MOST = 1e-5


def main():
    folder, reference = pathlib.Path(sys.argv[1]), load_file(sys.argv[2])
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    name = json.loads((folder / "config.json").read_text())["architectures"][0]
    model, loading = getattr(transformers, name).from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    problems = {kind: sorted(found) for kind, found in loading.items() if found}
    with torch.no_grad():
        logits = model.eval()(reference["ids"].long()).logits
    distance = (logits - reference["logits"]).abs().max().item()
    print(f"{folder.name}: {name}, logits {distance:.1e} away", *problems.items())
    sys.exit(distance > MOST or bool(problems))


if __name__ == "__main__":
    main()
