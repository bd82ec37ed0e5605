"""Writes tests/golden/packing/cases.json: rows and ratios of LLM Foundry's own packing code.

batches: BinPackCollator fed by torch's DistributedSampler and DataLoader as its finetuning loader does, one of each for every rank,
over several epochs: {ranks, rows, row_tokens, ratio, side, kept, lengths, epochs},
where `kept` is max_leftover_bins_to_keep, or null; epochs[e][rank][batch] is a list of rows, and a row a
list of examples; `first_row` is the first row of the first rank as {input_ids, labels, sequence_id}, where example i has tokens i + 1.
ratios: what auto_packing_ratio gives for device batches of `rows` rows: {rows, row_tokens, lengths, ratio}.
Made with llm-foundry 0.22.0 (`pip download --no-deps llm-foundry==0.22.0`, unpacked), torch 2.11.0 and numpy. Its packing.py runs as it
is; composer and the loader that gives the profiler its examples are stood in for:
  PYTHONPATH=<folder of the unpacked wheel> python tests/golden/make_packing_goldens.py
"""
import importlib.util
import json
import pathlib
import sys
import types
from unittest import mock

import numpy
import torch

OUT = pathlib.Path(__file__).parent / "packing"


def foundry_packing():
    root = next(pathlib.Path(p) / "llmfoundry" for p in sys.path if (pathlib.Path(p) / "llmfoundry").is_dir())

    def module(name, **members):
        made = types.ModuleType(name)
        made.__path__ = []
        vars(made).update(members)
        sys.modules[name] = made

    dist = mock.MagicMock(is_available=lambda: False, get_global_rank=lambda: 0, get_local_rank=lambda: 0)
    for name in ["composer", "llmfoundry", "llmfoundry.utils", "llmfoundry.data", "transformers"]:
        module(name)
    sys.modules["transformers"].PreTrainedTokenizerBase = object
    module("composer.utils", dist=dist, get_device=mock.MagicMock(), reproducibility=mock.MagicMock())
    module("llmfoundry.data.dataloader")

    def load(name):
        path = root.joinpath(*name.split(".")[1:]).with_suffix(".py")
        spec = importlib.util.spec_from_file_location(name, path)
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
        return sys.modules[name]

    load("llmfoundry.utils.consts")
    return load("llmfoundry.data.packing")


def padded(ids, lengths, width, side):
    """A batch as Seq2SeqFinetuningCollator makes it: example i is the token i + 1, and all of it is a target."""
    batch = {key: torch.full((len(ids), width), fill) for key, fill in [("input_ids", 0), ("labels", -100), ("attention_mask", 0)]}
    for row, i in enumerate(ids):
        at = slice(0, lengths[i]) if side == "right" else slice(width - lengths[i], width)
        for key, value in [("input_ids", i + 1), ("labels", i + 1), ("attention_mask", 1)]:
            batch[key][row, at] = value
    batch["sequence_id"] = batch["attention_mask"] - 1
    return batch


def examples_of(row):
    """The examples of a packed row in their order; a sequence_id stands for each."""
    return [int(row["input_ids"][row["sequence_id"] == n][0]) - 1 for n in range(int(row["sequence_id"].max()) + 1)]


def batches(packing, ranks, rows, row_tokens, ratio, lengths, side="right", epochs=2, kept=None):
    def rank_epochs(rank):
        collator = packing.BinPackCollator(lambda ids: padded(ids, lengths, row_tokens, side), rows, row_tokens, 0, side, kept)
        sampler = torch.utils.data.DistributedSampler(range(len(lengths)), ranks, rank, shuffle=False, drop_last=True)
        loader = torch.utils.data.DataLoader(range(len(lengths)), batch_size=int(rows * ratio), sampler=sampler, drop_last=True,
                                             collate_fn=collator)
        return [list(loader) for _ in range(epochs)]

    made = [rank_epochs(rank) for rank in range(ranks)]
    first = made[0][0][0]
    lists = [[[[examples_of({key: value[i] for key, value in batch.items()}) for i in range(rows)] for batch in made[rank][epoch]]
              for rank in range(ranks)] for epoch in range(epochs)]
    return {"ranks": ranks, "rows": rows, "row_tokens": row_tokens, "ratio": ratio, "side": side, "kept": kept, "lengths": lengths, "epochs": lists,
            "first_row": {key: first[key][0].tolist() for key in ["input_ids", "labels", "sequence_id"]}}


def ratio_of(packing, rows, row_tokens, lengths):
    def build_dataloader(_config, _tokenizer, count):
        ids = list(range(min(count, len(lengths))))
        return types.SimpleNamespace(dataloader=[padded(ids, lengths, row_tokens, "right")])

    sys.modules["llmfoundry.data.dataloader"].build_dataloader = build_dataloader
    found = packing.auto_packing_ratio({"dataset": {"max_seq_len": row_tokens}}, None, rows)
    return {"rows": rows, "row_tokens": row_tokens, "lengths": lengths, "ratio": float(found)}


def main():
    packing = foundry_packing()
    random = numpy.random.default_rng(4)

    def drawn(count, least, most):
        return [int(x) for x in random.integers(least, most + 1, count)]

    def skewed(count, most):
        return [int(min(most, 3 + x)) for x in random.exponential(most / 9, count)]

    # Drawn after all others, which keeps theirs.
    def with_leftovers():
        return [batches(packing, 1, 4, 48, 2.9, drawn(140, 3, 48), epochs=3, kept=kept) for kept in (0, 1, 3)] + [
            batches(packing, 2, 3, 64, 7.0, skewed(260, 64), epochs=3, kept=2)]

    made = {
        "batches": [
            batches(packing, 1, 2, 32, 3.0, drawn(40, 3, 20)),
            batches(packing, 1, 2, 32, 3.0, drawn(40, 3, 20), side="left"),
            batches(packing, 1, 4, 48, 2.3, drawn(100, 3, 48)),          # more than fits: rows wait
            batches(packing, 2, 3, 64, 4.5, skewed(150, 64), epochs=3),
            batches(packing, 4, 2, 64, 9.0, skewed(200, 64), epochs=3),
            batches(packing, 1, 3, 32, 1.4, [32] * 10 + drawn(10, 3, 5)),  # as few examples as rows are missing
            batches(packing, 3, 1, 40, 6.0, [5] * 120),                    # equal lengths: the order of equals
        ],
        "ratios": [ratio_of(packing, rows, row_tokens, lengths) for rows, row_tokens, lengths in [
            (1, 512, skewed(3000, 512)), (4, 512, skewed(3000, 512)), (8, 512, drawn(9000, 3, 512)), (2, 2048, drawn(5000, 20, 90)),
            (2, 333, drawn(700, 100, 333)), (8, 1024, drawn(30, 3, 20)), (8, 1024, drawn(5, 3, 20)), (4, 100, drawn(50, 3, 20)),
            (3, 101, drawn(400, 3, 101)), (6, 4096, skewed(9000, 800)), (5, 700, [700] * 100)]],
    }
    made["batches"] += with_leftovers()
    OUT.mkdir(exist_ok=True)
    (OUT / "cases.json").write_text(json.dumps(made, separators=(",", ":")) + "\n", encoding="utf-8")
    print([len(case["epochs"][0][0]) for case in made["batches"]], [case["ratio"] for case in made["ratios"]])


if __name__ == "__main__":
    main()
