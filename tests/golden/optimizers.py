"""Trajectories of every optimizer on two small parameters, computed by torch.optim, Composer, LLM Foundry and Muon's author's
formula in double precision.

Writes optim/trajectories.json: the gradients that the C++ test repeats, and for each case the weights after 1 and 20 steps.

    pip install torch==2.11.0; pip install --no-deps mosaicml==0.32.1 llm-foundry==0.22.0     # and what composer imports
    python tests/golden/optimizers.py
"""
import importlib.util
import json
import pathlib

import numpy
import torch
from composer.optim import DecoupledAdamW

OUT = pathlib.Path(__file__).parent / "optim" / "trajectories.json"
STEPS = 20
SHAPES = {"matrix": (5, 8), "tall": (9, 4), "norm": (7,)}
PEAK = 0.02


def foundry_lion():
    """LLM Foundry's optimizer, without the rest of LLM Foundry."""
    folder = pathlib.Path(importlib.util.find_spec("llmfoundry").submodule_search_locations[0])
    spec = importlib.util.spec_from_file_location("foundry_lion", folder / "optim" / "lion.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.DecoupledLionW


def factor(step):
    """A schedule: warm-up over 4 steps, then a line to 0.2."""
    return step / 4 if step < 4 else 1 - 0.8 * (step - 4) / 16


def numbers():
    """Weights and gradients, as float32 so that both sides start from the same values."""
    rng = numpy.random.Generator(numpy.random.PCG64(7))
    weights = {name: rng.normal(size=shape).astype(numpy.float32) for name, shape in SHAPES.items()}
    grads = [{name: rng.normal(size=shape).astype(numpy.float32) for name, shape in SHAPES.items()} for _ in range(STEPS)]
    return weights, grads


class Muon(torch.optim.Optimizer):
    """kellerjordan.github.io/posts/muon with the scales of torch.optim.Muon, in the dtype of the weights."""

    def __init__(self, params, lr, momentum, nesterov, ns_steps, weight_decay, adjust_lr):
        super().__init__(params, dict(lr=lr, momentum=momentum, nesterov=nesterov, ns_steps=ns_steps,
                                      weight_decay=weight_decay, adjust_lr=adjust_lr))

    @staticmethod
    def orthogonal(x, steps):
        a, b, c = 3.4445, -4.7750, 2.0315
        wide = x.T if x.shape[0] > x.shape[1] else x
        wide = wide / wide.norm().clamp(min=1e-7)
        for _ in range(steps):
            gram = wide @ wide.T
            wide = a * wide + (b * gram + c * gram @ gram) @ wide
        return wide.T if x.shape[0] > x.shape[1] else wide

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                buffer = self.state[p].setdefault("momentum_buffer", torch.zeros_like(p))
                buffer.lerp_(p.grad, 1 - group["momentum"])
                update = p.grad.lerp(buffer, group["momentum"]) if group["nesterov"] else buffer
                update = self.orthogonal(update, group["ns_steps"])
                rows, columns = p.shape
                scale = max(1, rows / columns)**0.5 if group["adjust_lr"] == "original" else 0.2 * max(rows, columns)**0.5
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_(update, alpha=-group["lr"] * scale)


def check_muon(weights, grads):
    """Our Muon against torch.optim.Muon, which iterates in bfloat16."""
    p, q = (torch.nn.Parameter(torch.tensor(weights["matrix"])) for _ in range(2))
    ours = Muon([p], 0.02, 0.95, True, 5, 0.1, "original")
    torchs = torch.optim.Muon([q], lr=0.02, momentum=0.95, weight_decay=0.1)
    for grad in grads:
        p.grad, q.grad = torch.tensor(grad["matrix"]), torch.tensor(grad["matrix"])
        ours.step()
        torchs.step()
    assert (p - q).abs().max() < 0.02, (p - q).abs().max()


def trajectory(make, weights, grads):
    """make(matrices, others) -> optimizers; their rates follow factor()."""
    params = {name: torch.nn.Parameter(torch.tensor(value, dtype=torch.float64)) for name, value in weights.items()}
    optimizers = make([params["matrix"], params["tall"]], [params["norm"]])
    peaks = [[group["lr"] for group in optimizer.param_groups] for optimizer in optimizers]
    after = {}
    for step, grad in enumerate(grads):
        for name, p in params.items():
            p.grad = torch.tensor(grad[name], dtype=torch.float64)
        for optimizer, lrs in zip(optimizers, peaks):
            for group, lr in zip(optimizer.param_groups, lrs):
                group["lr"] = lr * factor(step + 1)
            optimizer.step()
        if step + 1 in (1, STEPS):
            after[str(step + 1)] = {name: p.detach().flatten().tolist() for name, p in params.items()}
    return after


def cases():
    lion = foundry_lion()
    betas, eps = (0.8, 0.9), 1e-6

    def split(cls, decay, **arguments):
        """Matrices decay, the norm does not."""
        return lambda matrices, others: [cls([{"params": matrices, "weight_decay": decay},
                                              {"params": others, "weight_decay": 0.0}], lr=PEAK, **arguments)]

    def everything(cls, decay, **arguments):
        return lambda matrices, others: [cls(matrices + others, lr=PEAK, weight_decay=decay, **arguments)]

    adam = {"betas": betas, "eps": eps}
    yield "adamw", {"kind": "adamw", "weight_decay": 0.3, **adam}, split(torch.optim.AdamW, 0.3, **adam)
    yield ("adamw, all decay", {"kind": "adamw", "weight_decay": 0.3, "decay_mask": "all", **adam},
           everything(torch.optim.AdamW, 0.3, **adam))
    yield ("decoupled_adamw", {"kind": "decoupled_adamw", "weight_decay": 0.01, "decay_mask": "all", **adam},
           everything(DecoupledAdamW, 0.01, **adam))
    yield ("decoupled_adamw, matrices decay", {"kind": "decoupled_adamw", "weight_decay": 0.01, **adam},
           split(DecoupledAdamW, 0.01, **adam))
    yield ("decoupled_lionw", {"kind": "decoupled_lionw", "weight_decay": 0.01, "decay_mask": "all", "betas": betas},
           everything(lion, 0.01, betas=betas))
    # Lion proper decays by lr x weight_decay: the decoupled one with peak x weight_decay.
    yield ("lion", {"kind": "lion", "weight_decay": 0.5, "decay_mask": "all", "betas": betas},
           everything(lion, 0.5 * PEAK, betas=betas))
    yield ("sgd", {"kind": "sgd", "weight_decay": 0.1, "decay_mask": "all"}, everything(torch.optim.SGD, 0.1))
    yield ("sgd with momentum", {"kind": "sgd", "momentum": 0.9, "weight_decay": 0.1},
           split(torch.optim.SGD, 0.1, momentum=0.9))
    yield ("sgd with Nesterov's momentum", {"kind": "sgd", "momentum": 0.9, "nesterov": True},
           everything(torch.optim.SGD, 0.0, momentum=0.9, nesterov=True))
    for scale in ["original", "match_rms_adamw"]:
        for nesterov in [True, False]:
            config = {"kind": "muon", "momentum": 0.9, "nesterov": nesterov, "adjust_lr": scale, "weight_decay": 0.2,
                      "adamw_lr": 0.005, **adam}

            def make(matrices, others, scale=scale, nesterov=nesterov):
                return [Muon(matrices, PEAK, 0.9, nesterov, 5, 0.2, scale),
                        torch.optim.AdamW(others, lr=0.005, weight_decay=0.0, **adam)]
            yield f"muon {scale}{' nesterov' if nesterov else ''}", config, make


def main():
    import composer
    weights, grads = numbers()
    check_muon(weights, grads)
    texts = []
    for name, config, make in cases():
        texts.append(json.dumps({"name": name, "optimizer": {**config, "lr": PEAK},
                                 "after": trajectory(make, weights, grads)}))
    flat = lambda values: {name: value.flatten().tolist() for name, value in values.items()}
    head = {"made_by": f"torch {torch.__version__}, mosaicml {composer.__version__}, llm-foundry 0.22.0",
            "factors": [factor(step + 1) for step in range(STEPS)], "shapes": SHAPES, "weights": flat(weights),
            "grads": [flat(grad) for grad in grads]}
    lines = [f'"{key}": {json.dumps(value)}' for key, value in head.items()]
    OUT.write_text("{" + ",\n".join(lines) + ',\n"cases": [\n' + ",\n".join(texts) + "\n]}\n")


if __name__ == "__main__":
    main()
