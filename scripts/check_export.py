#!/usr/bin/env python3
"""Checks an export: transformers must give every token that Tycho writes the probability that Tycho gives it, and write the same text.

  tycho convert runs/demo exports/demo --dtype fp32
  python3 scripts/check_export.py exports/demo runs/demo --prompt 'class '

Needs transformers and torch; `tycho` from PATH, or --tycho. Exit status 0: the same; 1: not.
"""
import argparse
import json
import os
import subprocess
import sys


def tycho_says(tycho: str, run: str, prompt: str, tokens: int) -> dict:
    """What `tycho generate` prints of a greedy text: text, token_ids and their logprobs."""
    command = [tycho, "generate", run, "--prompt", prompt, "--temperature", "0", "--max-tokens", str(tokens), "--json", "--logprobs"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def transformers_says(folder: str, prompt: str, token_ids: list[int], tokens: int) -> tuple[str, list[float]]:
    """Its own greedy text, and the logarithms of the probabilities that it gives Tycho's tokens."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    ids = tokenizer(prompt, return_tensors="pt", add_special_tokens=False).input_ids
    with torch.no_grad():
        whole = torch.cat([ids, torch.tensor([token_ids], dtype=ids.dtype)], dim=1)
        logprobs = model(whole).logits[0, ids.shape[1] - 1 : -1].double().log_softmax(-1)
        out = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=tokens,
                             pad_token_id=0)[0]
    special = set(tokenizer.all_special_ids)
    new = out[ids.shape[1]:].tolist()
    end = next((i for i, token in enumerate(new) if token in special), len(new))
    text = tokenizer.decode(new[:end], clean_up_tokenization_spaces=False)
    return text, [logprobs[i, token].item() for i, token in enumerate(token_ids)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("export", help="folder that tycho convert wrote, with --dtype fp32")
    parser.add_argument("run", help="run or checkpoint that it was written from")
    parser.add_argument("--prompt", default="The ", help="text to continue")
    parser.add_argument("--tokens", type=int, default=48, help="tokens to write")
    parser.add_argument("--tolerance", type=float, default=1e-3, help="largest difference of a log-probability")
    parser.add_argument("--tycho", default="tycho", help="the program")
    args = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    ours = tycho_says(args.tycho, args.run, args.prompt, args.tokens)
    text, logprobs = transformers_says(args.export, args.prompt, ours["token_ids"], args.tokens)
    difference = max(abs(a - b) for a, b in zip(ours["logprobs"], logprobs, strict=True))
    print(f"tycho:        {ours['text']!r}\ntransformers: {text!r}")
    print(f"largest difference of {len(logprobs)} log-probabilities: {difference:.1e}")
    same = ours["text"] == text and difference <= args.tolerance
    print("the same" if same else "NOT the same: was the export made with --dtype fp32, from this checkpoint?")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
