"""Twenty steps of published optimizers on a tiny model, for the optimizers that recipes write in Lua.

Writes optim/published/: problem.json, the model's first weights and its batches, and for each optimizer NAME.json with
its cases: hyperparameters, the loss before each step, the weights after some steps (for Schedule-Free also those of
evaluation), and `rounding`: how far fp32 moves the weights and losses from the same code in double precision.
README.md there says which habits of the references the cases pin.

The references are read at the commits below from clones in a folder that is no part of this tree:
  for r in apple/ml-ademamix kyleliang919/C-Optim zichongli5/NorMuon nikhilvyas/SOAP facebookresearch/schedule_free; do
    git clone https://github.com/$r CLONES/$(basename $r); done
  pip install torch==2.11.0 numpy==2.4.6
  python tests/golden/published_optimizers.py CLONES
"""
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy
import torch

OUT = pathlib.Path(__file__).parent / "optim" / "published"
COMMITS = {
    "ml-ademamix": "c3d73c09f1287e5c33b95189bb0aa7de0a5a7667",
    "C-Optim": "2c0517c4db2e50b56d389ba4803eab1f4b3b8ae3",
    "NorMuon": "d45c9a4280d758e2cf0b2b8333765d040e953937",
    "SOAP": "a1e553530fde97d0e6b307d7c82ac6d38b072340",
    "schedule_free": "70785b53e778d0e872c0bbb75ff4ee54ee10c291",
}
# Those of a Qwen3 of width 8 with three heads of 4, so that a recipe has an update for each.
SHAPES = {"embedding": (16, 8), "tall": (12, 8), "wide": (8, 12), "gain": (8,), "square": (8, 8)}
HIDDEN = ("tall", "wide", "square")
STEPS, BATCH, KEPT = 20, 12, (1, 2, 10, 20)


def problem():
    """First weights and batches; three decimals, so that both sides read the same numbers."""
    rng = numpy.random.Generator(numpy.random.PCG64(71))
    weights = {name: (rng.normal(size=shape) * 0.5).round(3) for name, shape in SHAPES.items()}
    weights["gain"] = weights["gain"] + 1
    batches = [{"ids": rng.permutation(SHAPES["embedding"][0])[:BATCH].tolist(),
                "targets": rng.normal(size=(BATCH, SHAPES["square"][0])).round(3)} for _ in range(STEPS)]
    return weights, batches


def loss_of(params, batch):
    """Half of the mean over rows of the squared distance between targets and a linear map of embeddings."""
    x = params["embedding"][batch["ids"]] @ params["tall"].T @ params["wide"].T
    y = x * params["gain"] @ params["square"].T
    return 0.5 * (y - torch.tensor(batch["targets"], dtype=y.dtype)).square().sum() / BATCH


def factor(step):
    """A schedule: warm-up over 4 steps, then a line to 0.2."""
    return step / 4 if step < 4 else 1 - 0.8 * (step - 4) / 16


def constant(step):
    return 1


class Published:
    """Modules of the references, loaded from their commits."""

    def __init__(self, clones, folder):
        self.clones, self.folder = pathlib.Path(clones), pathlib.Path(folder)

    def text(self, repository, path):
        show = ["git", "-C", str(self.clones / repository), "show", f"{COMMITS[repository]}:{path}"]
        return subprocess.run(show, check=True, capture_output=True, text=True).stdout

    def module(self, repository, path, change=("", "", 0)):
        """The module at `path`; `change` replaces a text that stands there so many times."""
        text = self.text(repository, path)
        if change[0]:
            assert text.count(change[0]) == change[2], change
            text = text.replace(change[0], change[1])
        name = pathlib.Path(path).stem
        file = self.folder / repository / f"{name}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        spec = importlib.util.spec_from_file_location(f"published_{repository.replace('-', '_')}.{name}", file)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return module


def trajectory(make, schedule, dtype, first, batches):
    """Losses before each step and the weights after the steps of KEPT."""
    torch.set_default_dtype(dtype)
    params = {name: torch.nn.Parameter(torch.tensor(value, dtype=dtype)) for name, value in first.items()}
    optimizer = make(params)
    peaks = [group["lr"] for group in optimizer.param_groups]
    result = {"losses": [], "after": {}, "evaluated": {}}
    kept = lambda: {name: p.detach().double().flatten().tolist() for name, p in params.items()}
    for step, batch in enumerate(batches, 1):
        if hasattr(optimizer, "train"):
            optimizer.train()
        for group, peak in zip(optimizer.param_groups, peaks):
            group["lr"] = peak * schedule(step)
        optimizer.zero_grad()
        loss = loss_of(params, batch)
        loss.backward()
        result["losses"].append(loss.item())
        optimizer.step()
        if step in KEPT:
            result["after"][str(step)] = kept()
            if hasattr(optimizer, "eval"):
                optimizer.eval()
                result["evaluated"][str(step)] = kept()
    if not result["evaluated"]:
        del result["evaluated"]
    return result


def distance(a, b):
    """Largest distance of weights and of losses."""
    weights = max(abs(x - y) for kind in ("after", "evaluated") for step, values in a.get(kind, {}).items()
                  for name, numbers in values.items() for x, y in zip(numbers, b[kind][step][name]))
    return {"weights": weights, "losses": max(abs(x - y) for x, y in zip(a["losses"], b["losses"]))}


