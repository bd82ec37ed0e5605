"""The rival of the generation benchmark: greedy text from a model folder with transformers, its cache and SDPA.

    python bench/peers/generate_hf.py make FOLDER [gpt2|qwen3]           # random weights of GPT-2's 124M shapes, or of
                                                                         # Qwen3-0.6B's at eight layers
    python bench/peers/generate_hf.py run FOLDER 64 128 fp32 2           # prompt tokens, new tokens, precision, threads

`run` prints one JSON line: tokens, prompt_s, tokens_per_s (after the first token) and versions. Needs torch and transformers.
"""

import json
import sys
import time

import torch
import transformers

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def make(folder, model="gpt2"):
    torch.manual_seed(1)
    # Far from uniform: the likeliest token leads by more than rounding.
    if model == "gpt2":
        config = transformers.GPT2Config(initializer_range=0.1)
    else:
        config = transformers.Qwen3Config(
            hidden_size=1024, num_hidden_layers=8, num_attention_heads=16, num_key_value_heads=8, head_dim=128,
            intermediate_size=3072, vocab_size=16384, tie_word_embeddings=True, initializer_range=0.1)
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(folder)


class Clock(transformers.generation.streamers.BaseStreamer):
    """Hears of every token when it is there."""

    def __init__(self):
        self.times = []

    def put(self, _):
        self.times.append(time.perf_counter())

    def end(self):
        pass


def run(folder, prompt_tokens, new_tokens, precision, threads, batch=1):
    torch.set_num_threads(threads)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=DTYPES[precision], attn_implementation="sdpa").eval()
    prompt = torch.arange(1, prompt_tokens + 1)[None] + 100 * torch.arange(batch)[:, None]
    options = dict(attention_mask=torch.ones_like(prompt), do_sample=False, eos_token_id=None, pad_token_id=0, use_cache=True)
    with torch.inference_mode():
        model.generate(prompt, max_new_tokens=4, **options)  # what PyTorch does once
        clock = Clock()
        start = time.perf_counter()
        text = model.generate(prompt, max_new_tokens=new_tokens, streamer=clock, **options)
    first, last = clock.times[1], clock.times[-1]  # the first put is the prompt
    print(json.dumps({"tokens": text[0, prompt_tokens:].tolist(), "prompt_s": first - start,
                      "tokens_per_s": batch * (new_tokens - 1) / (last - first), "total_s": last - start,
                      "texts": text[:, prompt_tokens:].tolist(),
                      "versions": {"torch": torch.__version__, "transformers": transformers.__version__}}))


def main():
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    if sys.argv[1] == "make":
        make(*sys.argv[2:4])
    else:
        run(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5], int(sys.argv[6]), *map(int, sys.argv[7:8]))


if __name__ == "__main__":
    main()
