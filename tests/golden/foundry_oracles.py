"""What LLM Foundry's own MPT computes for the options that transformers' MPT lacks: losses, logits and every gradient.

Writes foundry_oracles/<case>/: config.json and model.safetensors (bf16) as LLM Foundry names them, and oracle.safetensors with ids,
labels, sequence_id where documents are packed, losses by row, logits of the first row, and grad.<name>.

Each case is a tiny MPT in fp32 with attn_impl torch, weights that bf16 holds, and a batch of a length that no tile divides with
labels that are ignored here and there. rope_impl dail is flash-attn's own class; its kernel, which runs on a GPU only, is written
out here as one line of torch.
Made with llm-foundry 0.22.0, transformers 4.51.3 and torch 2.11.0:
  python3 -m venv /opt/foundry
  /opt/foundry/bin/pip install --no-deps llm-foundry==0.22.0 mosaicml==0.32.1 transformers==4.51.3 tokenizers==0.21.4 \\
    huggingface_hub==0.36.0 catalogue omegaconf einops antlr4-python3-runtime==4.9.3      # torch, and what they import
  tar xzf flash_attn-2.7.4.post1.tar.gz -C /opt/flash-attn                # PyPI's source: nothing of it is built
  FLASH_ATTN=/opt/flash-attn/flash_attn-2.7.4.post1 /opt/foundry/bin/python tests/golden/foundry_oracles.py [CASE ...]
"""
import importlib.machinery
import json
import os
import pathlib
import sys
import types
import warnings

import torch
import transformers
from safetensors.torch import save_file

warnings.simplefilter("ignore")
OUT = pathlib.Path(__file__).parent / "foundry_oracles"
VOCAB, BATCH, LENGTH = 41, 2, 37


def rotate(x, cos, sin, inplace=False, conjugate=False, **_):
    """What flash-attn's kernel computes. x: (batch, sequence, heads, width)."""
    cos, sin = (t[:x.shape[1], None].repeat(1, 1, 2) for t in (cos, -sin if conjugate else sin))
    low, high = x.chunk(2, -1)
    turned = x * cos + torch.cat((-high, low), -1) * sin
    return x.copy_(turned) if inplace else turned


def flash_attn_without_kernels():
    root = pathlib.Path(os.environ["FLASH_ATTN"]) / "flash_attn"
    for name in ["", ".layers", ".ops", ".ops.triton"]:
        package = types.ModuleType("flash_attn" + name)
        package.__path__ = [str(root.joinpath(*name.split(".")[1:]))]
        package.__version__ = "2.7.4.post1"
        package.__spec__ = importlib.machinery.ModuleSpec(package.__name__, None)
        sys.modules[package.__name__] = package
    kernel = types.ModuleType("flash_attn.ops.triton.rotary")
    kernel.apply_rotary = rotate
    sys.modules[kernel.__name__] = kernel


def foundry_mpt(flash_attn=True):
    """LLM Foundry's model without the rest of LLM Foundry: its packages would import data sets, loggers and the cloud."""
    root = next(pathlib.Path(p) / "llmfoundry" for p in sys.path if (pathlib.Path(p) / "llmfoundry").is_dir())
    for name in ["llmfoundry", "llmfoundry.models", "llmfoundry.utils"]:
        package = types.ModuleType(name)
        package.__path__ = [str(root.joinpath(*name.split(".")[1:]))]
        sys.modules[name] = package
    if flash_attn:
        flash_attn_without_kernels()
    from llmfoundry.models.mpt.configuration_mpt import MPTConfig
    from llmfoundry.models.mpt.modeling_mpt import MPTForCausalLM
    return MPTConfig, MPTForCausalLM


def rope(kind, **more):
    return {"rope": True, "rope_impl": "hf", "rope_theta": 1000, "rope_hf_config": {"type": kind, "factor": 1.0, **more}}


def dail(kind="original", **more):
    return {"rope": True, "rope_impl": "dail", "rope_theta": 1000, "rope_dail_config": {"type": kind, "pos_idx_in_fp32": True, **more}}


def blocks(order, repeat=1, **kinds):
    """block_overrides: names and (name, repeat) in order; nested lists of them with a repeat."""
    def one(item):
        if isinstance(item, str):
            return {"name": item}
        inner, times = item
        return {"name" if isinstance(inner, str) else "order": inner if isinstance(inner, str) else [one(i) for i in inner], "repeat": times}
    return {"block_overrides": {"order": [one(item) for item in order], "repeat": repeat,
                                "overrides": {name: {"attn_config": keys} for name, keys in kinds.items()}}}