def cases(published):
    """Name of the file, of the case, its schedule, its hyperparameters, and params -> optimizer."""
    values = lambda params: list(params.values())

    def simple(cls, **arguments):
        return arguments, lambda params: cls(values(params), **arguments)

    adam = dict(betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
    yield "adamw", "adamw", factor, *simple(torch.optim.AdamW, lr=0.02, **adam)
    lion = published.module("C-Optim", "lion.py").Lion
    yield "lion", "lion", factor, *simple(lion, lr=0.005, betas=(0.9, 0.99), weight_decay=0.1)

    ademamix = published.module("ml-ademamix", "pytorch/ademamix.py").AdEMAMix
    plain = dict(lr=0.01, betas=(0.9, 0.99, 0.999), alpha=5.0, eps=1e-8, weight_decay=0.1)
    yield "ademamix", "no warm-up", factor, *simple(ademamix, **plain)
    yield "ademamix", "warm-up", factor, *simple(ademamix, **plain, beta3_warmup=12, alpha_warmup=15)

    published.module("C-Optim", "opt_utils.py")
    cautious = published.module("C-Optim", "c_adamw.py").AdamW
    arguments = dict(lr=0.02, betas=(0.9, 0.95), eps=1e-6, weight_decay=0.1)
    make = lambda params: cautious(values(params), **arguments, no_deprecation_warning=True, foreach=False)
    yield "cautious_adamw", "cautious_adamw", factor, arguments, make

    # The published code orthogonalises in bfloat16, whose rounding depends on the machine.
    normuon = published.module("NorMuon", "normuon.py", ("X = G.bfloat16()", "X = G", 1))
    matrices = dict(lr=0.02, momentum=0.95, beta2=0.9, weight_decay=0.1)
    others = dict(lr=0.01, betas=(0.9, 0.95), eps=1e-10, weight_decay=0.0)
    groups = lambda params: [
        dict(params=[params[name] for name in HIDDEN], use_muon=True, **matrices),
        dict(params=[p for name, p in params.items() if name not in HIDDEN], use_muon=False, **others)]
    yield ("normuon", "normuon", factor, {**matrices, "others": others},
           lambda params: normuon.SingleDeviceNorMuonWithAuxAdam(groups(params)))

    # The published code decomposes in fp32 always.
    soap = published.module("SOAP", "soap.py", (".data.float()", ".data", 5)).SOAP
    plain = dict(lr=0.01, betas=(0.95, 0.9), eps=1e-8, weight_decay=0.1, max_precond_dim=8)
    for name, more in (("every fourth step", dict(shampoo_beta=0.8, precondition_frequency=4)),
                       ("every step", dict(shampoo_beta=-1, precondition_frequency=1))):
        yield "soap", name, factor, *simple(soap, **plain, **more)

    free = published.module("schedule_free", "schedulefree/adamw_schedulefree.py").AdamWScheduleFree
    plain = dict(lr=0.02, betas=(0.9, 0.99), eps=1e-8, weight_decay=0.1)
    for name, schedule, more in (("warm-up", constant, {"warmup_steps": 5}),
                                 ("schedule and powers", factor, {"r": 1.0, "weight_lr_power": 1.0})):
        yield "schedule_free", name, schedule, *simple(free, **plain, **more)


def short(value):
    """Numbers with ten digits: what the tests need of a double."""
    if isinstance(value, float):
        return float(f"{value:.10g}")
    if isinstance(value, dict):
        return {key: short(item) for key, item in value.items()}
    return [short(item) for item in value] if isinstance(value, (list, tuple)) else value


def write(name, head, cases_of_name):
    lines = [f'"{key}": {json.dumps(short(value))}' for key, value in head.items()]
    texts = [json.dumps(short(case)) for case in cases_of_name]
    body = ',\n"cases": [\n' + ",\n".join(texts) + "\n]" if texts else ""
    (OUT / f"{name}.json").write_text("{" + ",\n".join(lines) + body + "}\n")


REFERENCES = {"adamw": "torch.optim.AdamW", "lion": "C-Optim", "ademamix": "ml-ademamix", "cautious_adamw": "C-Optim",
              "normuon": "NorMuon", "soap": "SOAP", "schedule_free": "schedule_free"}


def main():
    OUT.mkdir(exist_ok=True)
    first, batches = problem()
    plain = lambda values: {k: v.flatten().tolist() if hasattr(v, "flatten") else v for k, v in values.items()}
    write("problem", {"shapes": SHAPES, "hidden": HIDDEN, "weights": plain(first),
                      "factors": [factor(step) for step in range(1, STEPS + 1)],
                      "batches": [plain(batch) for batch in batches]}, [])
    files = {}
    with tempfile.TemporaryDirectory() as folder:
        for file, name, schedule, arguments, make in cases(Published(sys.argv[1], folder)):
            result = trajectory(make, schedule, torch.float64, first, batches)
            rounding = distance(result, trajectory(make, schedule, torch.float32, first, batches))
            print(f"{file:15} {name:20} loss {result['losses'][-1]:.4f}  rounding {rounding}")
            files.setdefault(file, []).append({"name": name, "arguments": arguments, "scheduled": schedule is factor,
                                               "rounding": rounding, **result})
    for file, made in files.items():
        commit = COMMITS.get(REFERENCES[file])
        by = f"{REFERENCES[file]} {commit}, " if commit else f"{REFERENCES[file]}, "
        write(file, {"made_by": f"{by}torch {torch.__version__}"}, made)


if __name__ == "__main__":
    main()
