"""Rotary frequencies and attention factors as transformers computes them, for every kind of scaling that Tycho knows.

Writes rope/frequencies.json: cases of {rotary_dim, theta, seq, scaling, attention_factor, frequencies}. transformers
computes in fp32; here the names of fp32 in torch stand for fp64 meanwhile, so that formulas are compared and not
roundings. Made with transformers 5.23.0 and torch 2.11.0:
    python tests/golden/rope.py
"""
import json
import pathlib

import torch
import transformers
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

OUT = pathlib.Path(__file__).parent / "rope" / "frequencies.json"
LLAMA3 = {"type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_seq_len": 8192}
YARN = {"type": "yarn", "factor": 16.0, "original_max_seq_len": 16384}
LONGROPE = {"type": "longrope", "factor": 32.0, "original_max_seq_len": 64,
            "short_factor": [1 + 0.01 * i for i in range(12)], "long_factor": [1.05 * 1.3**i for i in range(12)]}
CASES = [
    (64, 10000.0, 2048, {"type": "none"}),
    (128, 500000.0, 4096, {"type": "linear", "factor": 4.0}),
    (22, 10000.0, 128, {"type": "linear", "factor": 2.5}),
    (64, 10000.0, 2048, {"type": "dynamic", "factor": 2.0, "original_max_seq_len": 2048}),
    (64, 10000.0, 5000, {"type": "dynamic", "factor": 2.0, "original_max_seq_len": 2048}),
    (128, 500000.0, 8192, LLAMA3),
    (64, 500000.0, 4096, {**LLAMA3, "factor": 32.0}),
    (16, 10000.0, 64, {**LLAMA3, "low_freq_factor": 0.5, "high_freq_factor": 16.0, "original_max_seq_len": 100}),
    # Ministral 3; Qwen's recipe for long texts; OLMo 3's.
    (128, 1000000.0, 16384, {**YARN, "mscale": 1.0, "mscale_all_dim": 1.0}),
    (64, 1000000.0, 4096, {**YARN, "factor": 4.0, "original_max_seq_len": 32768}),
    (64, 500000.0, 8192, {**YARN, "factor": 8.0, "original_max_seq_len": 8192, "attention_factor": 1.2079441541679836}),
    (24, 10000.0, 99, {**YARN, "truncate": False, "beta_fast": 8.0, "beta_slow": 0.25, "original_max_seq_len": 100}),
    (24, 10000.0, 99, {**YARN, "mscale": 0.707, "mscale_all_dim": 1.5}),
    # Ramps that begin before the first pair, end beyond the last, and have no width.
    (8, 10000.0, 16, {**YARN, "original_max_seq_len": 16}),
    (8, 2.0, 16, {**YARN, "original_max_seq_len": 16384}),
    (24, 10000.0, 99, {**YARN, "truncate": False, "beta_fast": 2.0, "beta_slow": 2.0}),
    (24, 10000.0, 64, LONGROPE),
    (24, 10000.0, 65, LONGROPE),
    (24, 250000.0, 65, {**LONGROPE, "attention_factor": 1.5}),
    (24, 10000.0, 1, {**LONGROPE, "factor": 1.0}),
]


def config_of(rotary_dim, theta, seq, scaling):
    parameters = {"rope_type": "default" if scaling["type"] == "none" else scaling["type"], "rope_theta": theta}
    parameters |= {key: value for key, value in scaling.items() if key not in ("type", "original_max_seq_len")}
    trained = scaling.get("original_max_seq_len", seq)
    if scaling["type"] not in ("none", "linear", "dynamic"):
        parameters["original_max_position_embeddings"] = trained
    # transformers measures dynamic scaling by max_position_embeddings, and wants more of those than llama3's original.
    longest = 2 * trained if scaling["type"] == "llama3" else trained
    return transformers.LlamaConfig(hidden_size=2 * rotary_dim, num_attention_heads=2, head_dim=rotary_dim,
                                    max_position_embeddings=longest, rope_parameters=parameters)


def frequencies(rotary_dim, theta, seq, scaling):
    config = config_of(rotary_dim, theta, seq, scaling)
    if scaling["type"] == "none":
        return LlamaRotaryEmbedding.compute_default_rope_parameters(config)
    return ROPE_INIT_FUNCTIONS[scaling["type"]](config, torch.device("cpu"), seq_len=seq)


def case(rotary_dim, theta, seq, scaling):
    names = torch.float, torch.float32, torch.Tensor.float
    torch.float = torch.float32 = torch.float64
    torch.Tensor.float = torch.Tensor.double
    radians, factor = frequencies(rotary_dim, theta, seq, scaling)
    torch.float, torch.float32, torch.Tensor.float = names
    assert radians.dtype == torch.float64
    return {"rotary_dim": rotary_dim, "theta": theta, "seq": seq, "scaling": scaling, "attention_factor": factor,
            "frequencies": radians.tolist()}


def main():
    OUT.parent.mkdir(exist_ok=True)
    versions = {"transformers": transformers.__version__, "torch": torch.__version__.split("+")[0]}
    lines = ",\n".join(json.dumps(case(*given)) for given in CASES)
    OUT.write_text(f'{{"versions": {json.dumps(versions)},\n"cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
