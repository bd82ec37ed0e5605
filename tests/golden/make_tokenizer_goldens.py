"""Writes tests/golden/tokenizer/: a small corpus, tokenizers that Hugging Face's `tokenizers` trained on it, and what they
make of awkward texts. Made with tokenizers 0.23.3.

    python tests/golden/make_tokenizer_goldens.py
"""
import json
import pathlib
import random

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

OUT = pathlib.Path(__file__).parent / "tokenizer"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
          r"\s*[\r\n]+|\s+(?!\S)|\s+")
WORDS = ("tensor shard gradient learn learned learning rate rates the a of and model's we've don't they'll I'm it'd token "
         "tokens kernel café naïve größe straße модель данные токен 模型 训练 数据 データ 학습 نموذج ½ ² 2048 1e-4 3.14 0x1F "
         "std::vector<float> x_BTD += ->at(i); // TODO {} [] != == \"quoted\" 🙂 🚀🚀 e\u0301 \u00a0 ﬁ").split(" ")
TEXTS = [
    "", " ", "  ", "\n", "a", "Hello, world!", "  leading", "trailing  ", "tabs\t\tand\n\n\nnewlines\r\n  x",
    "it's IT'S it'S we'Ve 'tis '' 's'", "don't'll've", "x=1234567890", "１２３ ٣٤٥ ½²", "a\u00a0b\u3000c\u2028d",
    "\u0085x \x1c\x1f", "e\u0301e", "🙂🚀", "<|endoftext|>", "a<|endoftext|>b <|endoftext|> ", "<|endoftext", "\x00\x7f",
    "ſ'ſ 'S", "!!!\n\n???\r\n", " \n \n x", "word" * 40, " " * 100 + "x", "ab " * 70, "…—“”", "\U000105C0\u1C89",
    "<pad>  <tool> \t<tool>\n a<tool>", "long" + "gy" * 300,
]


def corpus(rng):
    lines = []
    for _ in range(160):
        indent = rng.choice(["", "", "  ", "    ", "\t"])
        lines.append(indent + " ".join(rng.choice(WORDS) for _ in range(rng.randrange(0, 14))))
    return "\n".join(lines) + "\n"


def byte_level(pattern=None):
    tokenizer = Tokenizer(models.BPE(ignore_merges=pattern is not None))
    if pattern is None:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer


def trainer(vocab_size):
    return trainers.BpeTrainer(vocab_size=vocab_size, min_frequency=2, special_tokens=["<|endoftext|>"],
                               initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)


def random_text(rng):
    ranges = [(0, 0x7F), (0x20, 0x7E), (0x80, 0x24F), (0x300, 0x36F), (0x400, 0x4FF), (0x660, 0x66F), (0x1C80, 0x1C8F),
              (0x2000, 0x206F), (0x2150, 0x218F), (0x3000, 0x30FF), (0x4E00, 0x4EFF), (0xA7C0, 0xA7FF), (0xAC00, 0xACFF),
              (0xFB00, 0xFB06), (0xFF00, 0xFFEF), (0x10000, 0x10FFF), (0x1F300, 0x1F64F)]
    plain = [" ", "  ", "\n", "'s", "'LL", "a", "Z", "9", "\r\n", "\t"]
    return "".join(rng.choice(plain) if rng.random() < 0.5 else chr(rng.randrange(*rng.choice(ranges)))
                   for _ in range(rng.randrange(1, 60)))


def concat_samples(ids, documents, eos, length, no_wrap):
    """LLM Foundry's ConcatTokensDataset."""
    buffer, samples = [], []
    for document in documents:
        buffer = buffer + ids(document) + eos
        while len(buffer) >= length:
            samples.append(buffer[:length])
            buffer = [] if no_wrap else buffer[length:]
    return samples


def main():
    OUT.mkdir(exist_ok=True)
    rng = random.Random(7)
    text = corpus(rng)
    (OUT / "corpus.txt").write_text(text, encoding="utf-8")

    lines = byte_level()
    lines.train([str(OUT / "corpus.txt")], trainer(500))
    whole = byte_level()
    whole.train_from_iterator([text], trainer(420))
    llama3 = byte_level(LLAMA3)
    llama3.train_from_iterator([text], trainer(400))
    llama3.add_tokens([AddedToken("<tool>", lstrip=True, rstrip=True, normalized=False), AddedToken("<pad>"),
                       AddedToken("<pad>  ", normalized=True)])
    tokenizers = {"lines": lines, "whole": whole, "llama3": llama3}

    texts = TEXTS + [random_text(rng) for _ in range(150)]
    encoded = {"texts": texts}
    for name, tokenizer in tokenizers.items():
        tokenizer.save(str(OUT / f"{name}.json"), pretty=True)
        encoded[name] = [tokenizer.encode(t, add_special_tokens=False).ids for t in texts]
    documents = text.split("\n\n") + [text]
    encoded["documents"] = documents
    for no_wrap in (False, True):
        encoded["no_wrap" if no_wrap else "wrap"] = concat_samples(
            lambda d: whole.encode(d, add_special_tokens=False).ids, documents, [0], 64, no_wrap)
    (OUT / "encoded.json").write_text(json.dumps(encoded, ensure_ascii=True, separators=(",", ":")), encoding="utf-8")


main()
