"""Writes tokenizer_folders.json: what transformers makes of tokenizers that files beside tokenizer.json change, and of
vocab.json with merges.txt.

    python tests/golden/tokenizer_folders/make_tokenizer_folder_goldens.py          writes the file
    python tests/golden/tokenizer_folders/make_tokenizer_folder_goldens.py check    says which cases another version reads otherwise

Made with transformers 4.57.6 and tokenizers 0.22.2, which need no torch. transformers 5.24.0 differs where it leaves
out add_prefix_space for PreTrainedTokenizerFast, reads no add_bos_token beside a tokenizer.json, and builds
Qwen2Tokenizer and GPT2Tokenizer from their vocabulary alone.
"""
import json
import pathlib
import random
import sys
import tempfile

import transformers

HERE = pathlib.Path(__file__).parent
STYLES = HERE.parent / "tokenizer_styles"
PLAIN = {"lstrip": False, "rstrip": False, "single_word": False, "normalized": False, "special": True}
FAST = {"tokenizer_class": "PreTrainedTokenizerFast"}
PARTS = ["<mark>", "<m2>", "<|endoftext|>", "<|begin|>", "</s>", "<pad>", "<tool>", "the rate", " ", "  ", "x", "\n", "token",
         "1", "café", "<mar", "'s"]


def token(content, **flags):
    return {**PLAIN, **flags, "content": content}


def cases():
    """(name, style, files beside, made of vocab.json and merges.txt)"""
    first = 405  # the next id of these styles
    decoder = {"added_tokens_decoder": {str(first): token("<mark>"), str(first + 1): token("<m2>", lstrip=True, special=False)}}
    yield "decoder", "smollm", {"tokenizer_config": {**FAST, **decoder}}
    yield "decoder_changes_flags", "smollm", {"tokenizer_config": {**FAST, "added_tokens_decoder": {
        "0": token("<|endoftext|>", lstrip=True, rstrip=True, special=False)}}}
    yield "decoder_hides_the_other_files", "smollm", {
        "tokenizer_config": {**FAST, "eos_token": "<|begin|>", "added_tokens_decoder": {str(first): token("<m2>")}},
        "special_tokens_map": {"eos_token": "<mark>"}, "added_tokens": {"<mark>": first}}
    yield "added_tokens", "smollm", {"tokenizer_config": FAST, "added_tokens": {"<m2>": first + 1, "<mark>": first},
                                     "special_tokens_map": {"eos_token": "<mark>"}}
    yield "eos_in_the_map", "smollm", {"tokenizer_config": {**FAST, "eos_token": "<|endoftext|>"}, "special_tokens_map": {
        "eos_token": "<|begin|>", "pad_token": {k: v for k, v in token("<pad>").items() if k != "special"}}}
    yield "named_tokens_are_added", "smollm", {"tokenizer_config": {
        **FAST, "pad_token": "<m2>", "bos_token": {**token("</s>", rstrip=True), "__type": "AddedToken"}, "additional_special_tokens": ["<mark>"]}}
    yield "map_adds_tokens", "smollm", {"tokenizer_config": FAST, "special_tokens_map": {
        "eos_token": "<m2>", "additional_special_tokens": ["<mark>"]}}
    yield "split_special_tokens", "smollm", {"tokenizer_config": {**FAST, **decoder, "split_special_tokens": True}}
    for style in ("gpt2", "gpt2_prefix", "llama3"):
        for prefix in (None, True, False):
            given = {} if prefix is None else {"add_prefix_space": prefix}
            yield f"{style}_prefix_{prefix}", style, {"tokenizer_config": {**FAST, **given}}
    for prefix in (None, True):
        given = {} if prefix is None else {"add_prefix_space": prefix}
        yield f"vocab_gpt2_{prefix}", "gpt2", {"tokenizer_config": {"tokenizer_class": "GPT2Tokenizer", **given}}, True
    yield "vocab_gpt2_bos", "gpt2", {"tokenizer_config": {
        "tokenizer_class": "GPT2Tokenizer", "add_bos_token": True, "bos_token": "<|begin|>"}}, True
    yield "vocab_gpt2_map", "gpt2", {"special_tokens_map": {"eos_token": "<|begin|>", "pad_token": "<mark>"}}, True
    yield "vocab_qwen2", "qwen2", {"tokenizer_config": {"tokenizer_class": "Qwen2Tokenizer", "added_tokens_decoder": {
        "0": token("<|endoftext|>"), "400": token("<mark>"), "401": token("<m2>")}, "pad_token": "<mark>"}}, True


def texts(rng):
    return ["<mark>", "a<mark>b", "the rate", " the rate", ""] + [
        "".join(rng.choice(PARTS) for _ in range(rng.randrange(2, 9))) for _ in range(11)]


def read(style, beside, vocab, asked):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        text = (STYLES / f"{style}.json").read_text()
        if vocab:
            model = json.loads(text)["model"]
            (folder / "vocab.json").write_text(json.dumps(model["vocab"]))
            merges = [" ".join(m) if isinstance(m, list) else m for m in model["merges"]]
            (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(merges) + "\n")
        else:
            (folder / "tokenizer.json").write_text(text)
        for file, value in beside.items():
            (folder / f"{file}.json").write_text(json.dumps(value))
        (folder / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
        tokenizer = transformers.AutoTokenizer.from_pretrained(name)
        return {"size": len(tokenizer), "bos": tokenizer.bos_token, "eos": tokenizer.eos_token, "pad": tokenizer.pad_token,
                "ids": [tokenizer(text).input_ids for text in asked]}


def main():
    rng = random.Random(20)
    out = []
    for name, style, beside, *vocab in cases():
        asked = texts(rng)
        out.append({"name": name, "style": style, "vocab": bool(vocab), "beside": beside, "texts": asked,
                    **read(style, beside, bool(vocab), asked)})
    path = HERE / "tokenizer_folders.json"
    if sys.argv[1:] == ["check"]:
        for ours, theirs in zip(json.loads(path.read_text()), out):
            same = [key for key in ours if ours[key] != theirs[key]]
            print(ours["name"], "as", transformers.__version__ if not same else f"not as {transformers.__version__}: {same}")
        return
    path.write_text("[" + ",\n".join(json.dumps(case, ensure_ascii=False, separators=(",", ":")) for case in out) + "]\n")


if __name__ == "__main__":
    main()
