"""What LLM Foundry's LossPerpVLen (callbacks/loss_perp_v_len_callback.py) makes of two small batches of packed documents.

Writes loss_by_length.json: for each batch losses and targets by row (-100: none) and each token's position in its document; and what
the metric's compute() gives. Its class is taken out of the file, whose other imports are LLM Foundry's models and loggers.
Made with llm-foundry 0.22.0, torch 2.11.0 and torchmetrics 1.5.2:
  pip install torch torchmetrics==1.5.2 && pip install --no-deps llm-foundry==0.22.0
  python tests/golden/loss_by_length/loss_by_length.py
"""
import ast
import json
import pathlib
import sys
from typing import Any, Optional  # noqa: F401  (names of the class below)

import torch
from torchmetrics import Metric  # noqa: F401

HERE = pathlib.Path(__file__).parent
ROWS, LENGTH, VOCAB = 5, 9, 13


def metric_class():
    path = next(pathlib.Path(p) / "llmfoundry/callbacks/loss_perp_v_len_callback.py" for p in sys.path
                if (pathlib.Path(p) / "llmfoundry").is_dir())
    tree = ast.parse(path.read_text())
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "LossPerpVLen"]
    exec(compile(ast.Module(classes, []), str(path), "exec"), globals())
    return LossPerpVLen  # noqa: F821


def batch(generator):
    logits = torch.randn(ROWS, LENGTH, VOCAB, generator=generator) * 2
    targets = torch.randint(VOCAB, (ROWS, LENGTH), generator=generator)
    targets[torch.rand(ROWS, LENGTH, generator=generator) < 0.25] = -100
    targets[:, -1] = -100  # as after LLM Foundry's shift of the labels
    cuts = torch.rand(ROWS, LENGTH, generator=generator) < 0.3
    cuts[:, 0] = False
    documents = cuts.long().cumsum(1)
    positions = torch.zeros(ROWS, LENGTH, dtype=torch.long)
    for row in range(ROWS):
        for i in range(1, LENGTH):
            positions[row, i] = 0 if cuts[row, i] else positions[row, i - 1] + 1
    return logits, targets, documents, positions


def main():
    generator = torch.Generator().manual_seed(18)
    loss_fn = torch.nn.CrossEntropyLoss(ignore_index=-100, reduction="none")
    metric, batches = metric_class()(-100), []
    for _ in range(2):
        logits, targets, documents, positions = batch(generator)
        metric.update(targets, logits, documents, loss_fn)
        losses = loss_fn(logits.view(-1, VOCAB), targets.view(-1)).view(ROWS, LENGTH)
        batches.append(dict(losses=losses.tolist(), targets=targets.tolist(), document_positions=positions.tolist()))
    expected = {name: value.tolist() for name, value in metric.compute().items()}
    text = json.dumps(dict(batches=batches, expected=expected), separators=(",", ":"))
    (HERE / "loss_by_length.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
