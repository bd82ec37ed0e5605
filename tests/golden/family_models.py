"""Tiny random models of the dense families as transformers saves them, and what it computes from them.

Writes families/<case>/: config.json, model.safetensors (or shards), generation_config.json and expected.safetensors:
  ids, labels           a batch [2, length]; some labels are ignored (-100)
  logits                [2, length, vocabulary], fp32, eager attention
  losses                sums over each row, float64
  grad.<name>           of the sum of losses, for every parameter of the text model. In a folder that wraps a text model
                        next to a vision model the names are those that the text model alone would have
  prompt.<i>, greedy.<i>  a prompt and the tokens that generate() adds to it with its cache
  bf16_logits_distance  [largest, root mean square] distance of the reference's own bf16 logits from its fp32 logits
Every odd option of a case is turned off once: the logits must change by more than 1e-3. Cases with a hub layout have the
config.json of published folders (rope_scaling, rope_theta, torch_dtype); transformers must compute the same from it.

Made with transformers 5.23.0, safetensors 0.8.0 and torch 2.11.0:
  python tests/golden/family_models.py [CASE ...]
"""
import json
import pathlib
import shutil
import sys

import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from family_cases import CASES, VOCAB

OUT = pathlib.Path(__file__).parent / "families"
BATCH, NEW_TOKENS = 2, 12
SMALLEST_CHANGE, SMALLEST_GAP, MOST_ROUNDING = 1e-3, 1e-3, 3e-6
EAGER = {"attn_implementation": "eager"}


def model_class(model_type):
    auto = transformers.AutoModelForImageTextToText if model_type in ("gemma3", "mistral3") else None
    return auto or transformers.AutoModelForCausalLM


def randomise(model, case):
    """Draws weights with deviation 0.2; those of norms around what a fresh model has: 1, or 0 where 1 is added.

    Norms after a branch can be drawn around less, so that rounding does not grow from layer to layer.
    """
    generator = torch.Generator().manual_seed(case.seed)
    for name, parameter in sorted(model.named_parameters()):
        noise = torch.randn(parameter.shape, generator=generator) * 0.2
        centre = 1 if "norm" in name and name.endswith("weight") and "Gemma" not in type(model).__name__ else 0
        after = name.endswith(("post_attention_layernorm.weight", "post_feedforward_layernorm.weight"))
        parameter.data = noise + centre - after * case.calmed


