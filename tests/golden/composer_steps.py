"""Training steps of LLM Foundry's MPT by Composer's own Trainer: micro-batches weighted by their tokens, parameter groups and
freezing as LLM Foundry reads them, clipping by norm, DecoupledAdamW under a schedule.

Writes foundry_oracles-like files to composer_steps/: config.json, model.safetensors (bf16, before), and steps.safetensors with ids and
labels of every step [S, B, T], losses [S], factors [S] of the learning rates, and after.<name>.

Rows have very different numbers of labels, so that a mean of micro-batches' means is another number. Needs what
foundry_oracles.py needs, and what composer imports:
  python tests/golden/composer_steps.py
"""
import collections
import functools
import json
import pathlib
import re
import sys
import types
import warnings

import torch

import foundry_oracles
from foundry_oracles import VOCAB, awkward_weights

warnings.simplefilter("ignore")
OUT = pathlib.Path(__file__).parent / "composer_steps"
STEPS, BATCH, MICRO, LENGTH = 5, 6, 2, 13
CONFIG = {"d_model": 16, "n_heads": 4, "n_layers": 2, "vocab_size": VOCAB, "max_seq_len": LENGTH, "expansion_ratio": 2,
          "attn_config": {"attn_impl": "torch"}}
# In LLM Foundry's words; the test says the same in Tycho's.
OPTIMIZER = {"lr": 0.02, "betas": [0.8, 0.9], "eps": 1e-2, "weight_decay": 0.05, "disable_grad": "wpe",
             "param_groups": [{"param_str_match": "norm|bias", "weight_decay": 0.0, "lr": 0.005},
                              {"param_str_match": r"blocks\.1\.", "betas": [0.5, 0.6]}]}


def functions_of(path, names, scope):
    """Functions out of a source file of LLM Foundry, without what that file imports."""
    root = next(pathlib.Path(p) / "llmfoundry" for p in sys.path if (pathlib.Path(p) / "llmfoundry").is_dir())
    source = (root / path).read_text()
    for name in names:
        begin = source.index(f"def {name}(")
        end = re.compile(r"^(def |class |@)", re.M).search(source, begin + 1).start()
        exec("from __future__ import annotations\n" + source[begin:end], scope)
    return [scope[name] for name in names]


def batches(generator):
    for _ in range(STEPS):
        ids = torch.randint(0, VOCAB, (BATCH, LENGTH), generator=generator)
        share = torch.tensor([0.0, 0.1, 0.9, 0.5, 0.95, 0.3])[:, None]
        yield ids, torch.where(torch.rand(ids.shape, generator=generator) < share, -100, ids)


def main():
    foundry_oracles.foundry_mpt()
    # No metrics: they would import data sets and loggers.
    metrics, builders = types.ModuleType("llmfoundry.metrics"), types.ModuleType("llmfoundry.utils.builders")
    metrics.DEFAULT_CAUSAL_LM_EVAL_METRICS = metrics.DEFAULT_CAUSAL_LM_TRAIN_METRICS = []
    builders.build_metric = None
    sys.modules |= {module.__name__: module for module in (metrics, builders)}
    from composer import DataSpec, Trainer
    from composer.algorithms import GradientClipping
    from composer.optim import CosineAnnealingWithWarmupScheduler, DecoupledAdamW
    from llmfoundry.models.mpt.modeling_mpt import ComposerMPTCausalLM
    from safetensors.torch import save_file
    log = types.SimpleNamespace(debug=lambda text: None)
    (groups,) = functions_of("utils/builders.py", ["_extract_param_groups"],
                             {"torch": torch, "re": re, "functools": functools, "log": log,
                              "OrderedDict": collections.OrderedDict})
    (count_tokens,) = functions_of("data/utils.py", ["get_tokens_per_batch_func"],
                                   {"torch": torch, "Mapping": collections.abc.Mapping, "CROSS_ENTROPY_IGNORE_INDEX": -100})
    generator = torch.Generator().manual_seed(31)
    model = ComposerMPTCausalLM(tokenizer=None, loss_fn="torch_crossentropy", use_train_metrics=False,
                                additional_train_metrics=[], **json.loads(json.dumps(CONFIG)))
    awkward_weights(model.model, generator)
    before = {name: p.detach().bfloat16().clone() for name, p in model.model.named_parameters()}
    data = list(batches(generator))
    loader = [{"input_ids": ids, "labels": labels, "attention_mask": torch.ones_like(ids)} for ids, labels in data]
    settings = json.loads(json.dumps(OPTIMIZER))
    optimizer = DecoupledAdamW(groups(model, settings), **settings)
    peaks = [group["lr"] for group in optimizer.param_groups]
    factors, losses = [], []

    def watch(*_):
        found = {group["lr"] / peak for group, peak in zip(optimizer.param_groups, peaks)}
        assert max(found) - min(found) < 1e-12, found
        factors.append(found.pop())

    optimizer.register_step_pre_hook(watch)
    trainer = Trainer(model=model, train_dataloader=DataSpec(loader, get_num_tokens_in_batch=count_tokens(),
                                                             get_num_samples_in_batch=lambda batch: len(batch["input_ids"])),
                      max_duration=f"{STEPS}ba", optimizers=optimizer,
                      schedulers=CosineAnnealingWithWarmupScheduler(t_warmup="1ba", alpha_f=0.1), device="cpu", precision="fp32",
                      device_train_microbatch_size=MICRO, accumulate_train_batch_on_tokens=True,
                      algorithms=[GradientClipping(clipping_type="norm", clipping_threshold=0.5)], progress_bar=False,
                      step_schedulers_every_batch=True, seed=1)
    from composer.core import Callback

    class Losses(Callback):
        def batch_end(self, state, logger):
            losses.append(float(state.total_loss_dict["loss/train/total"]))

    trainer.state.callbacks.append(Losses())
    trainer.fit()
    assert len(factors) == len(losses) == STEPS, (factors, losses)
    OUT.mkdir(exist_ok=True)
    (OUT / "config.json").write_text(json.dumps({"architectures": ["MPTForCausalLM"], "model_type": "mpt", **CONFIG}, indent=1) + "\n")
    save_file({name: p.contiguous() for name, p in before.items()}, OUT / "model.safetensors", metadata={"format": "pt"})
    found = {"ids": torch.stack([ids for ids, _ in data]).int(), "labels": torch.stack([labels for _, labels in data]).int(),
             "losses": torch.tensor(losses, dtype=torch.float64), "factors": torch.tensor(factors, dtype=torch.float64)}
    found |= {f"after.{name}": p.detach().contiguous() for name, p in model.model.named_parameters()}
    save_file(found, OUT / "steps.safetensors")
    print(losses, factors)


if __name__ == "__main__":
    main()
