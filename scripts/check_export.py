#!/usr/bin/env python3
"""Checks an export: transformers must go on from a prompt with the same text as Tycho does, greedily.

  tycho convert runs/demo exports/demo --dtype fp32
  python3 scripts/check_export.py exports/demo runs/demo --prompt 'class '

Needs transformers and torch; `tycho` from PATH, or --tycho. Exit status 0: the same text; 1: another one.
"""
import argparse
import os
import subprocess
import sys


def tycho_text(tycho: str, run: str, prompt: str, tokens: int) -> str:
    command = [tycho, "generate", run, "--prompt", prompt, "--temperature", "0", "--max-tokens", str(tokens)]
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    # A model may write bytes that are no characters; transformers shows those as U+FFFD too.
    return out.removesuffix(b"\n").decode(errors="replace")


def transformers_text(folder: str, prompt: str, tokens: int) -> str:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    ids = tokenizer(prompt, return_tensors="pt", add_special_tokens=False).input_ids
    with torch.no_grad():
        out = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=tokens,
                             pad_token_id=0)[0]
    special = set(tokenizer.all_special_ids)
    new = out[ids.shape[1]:].tolist()
    end = next((i for i, token in enumerate(new) if token in special), len(new))
    return tokenizer.decode(out[: ids.shape[1] + end], clean_up_tokenization_spaces=False)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("export", help="folder that tycho convert wrote, with --dtype fp32")
    parser.add_argument("run", help="run or checkpoint that it was written from")
    parser.add_argument("--prompt", default="The ", help="text to go on from")
    parser.add_argument("--tokens", type=int, default=48, help="tokens to write")
    parser.add_argument("--tycho", default="tycho", help="the program")
    args = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    ours = tycho_text(args.tycho, args.run, args.prompt, args.tokens)
    theirs = transformers_text(args.export, args.prompt, args.tokens)
    print(f"tycho:        {ours!r}\ntransformers: {theirs!r}")
    print("the same" if ours == theirs else "NOT the same: was the export made with --dtype fp32, from this checkpoint?")
    return 0 if ours == theirs else 1


if __name__ == "__main__":
    sys.exit(main())
