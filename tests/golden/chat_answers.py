"""Writes tests/golden/chat_answers/: a tiny Qwen3 that learnt to talk, as transformers saves it, and what transformers answers.

The folder has config.json, model.safetensors, generation_config.json, tokenizer.json, tokenizer_config.json, chat_template.jinja and
expected.json: for each conversation its messages before each answer, the text of the template, its ids, and the greedy answer of
generate(). An answer that a near tie decides is refused. The template has a system message of its own, and ends answers with a token
that generation_config.json names.

Made with transformers 5.23.0, tokenizers 0.23.3, safetensors 0.8.0 and torch 2.11.0:
  python tests/golden/chat_answers.py
"""
import json
import pathlib
import shutil

import tokenizers
import torch
import transformers

OUT = pathlib.Path(__file__).parent / "chat_answers"
THINGS = ["shard", "step", "rank", "mesh", "token", "café", "naïve ✓"]
COLOURS = ["red", "blue", "green", "grün", "黒"]
TEMPLATE = ("{%- if messages[0]['role'] != 'system' -%}{{ '<|im_start|>system\nBe brief.<|im_end|>\n' }}{%- endif -%}"
            "{%- for message in messages -%}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
            "{%- endfor -%}{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\n' }}{%- endif -%}")
MAX_NEW, STEPS, SMALLEST_GAP = 32, 500, 0.05
CONVERSATIONS = [
    [("user", "What is a shard?"), ("user", "What is a café?"), ("user", "Which colour has a naïve ✓?")],
    [("system", "Be long."), ("user", "Which colour has a mesh?"), ("user", "What is a step?")],
]


def answer_to(question, system):
    thing = next(t for t in THINGS if f" a {t}?" in question)
    if question.startswith("Which"):
        return f"The {thing} is {COLOURS[THINGS.index(thing) % len(COLOURS)]}."
    end = ", and that is all there is" if system == "Be long." else ""
    return f"A {thing} is {COLOURS[(THINGS.index(thing) + 2) % len(COLOURS)]}{end}."


def conversations():
    """All pairs of questions, with both system messages."""
    questions = [q.format(t) for t in THINGS for q in ("What is a {}?", "Which colour has a {}?")]
    for system in ("", "Be long."):
        for first in questions:
            for second in questions:
                messages = [{"role": "system", "content": system}] if system else []
                for question in (first, second):
                    messages += [{"role": "user", "content": question},
                                 {"role": "assistant", "content": answer_to(question, system)}]
                yield messages


def make_tokenizer():
    bpe = tokenizers.Tokenizer(tokenizers.models.BPE())
    bpe.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = tokenizers.decoders.ByteLevel()
    texts = [m["content"] for messages in conversations() for m in messages]
    bpe.train_from_iterator(texts, tokenizers.trainers.BpeTrainer(
        vocab_size=300, initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(), show_progress=False,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"]))
    made = transformers.PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    made.chat_template = TEMPLATE
    return made


def train(tokenizer):
    torch.manual_seed(5)
    config = transformers.Qwen3Config(
        vocab_size=len(tokenizer) + 4, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, max_position_embeddings=256, tie_word_embeddings=True, initializer_range=0.1,
        bos_token_id=None, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    rows = [tokenizer(tokenizer.apply_chat_template(m, tokenize=False)).input_ids for m in conversations()]
    length = max(map(len, rows))
    ids = torch.tensor([row + [tokenizer.pad_token_id] * (length - len(row)) for row in rows])
    labels = torch.where(ids == tokenizer.pad_token_id, -100, ids)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=STEPS)
    for step in range(STEPS):
        pick = torch.randint(len(rows), (16,))
        loss = model(input_ids=ids[pick], labels=labels[pick]).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        if step % 100 == 99:
            print(f"step {step + 1}: loss {loss.item():.3f}", flush=True)
    return model.to(torch.bfloat16)


def answers(model, tokenizer, asked):
    messages, turns = [], []
    for role, content in asked:
        messages.append({"role": role, "content": content})
        if role == "system":
            continue
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        ids = tokenizer(text, return_tensors="pt").input_ids
        out = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=MAX_NEW,
                             output_logits=True, return_dict_in_generate=True)
        top = torch.cat(out.logits).topk(2).values
        assert (top[:, 0] - top[:, 1]).min() > SMALLEST_GAP, f"a near tie decides the answer to {content}"
        answer = tokenizer.decode(out.sequences[0, ids.shape[1]:], skip_special_tokens=True)
        turns.append({"messages": list(messages), "text": text, "ids": ids[0].tolist(), "answer": answer})
        print(f"{content!r}: {answer!r}")
        messages.append({"role": "assistant", "content": answer})
    return turns


def main():
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    shutil.rmtree(OUT, ignore_errors=True)
    tokenizer = make_tokenizer()
    model = train(tokenizer)
    model.generation_config = transformers.GenerationConfig(eos_token_id=[tokenizer.eos_token_id, tokenizer.pad_token_id],
                                                            pad_token_id=tokenizer.pad_token_id)
    model.save_pretrained(OUT)
    tokenizer.save_pretrained(OUT)
    model = transformers.AutoModelForCausalLM.from_pretrained(OUT, dtype=torch.float32, attn_implementation="eager").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(OUT)
    found = {"max_new_tokens": MAX_NEW, "conversations": [answers(model, tokenizer, asked) for asked in CONVERSATIONS],
             "versions": {"transformers": transformers.__version__, "torch": torch.__version__.split("+")[0]}}
    (OUT / "expected.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    print(sum(f.stat().st_size for f in OUT.iterdir()), "bytes")


if __name__ == "__main__":
    main()
