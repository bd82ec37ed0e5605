"""Two hundred steps of training in PyTorch: Hugging Face's models, Composer's DecoupledAdamW and schedule or torch.optim's, and a
loop of a few lines. Starts from the weights in hf/ and writes optim/curves.json: the tokens, and losses by step of every
model, in double ("fp64") and with bf16 autocast over fp32 weights ("bf16").

Made with torch 2.11.0, transformers 5.23.0 and mosaicml 0.32.1:
  python tests/golden/training_curves.py
"""
import json
import math
import pathlib

import numpy
import torch
import transformers
from composer.optim import DecoupledAdamW

FOLDER = pathlib.Path(__file__).parent
SAMPLES, SEQ, BATCH, STEPS, VOCAB = 64, 20, 8, 200, 101
LR, CLIP = 1e-3, 1.0


def make_tokens():
    """Every token follows from the one before by one of two rules, chosen at random: half of the uncertainty can be learnt."""
    random = numpy.random.default_rng(5)
    tokens = numpy.zeros((SAMPLES, SEQ), numpy.int32)
    tokens[:, 0] = random.integers(0, VOCAB, SAMPLES)
    for t in range(1, SEQ):
        rule = random.integers(0, 2, SAMPLES)
        tokens[:, t] = numpy.where(rule == 0, tokens[:, t - 1] * 7 + 3, tokens[:, t - 1] + 11) % VOCAB
    return torch.from_numpy(tokens).long()


def composer_cosine(n):
    """Composer's cosine to a tenth after 20 steps of warm-up. It asks its schedule before it moves the clock, so step n, from 1,
    gets the factor of time n - 2."""
    t = max(0, n - 2)
    if t < 20:
        return t / 20
    return 0.1 + 0.9 * (1 + math.cos(math.pi * (t - 20) / (STEPS - 20))) / 2


def titan_linear(n):
    """TorchTitan's warm-up of 20 steps, 1/20 first, then a line that would be 0 after the last step."""
    return n / 20 if n <= 20 else 1 - (n - 1 - 20) / (STEPS - 20)


def constant(n):
    return 1.0


RUNS = {
    "gpt2": (titan_linear, lambda p: torch.optim.AdamW(p, lr=LR, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)),
    "mpt": (composer_cosine,
            lambda p: DecoupledAdamW(p, lr=LR, betas=(0.9, 0.95), eps=1e-8, weight_decay=1e-4)),
    "llama": (constant, lambda p: torch.optim.AdamW(p, lr=LR / 5, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)),
}


def train(name, tokens, dtype, autocast):
    schedule, make = RUNS[name]
    config = transformers.AutoConfig.from_pretrained(FOLDER / "hf" / name)
    if name == "mpt":
        config.attn_config.clip_qkv = None  # where a clamp bends, rounding decides about gradients
    else:
        config._attn_implementation = "sdpa"
    model = transformers.AutoModelForCausalLM.from_pretrained(FOLDER / "hf" / name, config=config, dtype=dtype).train()
    optimizer = make(list(model.parameters()))
    peak, losses = optimizer.param_groups[0]["lr"], []
    for n in range(1, STEPS + 1):
        first = (n - 1) * BATCH % SAMPLES
        rows = tokens[first:first + BATCH]
        optimizer.param_groups[0]["lr"] = peak * schedule(n)
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            logits = model(rows).logits
        loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1).to(dtype), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    transformers.logging.set_verbosity_error()
    tokens = make_tokens()
    curves = {"tokens": tokens.tolist()}
    for name in RUNS:
        curves[name] = {"fp64": train(name, tokens, torch.float64, False), "bf16": train(name, tokens, torch.float32, True)}
        fp32 = train(name, tokens, torch.float32, False)
        error = max(abs(a / b - 1) for a, b in zip(fp32, curves[name]["fp64"]))
        noise = max(abs(a / b - 1) for a, b in zip(curves[name]["bf16"], curves[name]["fp64"]))
        print(f"{name}: {fp32[0]:.4f} -> {fp32[-1]:.4f}; PyTorch in fp32 is off by {error:.1e}, with bf16 by {noise:.1e}")
    (FOLDER / "optim" / "curves.json").write_text(json.dumps(curves) + "\n")


if __name__ == "__main__":
    main()
