"""What peft computes from adapters of tiny models in hf/ and families/: losses, logits and the gradients of every adapter.

Writes peft_oracles/<case>.safetensors: ids, labels, losses by row, logits, and for each adapter its weights, adapter.<name>,
and grad.<name> of the sum of all losses. The names are those of the model's layers: peft's without its prefix.
The metadata has the adapter's rank, alpha, targets and rslora.

Made with peft 0.21.2, transformers 5.23.0 and torch 2.11.0:
  python tests/golden/peft_oracles.py
"""
import json
import pathlib

import peft
import torch
import transformers
from safetensors.torch import save_file

HF = pathlib.Path(__file__).parent / "hf"
OUT = pathlib.Path(__file__).parent / "peft_oracles"
BATCH, SEQ = 2, 13
CASES = {
    "llama": ("llama", dict(r=3, lora_alpha=5, target_modules="all-linear")),
    # Some layers of a stack, in one block of the two.
    "llama_some": ("llama", dict(r=4, lora_alpha=6, use_rslora=True,
                                 target_modules=r".*layers\.1\.(self_attn\.[qv]_proj|mlp\.up_proj)")),
    "mpt": ("mpt", dict(r=3, lora_alpha=5, target_modules=["Wqkv", "out_proj", "up_proj", "down_proj"])),
    "gpt2": ("gpt2", dict(r=3, lora_alpha=5, target_modules=["c_attn", "c_proj", "c_fc"], fan_in_fan_out=True)),
    "qwen3": ("../families/qwen3_tied", dict(r=3, lora_alpha=5, target_modules="all-linear")),
    "gemma3": ("../families/gemma3_linear", dict(r=3, lora_alpha=5, target_modules="all-linear")),
    # Its files have q, k and v in one matrix, gate and up in another, and so have its adapters.
    "phi4_mini": ("../families/phi4_mini", dict(r=3, lora_alpha=5, target_modules="all-linear")),
    "phi4_mini_some": ("../families/phi4_mini", dict(r=2, lora_alpha=4, target_modules=["qkv_proj", "down_proj"])),
}
PREFIX = "base_model.model."


def write(case, base, settings):
    generator = torch.Generator().manual_seed(23)
    more = {"max_seq_len": 128} if base == "mpt" else {}
    model = transformers.AutoModelForCausalLM.from_pretrained(HF / base, dtype=torch.float32, **more)
    model = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **settings)).eval()
    adapters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    for p in adapters.values():
        p.data = torch.randn(p.shape, generator=generator) * 0.2
    ids = torch.randint(0, model.config.vocab_size, (BATCH, SEQ), generator=generator)
    labels = torch.where(torch.rand(ids.shape, generator=generator) < 0.2, -100, ids)
    logits = model(ids).logits
    rows = torch.nn.functional.cross_entropy(logits.double()[:, :-1].transpose(1, 2), labels[:, 1:],
                                             reduction="none").sum(1)
    rows.sum().backward()
    found = {"ids": ids.int(), "labels": labels.int(), "losses": rows.detach(), "logits": logits.detach().contiguous()}
    for name, p in adapters.items():
        short = name.removeprefix(PREFIX).replace(".default.", ".")
        found |= {f"adapter.{short}": p.data.contiguous(), f"grad.{short}": p.grad.contiguous()}
    about = {"base": base, "settings": json.dumps(settings)}
    save_file(found, OUT / f"{case}.safetensors", metadata=about)
    print(case, len(adapters), "matrices,", (OUT / f"{case}.safetensors").stat().st_size, "bytes")


def main():
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    OUT.mkdir(exist_ok=True)
    for case, (base, settings) in CASES.items():
        write(case, base, settings)
    versions = {"peft": peft.__version__, "transformers": transformers.__version__,
                "torch": torch.__version__.split("+")[0]}
    print(versions)


if __name__ == "__main__":
    main()
