"""fp8 linear layers as torchao computes them on a CPU: casts, scales, and single layers forward and backward.

Writes fp8/casts.safetensors: for each case x (bf16) and codes.<case>, scale.<case>; fp8/linears.safetensors: for each
recipe y, dx and dw of a layer. fp8/llama is a tiny model of Hugging Face, and fp8/steps.safetensors what transformers
computes from it in bf16, with and without the recipes: losses of STEPS steps (mean over all next tokens, before each) of
torch.optim.AdamW on fp32 weights, and some gradients of the first step.

Made with torch 2.11.0, torchao 0.18.0 (emulate=True), transformers 5.23.0 and safetensors 0.8.0:
  python tests/golden/make_fp8_goldens.py
"""
import copy
import dataclasses
import pathlib

import torch
import transformers
from safetensors.torch import save_file
from torchao.float8 import Float8LinearConfig, convert_to_float8_training
from torchao.float8.config import ScalingGranularity
from torchao.float8.float8_linear import Float8Linear
from torchao.float8.float8_utils import tensor_to_scale, to_fp8_saturated

OUT = pathlib.Path(__file__).parent / "fp8"
RECIPES = ["tensorwise", "rowwise", "rowwise_with_gw_hp"]
STEPS, BATCH, LENGTH, VOCAB = 6, 4, 32, 40
GRADIENTS = ["model.embed_tokens.weight", "model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.v_proj.weight",
             "model.layers.1.mlp.down_proj.weight", "model.layers.1.mlp.up_proj.weight"]
FORMATS = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}


def awkward(rows, columns, generator):
    """Numbers of many magnitudes: a row of zeros, one of tiny numbers, one with an outlier."""
    x = torch.randn(rows, columns, generator=generator) * torch.exp(2 * torch.randn(rows, 1, generator=generator))
    x[1] = 0
    x[2] *= 1e-20
    x[3, 5] = 3e4
    return x.bfloat16()


def casts():
    x = awkward(13, 37, torch.Generator().manual_seed(1))
    found = {"x": x}
    for name, dtype in FORMATS.items():
        for dim, group in ((-1, "rows"), (0, "columns"), (None, "whole")):
            for power_of_two in (False, True):
                granularity = ScalingGranularity.TENSORWISE if dim is None else ScalingGranularity.AXISWISE
                scale = tensor_to_scale(x, dtype, scaling_granularity=granularity, axiswise_dim=dim,
                                        round_scales_to_power_of_2=power_of_two)
                case = f"{name}.{group}.{'power' if power_of_two else 'any'}"
                found[f"scale.{case}"] = scale.reshape(-1).clone()
                found[f"codes.{case}"] = to_fp8_saturated(x.float() * scale, dtype).view(torch.uint8)
    return found


def linear(recipe, x, weight, dy):
    config = dataclasses.replace(Float8LinearConfig.from_recipe_name(recipe), emulate=True)
    layer = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False, dtype=torch.bfloat16)
    layer.weight.data.copy_(weight)
    layer = Float8Linear.from_float(layer, config=config)
    leaf = x.clone().requires_grad_(True)
    y = layer(leaf)
    y.backward(dy)
    return {"y": y.detach(), "dx": leaf.grad, "dw": layer.weight.grad}


def linears():
    generator = torch.Generator().manual_seed(2)
    x, weight, dy = awkward(48, 32, generator), torch.randn(64, 32, generator=generator).bfloat16() / 8, awkward(48, 64, generator)
    dy = (dy.float() * 1e-3).bfloat16()
    found = {"x": x, "w": weight, "dy": dy}
    for recipe in RECIPES:
        found |= {f"{recipe}.{name}": value for name, value in linear(recipe, x, weight, dy).items()}
    return found


def tiny_llama():
    torch.manual_seed(3)
    config = transformers.LlamaConfig(
        vocab_size=VOCAB, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=16, max_position_embeddings=64, tie_word_embeddings=False, initializer_range=0.1,
        attn_implementation="eager")
    model = transformers.LlamaForCausalLM(config).bfloat16()
    model.save_pretrained(OUT / "llama")
    (OUT / "llama" / "generation_config.json").unlink(missing_ok=True)
    return model


def tokens():
    """Every token follows from the one before by one of two rules, chosen at random."""
    generator = torch.Generator().manual_seed(5)
    rules = torch.randint(0, 2, (STEPS, BATCH, LENGTH), generator=generator)
    made = torch.randint(0, VOCAB, (STEPS, BATCH, LENGTH), generator=generator)
    for t in range(1, LENGTH):
        before = made[:, :, t - 1]
        made[:, :, t] = torch.where(rules[:, :, t] == 0, before * 7 + 3, before + 11) % VOCAB
    return made


def train(model, recipe, batches):
    """bf16 weights are copies of fp32 ones, which AdamW updates."""
    model = copy.deepcopy(model).train()
    master = {name: p.detach().float().requires_grad_(True) for name, p in model.named_parameters()}
    if recipe != "bf16":
        config = dataclasses.replace(Float8LinearConfig.from_recipe_name(recipe), emulate=True)
        convert_to_float8_training(model, config=config, module_filter_fn=lambda module, name: name != "lm_head")
    optimizer = torch.optim.AdamW(master.values(), lr=1e-2, betas=(0.9, 0.95), eps=1e-8, weight_decay=0)
    found, losses = {}, []
    for batch in batches:
        logits = model(batch).logits.float()
        loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), batch[:, 1:].flatten())
        loss.backward()
        losses.append(loss.detach())
        for name, p in model.named_parameters():
            master[name].grad = p.grad.float()
            if len(losses) == 1 and name in GRADIENTS:
                found[f"{recipe}.grad.{name}"] = p.grad.float()
        optimizer.step()
        for name, p in model.named_parameters():
            p.grad = None
            p.data.copy_(master[name])
    return found | {f"{recipe}.losses": torch.stack(losses)}


def steps():
    model, batches = tiny_llama(), tokens()
    found = {"tokens": batches.int()}
    for recipe in ["bf16", *RECIPES]:
        found |= train(model, recipe, batches)
        print(recipe, found[f"{recipe}.losses"])
    return found


def main():
    OUT.mkdir(exist_ok=True)
    transformers.logging.set_verbosity_error()
    for name, made in (("casts", casts()), ("linears", linears()), ("steps", steps())):
        save_file({key: value.contiguous() for key, value in made.items()}, OUT / f"{name}.safetensors")
        print(name, (OUT / f"{name}.safetensors").stat().st_size, "bytes")


if __name__ == "__main__":
    main()
