"""Trains adapters of the tiny models in hf/ with tycho, and checks that peft loads what it exports.

For each family: PeftModel over the base has the logits of the merged export in transformers, and others than the base.
By hand, with tycho on the PATH. Made with peft 0.21.2, transformers 5.23.0 and torch 2.11.0:
  python tests/golden/peft_exports.py
"""
import pathlib
import subprocess
import sys
import tempfile

import peft
import torch
import transformers

ROOT = pathlib.Path(__file__).parents[2]
HF = ROOT / "tests/golden/hf"
VOCAB, SEQ = 101, 16
RECIPE = """local t = require "tycho"
local r = t.recipe "adapters"
r.model = t.model.hf {{ path = "{base}" }}
r.lora = {{ rank = 3, alpha = 5, {more} }}
r.seq_len = {seq}
r.global_batch = "4sp"
r.max_duration = "20ba"
r.optimizer = t.optim.adamw {{ lr = 3e-2 }}
r.train_data = t.data.mds {{ local_dir = "data", split = "" }}
return r
"""
CASES = {
    "llama": ("llama", ""),
    "llama_some": ("llama", 'rslora = true, targets = { "1.self_attn.[qv]_proj", "mlp.up_proj" }'),
    "mpt": ("mpt", ""),
    "gpt2": ("gpt2", 'targets = { "c_attn", "c_fc" }'),
}


def tycho(folder, *arguments):
    subprocess.run(["tycho", *arguments], cwd=folder, check=True, capture_output=True)


def check(name, base, more):
    ids = torch.randint(0, VOCAB, (2, SEQ), generator=torch.Generator().manual_seed(5))
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        subprocess.run([sys.executable, ROOT / "bench/synthetic_mds.py", "data", "--vocab", str(VOCAB), "--seq-len", str(SEQ),
                        "--samples", "32"], cwd=folder, check=True)
        (folder / "adapters.lua").write_text(RECIPE.format(base=HF / base, more=more, seq=SEQ))
        tycho(folder, "run", "adapters.lua")
        tycho(folder, "convert", "runs/adapters", "peft")
        tycho(folder, "convert", "runs/adapters", "merged", "--merge")
        load = transformers.AutoModelForCausalLM.from_pretrained
        with torch.no_grad():
            plain = load(HF / base, dtype=torch.float32).eval()(ids).logits
            adapted = peft.PeftModel.from_pretrained(load(HF / base, dtype=torch.float32), folder / "peft").eval()(ids).logits
            merged = load(folder / "merged", dtype=torch.float32).eval()(ids).logits
    scale = float(merged.abs().max())
    error, change = float((adapted - merged).abs().max()) / scale, float((adapted - plain).abs().max()) / scale
    print(f"{name}: relative error {error:.1e}, change by the adapters {change:.2f}")
    assert error < 1e-5 and change > 0.01


def main():
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    for name, (base, more) in CASES.items():
        check(name, base, more)


if __name__ == "__main__":
    main()
