"""What LLM Foundry's own init functions make of init_config: deviation, smallest and largest value of each parameter.

Writes foundry_inits.json: [{"init_config": ..., "params": {name: [std, min, max]}}] for tiny MPTs, whose parameters are large enough
for a deviation within a few per cent. Made as foundry_oracles.py says:
  /opt/foundry/bin/python tests/golden/foundry_inits.py
"""
import json
import pathlib

import torch

from foundry_oracles import foundry_mpt

SHAPE = {"d_model": 64, "n_heads": 4, "n_layers": 3, "vocab_size": 500, "max_seq_len": 100}
CASES = [
    {"name": "kaiming_normal_"},
    {"name": "kaiming_uniform_", "fan_mode": "fan_out"},
    {"name": "kaiming_normal_", "fan_mode": "fan_out", "init_nonlinearity": "tanh"},
    {"name": "kaiming_normal_", "init_nonlinearity": "leaky_relu", "init_gain": 0.5},
    {"name": "kaiming_normal_", "init_nonlinearity": "selu", "init_div_is_residual": False},
    {"name": "kaiming_uniform_", "init_nonlinearity": "linear", "init_div_is_residual": 3.0},
    {"name": "xavier_normal_", "init_gain": 0.7, "emb_init_std": 0.3},
    {"name": "xavier_uniform_", "init_gain": 1.0, "emb_init_uniform_lim": 0.2},
    {"name": "baseline_", "init_std": 0.05, "emb_init_uniform_lim": [-0.1, 0.5]},
    {"name": "small_init_"},
    {"name": "neox_init_"},
    {"name": "default_"},
]


def main():
    config_type, model_type = foundry_mpt()
    results = []
    for case in CASES:
        torch.manual_seed(1)
        usual = {"fan_mode": "fan_in", "init_nonlinearity": "relu", "init_div_is_residual": True, "init_std": None, "init_gain": 0.0,
                 "emb_init_std": None, "emb_init_uniform_lim": None}
        model = model_type(config_type(**SHAPE, attn_config={"attn_impl": "torch"}, init_config={**usual, **case}, init_device="cpu"))
        params = {name: [float(f"{x:.6g}") for x in (p.std(correction=0), p.min(), p.max())] for name, p in model.named_parameters()}
        results.append({"init_config": {**usual, **case}, "params": params})
    lines = ",\n".join(json.dumps(one) for one in results)
    (pathlib.Path(__file__).parent / "foundry_inits.json").write_text(f"[\n{lines}\n]\n")


main()