def cases():
    """Name, attn_config, and the rest of the config."""
    gqa = {"attn_type": "grouped_query_attention", "kv_n_heads": 2}
    yield "learned", {}, {}
    yield "untied", {}, {"tie_word_embeddings": False}
    yield "rope", rope("no_scaling"), {}
    yield "rope_linear", rope("linear", factor=3.0), {}
    yield "rope_dynamic", rope("dynamic", factor=2.0), {}
    yield "rope_llama3", rope("llama3", factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0,
                              original_max_position_embeddings=16), {"d_model": 32, "n_heads": 4}
    yield "alibi_6_heads", {"alibi": True, "alibi_bias_max": 5}, {"d_model": 24, "n_heads": 6}
    yield "gqa", gqa, {}
    yield "mqa", {"attn_type": "multiquery_attention"}, {}
    yield "clip_qkv", {"clip_qkv": 0.7, "alibi": True}, {}
    yield "qk_ln", {"qk_ln": True, **gqa}, {}
    yield "qk_gn_rms", {"qk_gn": True, **rope("no_scaling"), **gqa}, {"norm_type": "rmsnorm"}
    yield "qk_ln_low_precision_rms", {"qk_ln": True}, {"norm_type": "low_precision_rmsnorm", "no_bias": True}
    yield "qk_gn_eps", {"qk_gn": True, "alibi": True}, {"norm_eps": 0.1}
    yield "layernorm", {}, {"norm_type": "layernorm", "norm_eps": 1e-3}
    yield "no_bias", {"alibi": True}, {"no_bias": True}
    yield "attention_bias_alone", {}, {"no_bias": True, "attention_bias": True}
    yield "softmax_scale", {"softmax_scale": 0.9}, {}
    yield "attn_softcap", {"attn_logit_softcapping": 1.2, "alibi": True}, {}
    yield "final_softcap", {}, {"final_logit_softcapping": 1.5, "logit_scale": 0.6}
    yield "logit_scale", {}, {"logit_scale": "inv_sqrt_d_model", "tie_word_embeddings": False}
    yield "sliding_window", {"sliding_window_size": 5, **rope("no_scaling")}, {}
    yield "embedding_fraction", {}, {"embedding_fraction": 0.1}
    yield "glu_silu", {}, {"ffn_config": {"ffn_type": "mptglu", "ffn_hidden_size": 40, "ffn_act_fn": {"name": "silu"}}}
    yield "gelu_tanh", {}, {"ffn_config": {"ffn_act_fn": {"name": "gelu", "approximate": "tanh"}}}
    yield "relu", {}, {"ffn_config": {"ffn_act_fn": {"name": "relu"}}}
    yield "quick_gelu", {}, {"ffn_config": {"ffn_act_fn": {"name": "quick_gelu"}}}
    yield "packed", {"attn_uses_sequence_id": True}, {}
    yield "packed_alibi", {"attn_uses_sequence_id": True, "alibi": True}, {}
    yield "packed_rope_window", {"attn_uses_sequence_id": True, "sliding_window_size": 4, **rope("no_scaling")}, {}
    warm = {"attn_temperature_tuning": {"floor_scale": 4, "attn_scale": 0.5}}
    rotated = {"learned_pos_emb": False}  # LLM Foundry looks at it before rope switches it off
    yield "temperature", warm, {}
    yield "temperature_rope", {**warm, **rope("no_scaling"), **gqa}, {}
    yield "blocks_window", {}, {"n_layers": 4, **blocks(["near", "default"], 2, near={"sliding_window_size": 5})}
    yield "blocks_nope", rope("no_scaling"), {
        "n_layers": 3, **rotated, **blocks(["default", "far", "near"], far={"nope": True}, near={
            "sliding_window_size": 3, "attn_temperature_tuning": {"attn_scale": 0.7, "floor_scale": 6}})}
    yield "blocks_temperature", {**warm, "alibi": True}, {
        "n_layers": 3, **blocks(["cool", "default", "slow"], cool={"attn_temperature_tuning": {"attn_scale": 0.0}},
                                slow={"attn_temperature_tuning": {"floor_scale": 9}})}
    yield "reuse_kv", gqa, {"n_layers": 2, **blocks(["default", "again"], again={"reuse_kv_layer_idx": -1})}
    yield "reuse_kv_far_rope", {**rope("no_scaling"), **gqa, "qk_gn": True, "clip_qkv": 0.9}, {
        "n_layers": 4, **rotated, **blocks(["default", "near", "far", "far_nope"], near={"sliding_window_size": 4}, far={
            "reuse_kv_layer_idx": -2, "sliding_window_size": 6}, far_nope={"reuse_kv_layer_idx": -2, "nope": True})}
    yield "reuse_kv_chains", {**rope("no_scaling"), "qk_ln": True, **warm}, {
        "n_layers": 6, "no_bias": True, **blocks(["near", ("again", 2)], 2, near={"sliding_window_size": 5}, again={"reuse_kv_layer_idx": -1})}
    yield "reuse_kv_nested", {"alibi": True, "attn_type": "multiquery_attention"}, {
        "n_layers": 7, "d_model": 8, "n_heads": 2, **blocks(
            ["default", ([([("near", 1), ("near_again", 1)], 1), "far_again"], 2)], near={"sliding_window_size": 3},
            near_again={"sliding_window_size": 3, "reuse_kv_layer_idx": -1}, far_again={"reuse_kv_layer_idx": -3})}
    apart = {"fused_qkv": False}
    yield "reuse_kv_x", {**apart, **rope("no_scaling"), **gqa}, {
        "n_layers": 3, **rotated, **blocks(["default", "input", "far_input"], input={"reuse_kv_x_layer_idx": -1, "sliding_window_size": 4},
                                           far_input={"reuse_kv_x_layer_idx": -1, "nope": True})}
    yield "reuse_kv_x_and_kv", {**apart, "alibi": True, "qk_ln": True, "clip_qkv": 0.8}, {
        "n_layers": 5, "norm_type": "rmsnorm", **blocks(
            ["default", "input", "again", "default", "far_input"], input={"reuse_kv_x_layer_idx": -1},
            again={"reuse_kv_layer_idx": -1}, far_input={"reuse_kv_x_layer_idx": -3})}


    yield "rope_dail", {**dail(), **gqa}, {}
    yield "xpos", dail("xpos", xpos_scale_base=512), {}
    yield "xpos_gqa_window", {**dail("xpos", xpos_scale_base=6), **gqa, "qk_ln": True, "sliding_window_size": 7}, {"d_model": 24, "n_heads": 6}
    yield "xpos_reuse_kv", {**dail("xpos", xpos_scale_base=9), **gqa, **warm}, {
        "n_layers": 3, **rotated, **blocks(["default", "again", "far"], again={"reuse_kv_layer_idx": -1}, far={"nope": True})}
    wide = {"head_dim": 8}
    yield "head_dim", {"fused_qkv": False}, wide
    yield "head_dim_rope_gqa", {"fused_qkv": False, **rope("no_scaling"), **gqa, "qk_gn": True}, wide
    yield "unfused_mqa", {"fused_qkv": False, "attn_type": "multiquery_attention", "alibi": True, "qk_ln": True}, {}


