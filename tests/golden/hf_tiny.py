"""Tiny random models as transformers saves them, with the logits and the loss that it computes from them.

Made with transformers 5.23.0, safetensors 0.8.0 and torch 2.11.0:
  python tests/golden/hf_tiny.py tests/golden/hf
"""
import json
import shutil
import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file

VOCAB, BATCH, SEQ = 101, 2, 16

LLAMA = dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=6, intermediate_size=40, vocab_size=VOCAB,
             bos_token_id=1, eos_token_id=2)
LLAMA3_ROPE = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
               "high_freq_factor": 4.0, "original_max_position_embeddings": 16}
MODELS = {
    # One key and value head, rotary positions of Llama 3.1, biases of attention, an untied head.
    "llama": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(
        **LLAMA, num_key_value_heads=1, max_position_embeddings=128, rope_parameters=LLAMA3_ROPE, attention_bias=True,
        rms_norm_eps=1e-5)),
    # Tied, bf16, positions stretched linearly, in three shards.
    "llama_sharded": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(
        **LLAMA, num_key_value_heads=3, max_position_embeddings=64, tie_word_embeddings=True,
        rope_parameters={"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0})).to(torch.bfloat16),
    "gpt2": lambda: transformers.GPT2LMHeadModel(transformers.GPT2Config(
        n_embd=48, n_layer=2, n_head=6, n_inner=64, vocab_size=VOCAB, n_positions=32, bos_token_id=0, eos_token_id=0,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)),
    # Six heads, so that the slopes of ALiBi are not those of a power of two; heads of width 4.
    "mpt": lambda: transformers.MptForCausalLM(transformers.MptConfig(
        d_model=24, n_layers=2, n_heads=6, vocab_size=VOCAB, max_seq_len=32,
        attn_config={"clip_qkv": 0.5, "softmax_scale": 0.6})),
}


def randomise(model: torch.nn.Module) -> None:
    generator = torch.Generator().manual_seed(7)
    for name, parameter in sorted(model.named_parameters()):
        noise = torch.randn(parameter.shape, generator=generator) * 0.2
        norm = "norm" in name or "ln_" in name
        parameter.data = (noise + (1 if norm and name.endswith("weight") else 0)).to(parameter.dtype)


def write(folder: Path, name: str) -> None:
    model = MODELS[name]().eval()
    randomise(model)
    model.save_pretrained(folder, max_shard_size="24KB" if name == "llama_sharded" else "5GB")
    ids = torch.randint(0, VOCAB, (BATCH, SEQ), generator=torch.Generator().manual_seed(3))
    # Read again: a model that was cast to bf16 has cast its rotary frequencies too.
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.no_grad():
        output = model(ids, labels=ids)
    save_file({"ids": ids.to(torch.int32), "logits": output.logits.contiguous(), "loss": output.loss.reshape(1)},
              folder / "expected.safetensors")
    print(name, sum(f.stat().st_size for f in folder.iterdir()), "bytes, loss", float(output.loss))


def main() -> None:
    transformers.logging.set_verbosity_error()
    out = Path(sys.argv[1])
    for name in MODELS:
        shutil.rmtree(out / name, ignore_errors=True)
        (out / name).mkdir(parents=True)
        write(out / name, name)
    versions = {"transformers": transformers.__version__, "torch": torch.__version__.split("+")[0]}
    (out / "versions.json").write_text(json.dumps(versions, indent=2) + "\n")


if __name__ == "__main__":
    main()
