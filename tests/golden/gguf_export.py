"""Converts an exported folder with llama.cpp's own converter, and compares the GGUF file with the folder.

FOLDER is what `tycho convert --dtype fp32` wrote, CONVERTER the convert_hf_to_gguf.py of llama.cpp. Every tensor must have arrived with its
bits (Llama's queries and keys in the converter's order of rotary pairs), as must sizes, token ids, tokens and the chat template; and
transformers must read the folder without a tensor too many or too few. The converter knows BPE tokenizers by the hash of a text's ids, and
no hash is that of a tiny tokenizer: it is told "gpt-2", the pattern that ours has.

By hand, or by tests/host/gguf_peer.sh. Passed on 27 November 2026 with vendor/llama.cpp of llama_cpp_python 0.3.36 and the gguf in
it, transformers 5.23.0 and torch 2.11.0:
  python tests/golden/gguf_export.py FOLDER CONVERTER
"""
import json
import pathlib
import runpy
import sys
import tempfile

import numpy
import torch
import transformers
from safetensors.numpy import load_file

CONVERTER = pathlib.Path(sys.argv[2]).resolve()
sys.path[:0] = [str(CONVERTER.parent), str(CONVERTER.parent / "gguf-py")]   # its own gguf, which is newer than PyPI's
import gguf  # noqa: E402


def convert(folder, out):
    from conversion import base
    base.TextModel.get_vocab_base_pre = lambda self, tokenizer: "gpt-2"
    sys.argv = [str(CONVERTER), str(folder), "--outfile", str(out), "--outtype", "f32"]
    runpy.run_path(str(CONVERTER), run_name="__main__")


def field(reader, name):
    found = reader.get_field(name)
    assert found is not None, f"{name} is not in the GGUF file"
    return found.contents()


def in_rotary_pairs(weight, heads):
    """Returns rows in llama.cpp's order, where the two numbers that are rotated together are neighbours."""
    return weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)


def compare_tensors(reader, folder, config):
    arch = field(reader, "general.architecture")
    names = gguf.get_tensor_name_map({v: k for k, v in gguf.MODEL_ARCH_NAMES.items()}[arch],
                                     config["num_hidden_layers"])
    found = {tensor.name: numpy.array(tensor.data) for tensor in reader.tensors}
    wanted = {}
    for name, tensor in load_file(folder / "model.safetensors").items():
        if arch == "llama" and name.endswith(("q_proj.weight", "k_proj.weight")):
            heads = config["num_attention_heads" if "q_proj" in name else "num_key_value_heads"]
            tensor = in_rotary_pairs(tensor, heads)
        wanted[names.get_name(name, try_suffixes=(".weight", ".bias"))] = tensor
    assert set(found) == set(wanted), f"other tensors: {sorted(set(found) ^ set(wanted))}"
    for name, tensor in wanted.items():
        assert found[name].shape == tensor.shape, f"{name}: {found[name].shape}, expected {tensor.shape}"
        assert numpy.array_equal(found[name], tensor), f"{name} has other numbers"
    return arch, len(wanted)


def compare_facts(reader, folder, config, arch):
    facts = {"block_count": "num_hidden_layers", "embedding_length": "hidden_size", "feed_forward_length": "intermediate_size",
             "context_length": "max_position_embeddings", "attention.head_count": "num_attention_heads",
             "attention.head_count_kv": "num_key_value_heads"}
    for name, key in facts.items():
        assert field(reader, f"{arch}.{name}") == config[key], f"{name} is not {key}"
    assert abs(field(reader, f"{arch}.attention.layer_norm_rms_epsilon") - config["rms_norm_eps"]) < 1e-12
    rope = config.get("rope_parameters") or {}
    theta = rope.get("rope_theta", config.get("rope_theta"))
    assert field(reader, f"{arch}.rope.freq_base") == theta, "other rotary frequencies"
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokens = field(reader, "tokenizer.ggml.tokens")
    assert len(tokens) == config["vocab_size"], f"{len(tokens)} tokens, expected {config['vocab_size']}"
    for token, number in tokenizer.get_vocab().items():
        assert tokens[number] == token, f"token {number} is {tokens[number]!r}, expected {token!r}"
    if tokenizer.eos_token_id is not None:
        assert field(reader, "tokenizer.ggml.eos_token_id") == tokenizer.eos_token_id, "another end of texts"
    if tokenizer.chat_template:
        assert field(reader, "tokenizer.chat_template") == tokenizer.chat_template, "another chat template"


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    config = json.loads((folder / "config.json").read_text())
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch) / "model.gguf"
        convert(folder, out)
        reader = gguf.GGUFReader(out)
        arch, tensors = compare_tensors(reader, folder, config)
        compare_facts(reader, folder, config, arch)
    model, loading = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    problems = {kind: found for kind, found in loading.items() if found}
    assert not problems, problems
    print(f"{folder.name}: {type(model).__name__}, {arch} with {tensors} tensors, the same", flush=True)


if __name__ == "__main__":
    main()