def batch(generator):
    ids = torch.randint(0, VOCAB, (BATCH, LENGTH), generator=generator)
    labels = torch.where(torch.rand(ids.shape, generator=generator) < 0.2, -100, ids)
    document = torch.stack([torch.repeat_interleave(torch.arange(4), torch.tensor(lengths))
                            for lengths in [[1, 12, 20, 4], [30, 2, 1, 4]]])
    return ids, labels, document


def awkward_weights(model, generator):
    """Far from linear, and none 0 or 1: small weights would hide wrong terms."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            spread = 0.3 if p.dim() == 2 else 0.2
            start = 1.0 if "norm" in name or "_ln." in name else 0.0
            if name.endswith("bias"):
                start = 0.0
            value = start + spread * torch.randn(p.shape, generator=generator)
            p.copy_(value.bfloat16().float())


def computed(model, ids, labels, **inputs):
    logits = model(input_ids=ids, **inputs).logits
    rows = torch.nn.functional.cross_entropy(logits.double()[:, :-1].transpose(1, 2), labels[:, 1:], reduction="none").sum(1)
    rows.sum().backward()
    found = {"losses": rows.detach(), "logits": logits[0].detach().float().contiguous()}
    return found | {f"grad.{name}": p.grad.float().contiguous() for name, p in model.named_parameters()}


def main():
    MPTConfig, MPTForCausalLM = foundry_mpt()
    transformers.logging.set_verbosity_error()
    wanted = sys.argv[1:]
    for number, (name, attention, rest) in enumerate(cases()):
        if wanted and name not in wanted:
            continue
        given = {"d_model": 16, "n_heads": 4, "n_layers": 2, "vocab_size": VOCAB, "max_seq_len": LENGTH, "expansion_ratio": 2,
                 "attn_config": {"attn_impl": "torch", **attention}, **rest}
        generator = torch.Generator().manual_seed(number)
        model = MPTForCausalLM(MPTConfig(**json.loads(json.dumps(given)))).train()
        awkward_weights(model, generator)
        ids, labels, document = batch(generator)
        inputs = {"sequence_id": document} if attention.get("attn_uses_sequence_id") else {}
        found = computed(model, ids, labels, **inputs)
        found |= {"ids": ids.int(), "labels": labels.int()} | {key: value.int() for key, value in inputs.items()}
        folder = OUT / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(
            json.dumps({"architectures": ["MPTForCausalLM"], "model_type": "mpt", **given}, indent=1) + "\n")
        weights = {key: p.detach().bfloat16().contiguous() for key, p in model.named_parameters()}
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        save_file(found, folder / "oracle.safetensors")
        print(name, float(found["losses"].sum()))


if __name__ == "__main__":
    main()
