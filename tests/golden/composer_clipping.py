"""Gradients before and after Composer's clipping by value and adaptively.

Writes optim/clipping.json: parameters with shape, weights and gradients, and for each case {clip, gradients} what Composer
leaves of them. Numbers are fp32.
Made with mosaicml 0.32.1 and torch 2.11.0:
    pip install --no-deps mosaicml==0.32.1      # and what composer imports
    python tests/golden/composer_clipping.py
"""
import json
import pathlib

import torch
from composer.algorithms.gradient_clipping.gradient_clipping import apply_gradient_clipping

OUT = pathlib.Path(__file__).parent / "optim" / "clipping.json"
CASES = [("value", 0.7), ("value", 0.05), ("adaptive", 0.3), ("adaptive", 0.01), ("adaptive", 50.0)]


def parameters():
    torch.manual_seed(3)
    shapes = {"matrix": (3, 4), "vector": (5,), "zeros": (4,), "rows": (4, 2)}
    found = {}
    for name, shape in shapes.items():
        weight = torch.zeros(shape) if name == "zeros" else torch.randn(shape)
        gradient = torch.randn(shape)
        if name == "rows":
            weight[1] = 0
            gradient[2] = 0
            weight[3] = gradient[3] = 0
        found[name] = (weight, gradient)
    return found


def clipped(kind, threshold):
    model = torch.nn.Module()
    for name, (weight, gradient) in parameters().items():
        model.register_parameter(name, torch.nn.Parameter(weight.clone()))
        getattr(model, name).grad = gradient.clone()
    apply_gradient_clipping(model, kind, threshold, fsdp_enabled=False)
    return {name: p.grad.flatten().tolist() for name, p in model.named_parameters()}


def main():
    given = {name: {"shape": list(w.shape), "weights": w.flatten().tolist(), "gradients": g.flatten().tolist()}
             for name, (w, g) in parameters().items()}
    cases = [{"clip": {kind: threshold}, "gradients": clipped(kind, threshold)} for kind, threshold in CASES]
    lines = ",\n".join(json.dumps(case) for case in cases)
    OUT.write_text(f'{{"parameters": {json.dumps(given)},\n"cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
