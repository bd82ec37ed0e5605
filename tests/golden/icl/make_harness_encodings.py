"""Writes harness_encodings.json: the tokens that HFLM of lm-evaluation-harness asks its model about.

    python tests/golden/icl/make_harness_encodings.py

Made with lm-eval 0.4.13 and transformers 5.24.0 in Python 3.11, without torch and the other packages that HFLM only needs
to compute: stand-ins of these names are imported in their place.
"""
import importlib.abc
import importlib.machinery
import json
import pathlib
import sys
import tempfile
import types
from unittest.mock import MagicMock

import transformers

HERE = pathlib.Path(__file__).parent
STYLES = HERE.parent / "tokenizer_styles"
UNUSED = ("torch", "accelerate", "peft", "datasets", "evaluate", "sacrebleu", "rouge_score", "sklearn", "sqlitedict", "word2number",
          "zstandard", "dill", "more_itertools", "jsonlines", "pytablewriter", "numexpr")


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.split(".")[0] in UNUSED else None

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__path__ = []
        module.__getattr__ = lambda name: MagicMock(name=name)
        return module

    def exec_module(self, module):
        pass


sys.meta_path.append(StandIns())
from lm_eval.api.instance import Instance  # noqa: E402
from lm_eval.models.huggingface import HFLM  # noqa: E402

TOKENIZERS = {  # style: bos, eos
    "llama3": ("<|begin|>", "<|endoftext|>"), "llama2": ("<s>", "</s>"), "smollm": (None, "<|endoftext|>"),
    "gpt2": ("<|begin|>", "<|endoftext|>")}


def pairs(bos):
    return [("the learning rate", " is"), ("the rate ", "of"), ("the rate \n ", "of tokens"), ("", "the rate"), ("", bos + "the rate"),
            (bos + "the rate", " of"), (bos + " the rate  ", "of"), ("x", "y"), ("the tok", "ens")]


def main():
    out = []
    for style, (bos, eos) in TOKENIZERS.items():
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "tokenizer.json").write_text((STYLES / f"{style}.json").read_text())
            config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": eos, **({"bos_token": bos} if bos else {})}
            pathlib.Path(folder, "tokenizer_config.json").write_text(json.dumps(config))
            for add_bos in (None, False):
                model = HFLM.__new__(HFLM)
                model.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
                model.add_bos_token, model.backend, model.custom_prefix_token_id, model.enable_thinking = add_bos, "causal", None, None
                model._loglikelihood_tokens = lambda requests, disable_tqdm: requests
                asked = pairs(bos or eos)
                made = model.loglikelihood([Instance("loglikelihood", {}, pair, i) for i, pair in enumerate(asked)], disable_tqdm=True)
                out.append(dict(style=style, config=config, plain=add_bos is False, requests=[
                    dict(context=c, continuation=t, context_ids=a, continuation_ids=b) for (c, t), (_, a, b) in zip(asked, made)]))
    (HERE / "harness_encodings.json").write_text("[" + ",\n".join(json.dumps(one) for one in out) + "]\n")


if __name__ == "__main__":
    main()
