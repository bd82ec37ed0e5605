"""Rotary frequencies as transformers computes them, for every kind of scaling that Tycho knows.

Writes rope/frequencies.json: cases of {head_dim, theta, seq, scaling, frequencies}. Made with transformers 5.23.0 and
torch 2.11.0:
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
CASES = [
    (64, 10000.0, 2048, {"type": "none"}),
    (128, 500000.0, 4096, {"type": "linear", "factor": 4.0}),
    (22, 10000.0, 128, {"type": "linear", "factor": 2.5}),
    (64, 10000.0, 2048, {"type": "dynamic", "factor": 2.0, "original_max_seq_len": 2048}),
    (64, 10000.0, 5000, {"type": "dynamic", "factor": 2.0, "original_max_seq_len": 2048}),
    (128, 500000.0, 8192, LLAMA3),
    (64, 500000.0, 4096, {**LLAMA3, "factor": 32.0}),
    (16, 10000.0, 64, {**LLAMA3, "low_freq_factor": 0.5, "high_freq_factor": 16.0, "original_max_seq_len": 100}),
]


def frequencies(head_dim, theta, seq, scaling):
    parameters = {"rope_type": "default" if scaling["type"] == "none" else scaling["type"], "rope_theta": theta}
    parameters |= {key: value for key, value in scaling.items() if "factor" in key}
    trained = scaling.get("original_max_seq_len", seq)
    if scaling["type"] == "llama3":
        parameters["original_max_position_embeddings"] = trained
    # transformers measures dynamic scaling by max_position_embeddings, and wants more of those than llama3's original.
    longest = 2 * trained if scaling["type"] == "llama3" else trained
    config = transformers.LlamaConfig(hidden_size=2 * head_dim, num_attention_heads=2, head_dim=head_dim,
                                      max_position_embeddings=longest, rope_parameters=parameters)
    if scaling["type"] == "none":
        result, _ = LlamaRotaryEmbedding.compute_default_rope_parameters(config)
    else:
        result, _ = ROPE_INIT_FUNCTIONS[scaling["type"]](config, torch.device("cpu"), seq_len=seq)
    return result.tolist()


def main():
    cases = [{"head_dim": head_dim, "theta": theta, "seq": seq, "scaling": scaling,
              "frequencies": frequencies(head_dim, theta, seq, scaling)} for head_dim, theta, seq, scaling in CASES]
    OUT.parent.mkdir(exist_ok=True)
    versions = {"transformers": transformers.__version__, "torch": torch.__version__.split("+")[0]}
    lines = ",\n".join(json.dumps(case) for case in cases)
    OUT.write_text(f'{{"versions": {json.dumps(versions)},\n"cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
