# Makes tests/golden/safetensors/python.safetensors with the reference library, and checks with it tycho.safetensors, which
# tests/trainer/checkpoint/safetensors_test.cpp holds our writer to. Made with safetensors 0.8 and torch 2.11.
#   python make_safetensors_goldens.py            writes python.safetensors, checks tycho.safetensors
import pathlib

import safetensors
import torch
from safetensors.torch import save_file

FOLDER = pathlib.Path(__file__).parent / "safetensors"
TENSORS = {
    "model.embed_tokens.weight": (torch.float32, (5, 3)),
    "model.norm.weight": (torch.bfloat16, (7,)),
    "scalar": (torch.float32, ()),
    "empty": (torch.bfloat16, (0, 4)),
    "counts": (torch.int64, (2, 2)),
    'name é "quoted"': (torch.float32, (1,)),
}


def golden(dtype, shape):
    count = 1
    for dim in shape:
        count *= dim
    return (torch.arange(count) * 3 - 5).to(dtype).reshape(shape)


def main():
    expected = {name: golden(*spec) for name, spec in TENSORS.items()}
    save_file(expected, FOLDER / "python.safetensors", metadata={"format": "pt", "note": "made by Python"})
    with safetensors.safe_open(FOLDER / "tycho.safetensors", framework="pt") as file:
        assert file.metadata() == {"format": "pt"}, file.metadata()
        assert set(file.keys()) == set(expected), file.keys()
        for name, tensor in expected.items():
            found = file.get_tensor(name)
            assert found.dtype == tensor.dtype and found.shape == tensor.shape, name
            assert torch.equal(found, tensor), name
    print(f"safetensors {safetensors.__version__}, torch {torch.__version__}: both files agree")


main()
