"""Learning rate factors by step, computed by Composer, LLM Foundry and TorchTitan themselves, and by Nanotron's formula.

Writes optim/schedules.json: cases of {name, run, scheduler, factors}, where run and scheduler are parts of a recipe and
factors[s] is what the optimizer step after s steps multiplies the peak by.

    pip install --no-deps mosaicml==0.32.1 llm-foundry==0.22.0 torchtitan==0.2.2      # and what composer imports
    python tests/golden/composer_schedules.py
"""
import importlib.util
import json
import math
import pathlib
import sys
import types
import warnings

import torch
from composer.core import Time, Timestamp
from composer.optim import (ConstantWithWarmupScheduler, CosineAnnealingWarmRestartsScheduler, CosineAnnealingWithWarmupScheduler,
                            ExponentialScheduler, LinearWithWarmupScheduler, MultiStepWithWarmupScheduler,
                            PolynomialWithWarmupScheduler, StepScheduler)
from composer.optim.scheduler import compile_composer_scheduler

warnings.simplefilter("ignore")
OUT = pathlib.Path(__file__).parent / "optim" / "schedules.json"
NUM_SAMPLES, GLOBAL_BATCH, SEQ_LEN = 170, 4, 8


def installed_file(package, path):
    return pathlib.Path(importlib.util.find_spec(package).submodule_search_locations[0]) / path


def foundry_inv_sqrt():
    """LLM Foundry's scheduler, without the rest of LLM Foundry."""
    for name in ["llmfoundry.utils", "llmfoundry.utils.warnings"]:
        sys.modules[name] = types.ModuleType(name)
    sys.modules["llmfoundry.utils.warnings"].experimental_class = lambda name: lambda cls: cls
    source = installed_file("llmfoundry", "optim/scheduler.py")
    spec = importlib.util.spec_from_file_location("foundry_scheduler", source)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.InverseSquareRootWithWarmupScheduler


def composer_factors(scheduler, run, ratio):
    """Steps an optimizer as Composer's trainer does: the scheduler goes before the clock."""
    state = types.SimpleNamespace()
    state.max_duration = Time.from_timestring(run["max_duration"])
    state.dataloader_len = NUM_SAMPLES // GLOBAL_BATCH
    state.timestamp = Timestamp()
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    state.optimizers = [optimizer]
    torch_scheduler = compile_composer_scheduler(scheduler, state, ratio)
    factors = []
    while state.timestamp < (state.max_duration if state.max_duration.unit.value != "ep" else
                             Time(int(state.max_duration.value * state.dataloader_len), "ba")):
        factors.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        torch_scheduler.step()
        state.timestamp = state.timestamp.to_next_batch(samples=GLOBAL_BATCH, tokens=GLOBAL_BATCH * SEQ_LEN)
    return factors


COMPOSER = {"constant": ConstantWithWarmupScheduler, "cosine": CosineAnnealingWithWarmupScheduler,
            "linear": LinearWithWarmupScheduler, "polynomial": PolynomialWithWarmupScheduler,
            "multistep": MultiStepWithWarmupScheduler, "inv_sqrt": foundry_inv_sqrt(), "step": StepScheduler,
            "exponential": ExponentialScheduler, "cosine_restarts": CosineAnnealingWarmRestartsScheduler}


def composer_case(name, max_duration, kind, ratio=1.0, **arguments):
    scheduler = COMPOSER[kind](**arguments)
    run = {"max_duration": max_duration}
    config = {"kind": kind, "compat": "composer", "scale_schedule_ratio": ratio, **arguments}
    return {"name": name, "run": run, "scheduler": config, "factors": composer_factors(scheduler, run, ratio)}


