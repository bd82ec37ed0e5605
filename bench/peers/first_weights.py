"""The weights that a model of decoders.py begins with, from a checkpoint of Tycho's: Hugging Face's names, fp32."""

import torch
from safetensors import safe_open


def llama_names(layers, split_projections):
    """Our parameter -> theirs, those that are one matrix here in their order."""
    names = {"embedding.weight": ["model.embed_tokens.weight"], "norm": ["model.norm.weight"], "head.weight": ["lm_head.weight"]}
    for i in range(layers):
        ours, theirs = f"blocks.{i}.", f"model.layers.{i}."
        names |= {
            ours + "attention_norm": [theirs + "input_layernorm.weight"],
            ours + "ffn_norm": [theirs + "post_attention_layernorm.weight"],
            ours + "qkv.weight": [f"{theirs}self_attn.{x}_proj.weight" for x in "qkv"],
            ours + "out.weight": [theirs + "self_attn.o_proj.weight"],
            ours + "gate_up.weight": [f"{theirs}mlp.{x}_proj.weight" for x in ("gate", "up")],
            ours + "down.weight": [theirs + "mlp.down_proj.weight"],
        }
        if split_projections:
            del names[ours + "qkv.weight"], names[ours + "gate_up.weight"]
            names |= {f"{ours}{x}.weight": [f"{theirs}self_attn.{x}_proj.weight"] for x in "qkv"}
            names |= {f"{ours}{x}.weight": [f"{theirs}mlp.{x}_proj.weight"] for x in ("gate", "up")}
    return names


def gpt_names(layers, block, parts):
    names = {"embedding": ["wte"], "positions": ["wpe"], "norm": ["ln_f" if block == "h" else "norm_f"]}
    names |= {f"blocks.{i}.{ours}": [f"{block}.{i}.{theirs}"] for i in range(layers) for ours, theirs in parts.items()}
    return {f"{ours}.{kind}": [f"transformer.{theirs[0]}.{kind}"] for ours, theirs in names.items() for kind in ("weight", "bias")}


def names_of(args):
    if args.family == "qwen3":  # transformers' own class
        return None
    if args.family == "llama":
        return llama_names(args.layers, getattr(args, "split_projections", False))
    if args.family == "gpt2":
        return gpt_names(args.layers, "h", {"attention_norm": "ln_1", "qkv": "attn.c_attn", "out": "attn.c_proj",
                                            "ffn_norm": "ln_2", "up": "mlp.c_fc", "down": "mlp.c_proj"})
    return gpt_names(args.layers, "blocks", {"attention_norm": "norm_1", "qkv": "attn.Wqkv", "out": "attn.out_proj",
                                             "ffn_norm": "norm_2", "up": "ffn.up_proj", "down": "ffn.down_proj"})


def load(model, args):
    """Fills every parameter; one that is missing, left over or of another shape ends the program."""
    names = names_of(args)
    with safe_open(args.weights, "pt") as file, torch.no_grad():
        left = {name for name in file.keys() if not name.startswith("optimizer.")}
        for name, parameter in model.named_parameters():
            theirs = names[name] if names else [name.removeprefix("inner.")]
            tensors = [file.get_tensor(one) for one in theirs]
            # GPT-2's matrices are [in, out] there.
            turned = args.family == "gpt2" and name.startswith("blocks.") and parameter.dim() == 2
            value = tensors[0].t() if turned else torch.cat(tensors)
            if value.shape != parameter.shape:
                raise SystemExit(f"{args.weights}: {theirs} is {list(value.shape)}, wanted {list(parameter.shape)}")
            parameter.copy_(value)
            left -= set(theirs)
    if left:
        raise SystemExit(f"{args.weights}: the model has no place for {sorted(left)}")