def hub_layout(case, config):
    """Returns the config as published folders have it: the keys of transformers 4."""
    text = config.get("text_config", config)
    rope = text.pop("rope_parameters")
    full = rope.get("full_attention", rope)
    if "sliding_attention" in rope and config["model_type"].startswith("gemma3"):
        text["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
    text["rope_theta"] = full.pop("rope_theta")
    partial = full.pop("partial_rotary_factor", 1.0)
    if partial != 1.0:
        text["partial_rotary_factor"] = partial
    if "original_max_position_embeddings" in text:
        full.pop("original_max_position_embeddings", None)
    kind = full.pop("rope_type")
    text["rope_scaling"] = None if kind == "default" else full | {case.hub_rope_key: kind}
    config["torch_dtype"] = config.pop("dtype")
    for key in case.hub_drop:
        text.pop(key, None)
        config.pop(key, None)
    text |= case.hub_more
    return dict(sorted((config | ({"text_config": text} if text is not config else {})).items()))


def rename_tensors(folder, old, new):
    """Renames the tensors of a folder to those of the model's state, which some tools save."""
    tensors = load_file(folder / "model.safetensors")
    save_file({name.replace(old, new, 1) if name.startswith(old) else "model." * ("lm_head" not in name) + name: tensor
               for name, tensor in tensors.items()}, folder / "model.safetensors", metadata={"format": "pt"})


def write_model(case, folder):
    config = CONFIG_MAPPING[case.model_type].from_dict({"model_type": case.model_type} | case.keys)
    model = model_class(case.model_type).from_config(config, **EAGER).eval()
    randomise(model, case)
    model.to(getattr(torch, case.dtype)).save_pretrained(folder, max_shard_size=case.shard_size)
    if case.renamed:
        rename_tensors(folder, *case.renamed)
    return model


def read_model(case, folder, dtype):
    """Reads the folder again: a model that was cast to bf16 has cast its rotary frequencies too."""
    return model_class(case.model_type).from_pretrained(folder, dtype=dtype, **EAGER).eval()


def logits_of(model, ids):
    with torch.no_grad():
        return model(ids).logits


def write_hub_layout(case, folder, ids, logits):
    path = folder / "config.json"
    path.write_text(json.dumps(hub_layout(case, json.loads(path.read_text())), indent=2) + "\n")
    again = logits_of(read_model(case, folder, torch.float32), ids)
    assert torch.equal(again, logits), f"{folder.name}: the hub's layout of config.json means another model"


def check_odd_options(case, model, ids, logits):
    """Turns off each odd option alone and requires other logits. Returns the smallest change."""
    smallest = float("inf")
    for option, (change_config, change_model) in case.odd.items():
        config = json.loads(json.dumps(model.config.to_dict(), default=str))
        text = config.get("text_config", config)
        change_config(text)
        other = model_class(case.model_type).from_config(
            CONFIG_MAPPING[case.model_type].from_dict(config), **EAGER).float().eval()
        other.load_state_dict(model.state_dict())
        change_model(other)
        change = (logits_of(other, ids) - logits).abs().max().item()
        assert change > SMALLEST_CHANGE, f"{case.model_type}: {option} changes the logits by {change} only"
        smallest = min(smallest, change)
    for option, change_config in case.ignored.items():
        config = json.loads(json.dumps(model.config.to_dict(), default=str))
        change_config(config)
        other = model_class(case.model_type).from_config(
            CONFIG_MAPPING[case.model_type].from_dict(config), **EAGER).float().eval()
        other.load_state_dict(model.state_dict())
        assert torch.equal(logits_of(other, ids), logits), f"{case.model_type}: {option} is not ignored"
    return smallest


def batch(case):
    generator = torch.Generator().manual_seed(11)
    ids = torch.randint(0, VOCAB, (BATCH, case.length), generator=generator)
    if case.keys.get("pad_token_id") is not None:
        ids[:, 3::9] = case.keys["pad_token_id"]
    labels = torch.where(torch.rand(ids.shape, generator=generator) < 0.3, -100, ids)
    return ids, labels


def text_name(name):
    """Returns the parameter's name in the text model alone, or None for a parameter of the vision model."""
    if "vision_tower" in name or "multi_modal_projector" in name:
        return None
    return name.replace("model.language_model.", "model.", 1)


def gradients(model, ids, labels):
    model.zero_grad()
    logits = model(ids).logits.double()
    rows = torch.nn.functional.cross_entropy(logits[:, :-1].transpose(1, 2), labels[:, 1:], reduction="none").sum(1)
    rows.sum().backward()
    named = {text_name(name): p for name, p in model.named_parameters() if text_name(name)}
    return {"losses": rows.detach()} | {f"grad.{name}": p.grad.float().contiguous() for name, p in named.items()}


def worst_gradient(found, other):
    """Returns the largest relative distance between gradients; the tiny ones count against the largest."""
    floor = 1e-8 * max(g.norm() for name, g in found.items() if name.startswith("grad."))
    return max(((other[name] - g).norm() / max(g.norm(), floor)).item()
               for name, g in found.items() if name.startswith("grad."))


def greedy(case, model):
    """Returns prompts with texts that no near tie decides: other prompts are drawn until there are such."""
    generator = torch.Generator().manual_seed(12)
    found = {}
    for i, length in enumerate(case.prompts):
        for _ in range(20):
            prompt = torch.randint(0, VOCAB, (1, length), generator=generator)
            arguments = dict(attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=NEW_TOKENS,
                             eos_token_id=None, pad_token_id=0, output_logits=True, return_dict_in_generate=True)
            text = model.generate(prompt, use_cache=True, **arguments)
            top = torch.cat(text.logits).topk(2).values
            if (top[:, 0] - top[:, 1]).min() > SMALLEST_GAP:
                break
        else:
            raise AssertionError("every text is decided by a near tie: take another seed")
        without = model.generate(prompt, use_cache=False, **arguments)
        assert torch.equal(text.sequences, without.sequences), "the cache changes the text"
        found |= {f"prompt.{i}": prompt[0].int(), f"greedy.{i}": text.sequences[0, length:].int()}
    return found


def check_pad_row(case, model, ids, found):
    pad = case.keys.get("pad_token_id")
    if pad is None:
        return
    assert (ids == pad).any()
    model.get_input_embeddings().padding_idx = None
    other = gradients(model, ids, found["labels"].long())
    change = (other["grad.model.embed_tokens.weight"] - found["grad.model.embed_tokens.weight"]).abs().amax(1)
    assert change[pad] > SMALLEST_CHANGE and change[torch.arange(VOCAB) != pad].max() < 1e-4


def write(name):
    case, folder = CASES[name], OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    ids, labels = batch(case)
    write_model(case, folder)
    model = read_model(case, folder, torch.float32)
    logits = logits_of(model, ids)
    change = check_odd_options(case, model, ids, logits)
    if case.hub:
        write_hub_layout(case, folder, ids, logits)
    distance = (logits_of(read_model(case, folder, torch.bfloat16), ids).float() - logits)
    found = {"ids": ids.int(), "labels": labels.int(), "logits": logits.contiguous(),
             "bf16_logits_distance": torch.stack([distance.abs().max(), distance.square().mean().sqrt()])}
    found |= gradients(model, ids, labels) | greedy(case, model)
    save_file(found, folder / "expected.safetensors")
    rounding = worst_gradient(found, gradients(read_model(case, folder, torch.float32).double(), ids, labels))
    assert rounding < MOST_ROUNDING, f"{name}: gradients are {rounding} from those with fp64 products: take another seed"
    check_pad_row(case, model, ids, found)
    size = sum(f.stat().st_size for f in folder.iterdir())
    print(f"{name:28} {size:7} bytes  losses {found['losses'].sum():9.4f}  smallest change {change:8.1e}  "
          f"bf16 {found['bf16_logits_distance'][0]:7.1e}  gradients in fp64 {rounding:7.1e}  "
          f"{', '.join(case.odd) or 'as Llama'}", flush=True)
    return size


def main():
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    names = sys.argv[1:] or list(CASES)
    print(sum(write(name) for name in names), "bytes in", len(names), "folders")
    versions = {"transformers": transformers.__version__, "torch": torch.__version__.split("+")[0]}
    (OUT / "versions.json").write_text(json.dumps(versions, indent=2) + "\n")


if __name__ == "__main__":
    main()