def composer_cases():
    case = composer_case
    yield case("constant", "20ba", "constant", t_warmup="5ba", alpha=0.7)
    yield case("cosine", "40ba", "cosine", t_warmup="8ba", alpha_f=0.1)
    yield case("cosine of fractions", "33ba", "cosine", t_warmup="0.1dur", alpha_f=0.02)
    yield case("cosine beyond the run", "20ba", "cosine", t_warmup="3ba", t_max="50ba")
    yield case("cosine without warm-up", "12ba", "cosine", t_warmup="0ba")
    yield case("cosine in tokens", "1000tok", "cosine", t_warmup="100tok", t_max="1000tok", alpha_f=0.1)
    yield case("cosine in samples", "90sp", "cosine", t_warmup="11sp", alpha_f=0.1)
    yield case("cosine over epochs", "2ep", "cosine", t_warmup="0.05dur", t_max="1dur", alpha_f=0.1)
    yield case("cosine with warm-up in batches over epochs", "1ep", "cosine", t_warmup="7ba", t_max="1ep")
    yield case("warm-up as long as the run", "10ba", "cosine", t_warmup="10ba")
    yield case("warm-up longer than the run", "10ba", "linear", t_warmup="15ba")
    yield case("linear", "30ba", "linear", t_warmup="6ba", alpha_i=0.8, alpha_f=0.2)
    yield case("linear that rises", "15ba", "linear", t_warmup="3ba", alpha_i=0.5, alpha_f=1.5)
    yield case("polynomial", "30ba", "polynomial", t_warmup="4ba", power=3.0, alpha_f=0.05)
    yield case("multistep", "30ba", "multistep", t_warmup="4ba", milestones=["10ba", "0.5dur", "25ba"], gamma=0.3)
    yield case("multistep in tokens", "960tok", "multistep", t_warmup="64tok", milestones=["100tok", "700tok"])
    yield case("inverse root", "40ba", "inv_sqrt", t_warmup="5ba", t_scale="4ba", t_cooldown="10ba",
               alpha_f_decay=0.1, alpha_f_cooldown=0.02)
    yield case("inverse root without cooldown", "25ba", "inv_sqrt", t_warmup="5ba", t_scale="7ba", t_cooldown="0ba")
    yield case("inverse root in tokens", "1280tok", "inv_sqrt", t_warmup="96tok", t_scale="200tok", t_cooldown="300tok")
    for scale_warmup in [False, True]:
        word = " with warm-up" if scale_warmup else ""
        yield case("shrunk" + word, "20ba", "cosine", 0.5, t_warmup="8ba", t_max="40ba", alpha_f=0.1,
                   scale_warmup=scale_warmup)
        yield case("stretched" + word, "60ba", "linear", 1.5, t_warmup="8ba", t_max="40ba",
                   scale_warmup=scale_warmup)
        yield case("shrunk milestones" + word, "20ba", "multistep", 0.5, t_warmup="6ba",
                   milestones=["15ba", "30ba", "0.9dur"], gamma=0.5, scale_warmup=scale_warmup)
    yield case("shrunk inverse root", "20ba", "inv_sqrt", 0.5, t_warmup="4ba", t_scale="6ba", t_cooldown="9ba",
               t_max="40ba", alpha_f_decay=0.2)
    yield case("step", "30ba", "step", step_size="7ba", gamma=0.5)
    yield case("step in tokens", "960tok", "step", step_size="100tok")
    yield case("step of a share", "2ep", "step", step_size="0.3dur", gamma=0.7)
    yield case("exponential", "30ba", "exponential", gamma=0.5, decay_period="10ba")
    yield case("exponential by epochs", "2ep", "exponential", gamma=0.1)
    yield case("exponential in samples", "90sp", "exponential", gamma=0.3, decay_period="13sp")
    yield case("restarts", "40ba", "cosine_restarts", t_0="10ba", alpha_f=0.1)
    yield case("restarts that grow", "60ba", "cosine_restarts", t_0="5ba", t_mult=1.5)
    yield case("restarts in tokens", "960tok", "cosine_restarts", t_0="75tok", t_mult=2.0, alpha_f=0.2)
    yield case("restarts of a share", "2ep", "cosine_restarts", t_0="0.2dur", t_mult=1.3)
    yield case("shrunk restarts", "30ba", "cosine_restarts", 0.5, t_0="20ba", t_mult=1.2)


def torchtitan_factors(steps, warmup, decay_ratio, decay_type, floor):
    """The function out of torchtitan/components/lr_scheduler.py, run without a trainer."""
    source = installed_file("torchtitan", "components/lr_scheduler.py").read_text()
    begin = source.index("    def linear_warmup_stable_decay(")
    text = source[begin:source.index("        return curr_adjustment", begin)] + "        return curr_adjustment\n"
    scope = {"math": math}
    exec("if True:\n" + text, scope)
    decay = steps - warmup if decay_ratio is None else round(steps * decay_ratio)
    return [scope["linear_warmup_stable_decay"](s, warmup, steps + 1 - warmup - decay, decay, decay_type, floor)
            for s in range(steps)]


def torchtitan_cases():
    for steps, warmup, ratio, kind, floor in [(10, 2, 0.8, "linear", 0.0), (50, 7, 0.3, "sqrt", 0.1),
                                              (50, 7, 0.3, "cosine", 0.2), (40, 0, None, "linear", 0.0),
                                              (40, 5, None, "sqrt", 0.05), (30, 4, 0.25, "linear", 0.1)]:
        yield {"name": f"torchtitan {kind} {steps} {warmup} {ratio}", "run": {"max_duration": f"{steps}ba"},
               "scheduler": {"kind": "wsd", "t_warmup": f"{warmup}ba", "decay_type": kind, "alpha_f": floor,
                             "t_decay": f"{steps - warmup}ba" if ratio is None else f"{ratio}dur"},
               "factors": torchtitan_factors(steps, warmup, ratio, kind, floor)}


def nanotron_factor(s, warmup, start, decay_steps, style, floor):
    """lr_scheduler_builder of nanotron/helpers.py, with a peak of 1."""
    if s <= warmup and warmup > 0:
        return s / warmup
    if s < start:
        return 1.0
    if s > start + decay_steps:
        return floor
    p = (s - start) / decay_steps
    shape = {"cosine": (1 + math.cos(math.pi * p)) / 2, "linear": 1 - p, "1-sqrt": 1 - math.sqrt(p)}[style]
    return floor + (1 - floor) * shape


def nanotron_cases():
    for steps, warmup, start, style, floor in [(40, 5, 5, "cosine", 0.01), (40, 5, 30, "1-sqrt", 0.1),
                                               (40, 0, 20, "linear", 0.0), (25, 10, 10, "linear", 0.2)]:
        yield {"name": f"nanotron {style} {steps} {warmup} {start}", "run": {"max_duration": f"{steps}ba"},
               "scheduler": {"kind": "wsd", "compat": "nanotron", "t_warmup": f"{warmup}ba", "decay_type": style,
                             "t_decay": f"{steps - start}ba", "alpha_f": floor},
               "factors": [nanotron_factor(s, warmup, start, steps - start, style, floor) for s in range(steps)]}


def main():
    import composer
    cases = [*composer_cases(), *torchtitan_cases(), *nanotron_cases()]
    run = {"seq_len": SEQ_LEN, "global_batch": f"{GLOBAL_BATCH}sp", "num_samples": NUM_SAMPLES}
    note = f"mosaicml {composer.__version__}, llm-foundry 0.22.0, torchtitan 0.2.2, torch {torch.__version__}"
    lines = ",\n".join(json.dumps(case) for case in cases)
    OUT.write_text(f'{{"made_by": "{note}", "run": {json.dumps(run)}, "cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
