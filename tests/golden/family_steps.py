"""Twenty steps of finetuning in PyTorch, from the weights of some folders in families/.

Writes families/<case>/steps.safetensors: tokens [20, 2, 24], losses [20] (means over all next tokens, before each step) and
grad_norms [20] (before clipping). fp32, eager attention, torch.optim.AdamW: lr 1e-3, betas 0.9 and 0.95, eps 1e-8, weight
decay 0.1 of matrices and embeddings (none of norms and biases), gradients clipped to norm 1. The same steps with products
in fp64 must have losses within 1e-6, so that rounding leaves room for a bound of 2e-6.

Made with transformers 5.23.0 and torch 2.11.0, after family_models.py:
  python tests/golden/family_steps.py
"""
import torch
import transformers
from safetensors.torch import save_file

from family_cases import CASES, VOCAB
from family_models import OUT, read_model

RUNS = ["qwen3_tied", "gemma3_linear", "phi4_mini"]
STEPS, BATCH, LENGTH = 20, 2, 24
MOST_ROUNDING = 1e-6


def make_tokens():
    """Every token follows from the one before by one of two rules, chosen at random: half of the uncertainty can be learnt."""
    generator = torch.Generator().manual_seed(5)
    rules = torch.randint(0, 2, (STEPS, BATCH, LENGTH), generator=generator)
    tokens = torch.randint(0, VOCAB, (STEPS, BATCH, LENGTH), generator=generator)
    for t in range(1, LENGTH):
        before = tokens[:, :, t - 1]
        tokens[:, :, t] = torch.where(rules[:, :, t] == 0, before * 7 + 3, before + 11) % VOCAB
    return tokens


def train(name, tokens, dtype):
    model = read_model(CASES[name], OUT / name, torch.float32).to(dtype).train()
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW([{"params": [p for p in parameters if p.dim() > 1], "weight_decay": 0.1},
                                   {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0.0}],
                                  lr=1e-3, betas=(0.9, 0.95), eps=1e-8)
    losses, norms = [], []
    for rows in tokens:
        logits = model(rows).logits
        loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1).double(), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(parameters, 1.0).double())
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses), torch.stack(norms)


def main():
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    tokens = make_tokens()
    for name in RUNS:
        losses, norms = train(name, tokens, torch.float32)
        rounding = ((train(name, tokens, torch.float64)[0] - losses).abs() / losses).max().item()
        print(f"{name}: losses {losses[0]:.4f} to {losses[-1]:.4f}, in fp64 {rounding:.1e} away")
        assert rounding < MOST_ROUNDING, f"{name}: rounding decides about its losses: take another case"
        save_file({"tokens": tokens.int(), "losses": losses, "grad_norms": norms}, OUT / name / "steps.safetensors")


if __name__ == "__main__":
    main()
