"""What transformers computes from the tiny models in hf/: losses and every gradient of an awkward batch, and greedy texts.

Writes hf_oracles/<model>.safetensors: ids, labels, losses by row, grad.<name>, and prompt.<i> with
greedy.<i>, the tokens that generate() adds to it with its cache.

The batch: a length that no tile divides, labels that are ignored here and there, and a row of ignored labels alone.
Made with transformers 5.23.0 and torch 2.11.0:
  python tests/golden/hf_oracles.py
"""
import pathlib

import torch
import transformers
from safetensors.torch import save_file

HF = pathlib.Path(__file__).parent / "hf"
OUT = pathlib.Path(__file__).parent / "hf_oracles"
VOCAB, BATCH, NEW_TOKENS = 101, 3, 12
# ALiBi has no table: the folder's 32 positions are only what its config says.
LENGTHS = {"llama": 70, "llama_sharded": 37, "gpt2": 31, "mpt": 70}
MORE = {"mpt": {"max_seq_len": 128}}
PROMPT_LENGTHS = [1, 5, 12]


def batch(length, generator):
    ids = torch.randint(0, VOCAB, (BATCH, length), generator=generator)
    labels = torch.where(torch.rand(ids.shape, generator=generator) < 0.3, -100, ids)
    labels[1] = -100
    return ids, labels


def gradients(model, ids, labels):
    logits = model(ids).logits.double()
    rows = torch.nn.functional.cross_entropy(logits[:, :-1].transpose(1, 2), labels[:, 1:], reduction="none").sum(1)
    rows.sum().backward()
    found = {"losses": rows.detach()}
    found |= {f"grad.{name}": p.grad.float().contiguous() for name, p in model.named_parameters()}
    return found


def greedy(model, generator):
    found = {}
    for i, length in enumerate(PROMPT_LENGTHS):
        prompt = torch.randint(0, VOCAB, (1, length), generator=generator)
        text = model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=NEW_TOKENS,
                              eos_token_id=None, pad_token_id=0, use_cache=True)
        found |= {f"prompt.{i}": prompt[0].int(), f"greedy.{i}": text[0, length:].int()}
    return found


def main():
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    for name, length in LENGTHS.items():
        generator = torch.Generator().manual_seed(11)
        model = transformers.AutoModelForCausalLM.from_pretrained(HF / name, dtype=torch.float32, **MORE.get(name, {})).eval()
        ids, labels = batch(length, generator)
        found = {"ids": ids.int(), "labels": labels.int()} | gradients(model, ids, labels) | greedy(model, generator)
        save_file(found, OUT / f"{name}.safetensors")
        print(name, (OUT / f"{name}.safetensors").stat().st_size, "bytes")


if __name__ == "__main__":
    main()
