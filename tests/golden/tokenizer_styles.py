"""Tokenizers of every style that Tycho reads, trained on tests/golden/tokenizer/corpus.txt, and hostile texts for them.

    python tests/golden/tokenizer_styles.py make             writes tests/golden/tokenizer_styles/, which the tests read
    python tests/golden/tokenizer_styles.py digests          writes hostile.json there: what the packages make of 10,000 texts more
    python tests/golden/tokenizer_styles.py check TYCHO 10000            compares TYCHO with the packages on 10,000 texts of each style
    python tests/golden/tokenizer_styles.py check TYCHO 10000 FILE ...   the same for tokenizer.json and .model files of real models

Made with tokenizers 0.23.3 and sentencepiece 0.2.3; `check` prints the versions it has run with.
"""
import io
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import zlib

import sentencepiece
import tokenizers
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)

HERE = pathlib.Path(__file__).parent
OUT = HERE / "tokenizer_styles"
CORPUS = HERE / "tokenizer" / "corpus.txt"
CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LLAMA3 = (CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")
GPT4O = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + CONTRACTIONS + "?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + CONTRACTIONS + "?|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = [r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+",
            "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
            " ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"]
FLAGGED = [AddedToken("<tool>", lstrip=True, rstrip=True, normalized=False), AddedToken("<pad>", special=True),
           AddedToken("<pad>  ", normalized=True), AddedToken("token", single_word=True, normalized=False),
           AddedToken("É", normalized=True), AddedToken("<x>", rstrip=True), AddedToken("rate", single_word=True, lstrip=True, normalized=True)]

# The library panics where such a token begins in white space that a token with rstrip took along.
SPACED = [AddedToken("  ", normalized=True), AddedToken("   ", normalized=True), AddedToken(" <", lstrip=True, normalized=False),
          AddedToken("<tool>", lstrip=True, normalized=False)]


def bytes_of(*steps, use_regex=True, prefix=False):
    last = pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=use_regex)
    return pre_tokenizers.Sequence([*steps, last]) if steps else last


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(pattern), behavior, invert)


def trained(tokenizer, size=400, special=("<|endoftext|>",), alphabet=True):
    trainer = trainers.BpeTrainer(vocab_size=size, min_frequency=2, special_tokens=list(special), show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if alphabet else [])
    tokenizer.train_from_iterator([CORPUS.read_text(encoding="utf-8")], trainer)
    return tokenizer


def byte_level(pre_tokenizer, normalizer=None, template=None, added=FLAGGED, **model):
    tokenizer = Tokenizer(models.BPE(**model))
    tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer = trained(tokenizer, special=["<|endoftext|>", "<|begin|>"])
    tokenizer.add_tokens(added)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    if template:
        tokenizer.post_processor = processors.Sequence([
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(single=template, special_tokens=[("<|begin|>", 1), ("<|endoftext|>", 0)])])
    return tokenizer


def characters(normalizer, pre_tokenizer, decoder, byte_fallback=True):
    tokenizer = Tokenizer(models.BPE(byte_fallback=byte_fallback, fuse_unk=True, unk_token="<unk>"))
    if normalizer:
        tokenizer.normalizer = normalizer
    # Words are learnt one by one, as SentencePiece does.
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=True) if byte_fallback else pre_tokenizer
    special = ["<unk>", "<s>", "</s>"]
    values = [f"<0x{byte:02X}>" for byte in range(256)] if byte_fallback else []
    trained(tokenizer, 620 if byte_fallback else 300, special + values, alphabet=False)
    state = json.loads(tokenizer.to_str())
    state["added_tokens"] = state["added_tokens"][:3]
    tokenizer = Tokenizer.from_str(json.dumps(state))
    if byte_fallback and pre_tokenizer is None:
        state["pre_tokenizer"] = None
        tokenizer = Tokenizer.from_str(json.dumps(state))
    else:
        tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoder
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return tokenizer


def llama2_decoder():
    return decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])


def styles():
    digits = pre_tokenizers.Digits(individual_digits=True)
    llama2 = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    odd = normalizers.Sequence([
        normalizers.Strip(left=True, right=False), normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase(),
        normalizers.Replace(Regex(r"\s{2,}"), " "), normalizers.Replace("``", '"')])
    return {
        "gpt2": byte_level(bytes_of()),
        "gpt2_prefix": byte_level(bytes_of(prefix=True)),
        "neox": byte_level(bytes_of(), normalizers.NFC(), added=SPACED),
        "llama3": byte_level(bytes_of(split(LLAMA3), use_regex=False), template="<|begin|> $A", ignore_merges=True),
        "qwen2": byte_level(bytes_of(split(QWEN2), use_regex=False), normalizers.NFC()),
        "smollm": byte_level(bytes_of(digits), template="$A <|endoftext|>"),
        "gpt4o": byte_level(bytes_of(split(GPT4O), use_regex=False)),
        "deepseek": byte_level(bytes_of(*(split(p) for p in DEEPSEEK), use_regex=False)),
        "falcon": byte_level(pre_tokenizers.Sequence([
            pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(add_prefix_space=False),
            pre_tokenizers.Digits(individual_digits=False), split("[0-9][0-9][0-9]")])),
        "nfkc": byte_level(bytes_of(), normalizers.Sequence([normalizers.NFKC(), normalizers.Sequence([normalizers.NFKD()])])),
        "odd": byte_level(bytes_of(pre_tokenizers.WhitespaceSplit(), split(r"[aeiou]+?x?|\d{2,3}+", "merged_with_previous"),
                                   pre_tokenizers.Split("th", "merged_with_next"), prefix=True), odd),
        "invert": byte_level(bytes_of(split(r"\w+|[^\w\s]+", "removed", True), split(r"(?>a+)b|^.|(?:xy|\h)*$", "contiguous"),
                                      use_regex=False)),
        "llama2": characters(llama2, None, llama2_decoder()),
        "llama2_first": characters(None, pre_tokenizers.Metaspace(prepend_scheme="first", split=False), llama2_decoder()),
        "metaspace": characters(None, pre_tokenizers.Metaspace(prepend_scheme="always", split=True),
                                decoders.Metaspace(prepend_scheme="always"), byte_fallback=False),
        "metaspace_never": characters(normalizers.NFKC(), pre_tokenizers.Metaspace(prepend_scheme="never", split=True),
                                      decoders.Metaspace(prepend_scheme="never")),
    }


def piece_models():
    """tokenizer.model files by name."""
    kinds = {"llama2": dict(normalization_rule_name="identity", remove_extra_whitespaces=False),
             "user": dict(normalization_rule_name="identity", remove_extra_whitespaces=True,
                          user_defined_symbols=["<tool>", "▁▁", "café", " x"]),
             "no_prefix": dict(normalization_rule_name="identity", add_dummy_prefix=False, remove_extra_whitespaces=False,
                               split_by_whitespace=False),
             "no_bytes": dict(normalization_rule_name="identity", byte_fallback=False, pad_id=3, control_symbols=["[INST]"])}
    lines = CORPUS.read_text(encoding="utf-8").split("\n")
    made = {}
    for name, options in kinds.items():
        model = io.BytesIO()
        options = {"byte_fallback": True, **options}
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_writer=model, model_type="bpe", num_threads=1, minloglevel=2,
            vocab_size=600 if options["byte_fallback"] else 320, character_coverage=0.98, **options)
        made[name] = model.getvalue()
    return made


RANGES = [(0, 0x7F), (0x20, 0x7E), (0x80, 0x24F), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x4FF), (0x5D0, 0x6FF), (0x900, 0x97F),
          (0x1100, 0x11FF), (0x1C80, 0x1C8F), (0x1E00, 0x1FFF), (0x2000, 0x206F), (0x2150, 0x218F), (0x24B0, 0x24F0), (0x2580, 0x2590),
          (0x3000, 0x30FF), (0x4E00, 0x4EFF), (0xA7C0, 0xA7FF), (0xAC00, 0xACFF), (0xE000, 0xE010), (0xF900, 0xFAFF), (0xFB00, 0xFB06),
          (0xFF00, 0xFFFD), (0x10000, 0x10FFF), (0x1D400, 0x1D7FF), (0x1F100, 0x1F64F), (0xE0000, 0xE007F), (0x10FFF0, 0x10FFFF)]
PLAIN = [" ", " ", "  ", "   ", "\n", "\r\n", "\t", "'s", "'LL", "'ſ", "a", "Z", "9", "12", "x", "\u00a0", "\u3000", "\u200d", "_", "▁",
         "-", "``", "th", "ab", "é", "e\u0301", "ß", "İ", "ǅ", "½", "１", "한", "0x", "<0x41>", "\u0000", "\u0085", "、", "…"]
WORDS = ["<|endoftext|>", "<|begin|>", "<tool>", "<pad>", "<pad>  ", "<s>", "</s>", "<unk>", "<x>", "<|", "token", "tokens", "token_",
         "rate", " rate", "learning", "the", "model's", "café", "данные", "训练", "3.14", "2048", "std::vector", "[INST]", "É", "E\u0301"]


def hostile(rng, words=()):
    kind = rng.random()
    parts = []
    for _ in range(rng.randrange(0, 30)):
        pick = rng.random()
        if pick < 0.4:
            parts.append(rng.choice(PLAIN))
        elif pick < 0.65:
            parts.append(rng.choice(WORDS + list(words)))
        elif pick < 0.7:
            parts.append(rng.choice(PLAIN) * rng.randrange(2, 40))
        else:
            parts.append(chr(rng.randrange(*rng.choice(RANGES))))
        if kind < 0.3:
            parts.append(" ")
    return "".join(c for c in "".join(parts) if not 0xD800 <= ord(c) < 0xE000)


FIXED = ["", " ", "  ", "\n", "a", " a", "a ", "  a  b  ", "Hello, world!", "it's IT'S we'Ve", "x=1234567890", "<s>a</s>", "<tool>",
         " <tool> <tool>  a", "a <tool>\n b", "tokens token token", "<|endoftext|><|begin|>", "word" * 40, " " * 100 + "x", "1 2  3",
         "３４５ ½²", "\u0085x\u2028", "▁▁a ▁b", "<0x41><0x0A>", "日本語のテキスト", "\U0010ffff", "e\u0301é", "İSTANBUL ẞ ſ", "!!!\n\n???\r\n"]


def run(tycho, verb, path, lines, *options):
    text = "".join(json.dumps(line) + "\n" for line in lines)
    done = subprocess.run([tycho, "tokenizer", verb, str(path), "--lines", *options], input=text, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{tycho} tokenizer {verb} {path} failed: {done.stderr[-500:]}")
    return [json.loads(line) for line in done.stdout.split("\n")[:-1]]


def compare(name, what, inputs, wanted, given):
    wrong = [i for i in range(len(inputs)) if wanted[i] != given[i]]
    if wrong:
        i = min(wrong, key=lambda j: len(inputs[j]))
        print(f"{name} {what}: {len(wrong)} of {len(inputs)} differ, such as {inputs[i]!r}:\n  wanted {wanted[i]}\n  given  {given[i]}")
    return len(wrong)


def valid_runs(tokenizer, ids):
    """Bytes of <0x..> tokens in a row are UTF-8: for others `tokenizers` gives U+FFFD for each byte of the row, valid or not."""
    run_bytes = b""
    for token in [tokenizer.id_to_token(i) or "" for i in ids] + [""]:
        if len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
            run_bytes += bytes([int(token[3:5], 16)])
            continue
        try:
            run_bytes.decode()
        except UnicodeDecodeError:
            return False
        run_bytes = b""
    return True


def check_hugging_face(tycho, name, path, texts):
    tokenizer = Tokenizer.from_file(str(path))
    bare = [tokenizer.encode(t, add_special_tokens=False).ids for t in texts]
    wrong = compare(name, "ids", texts, bare, run(tycho, "encode", path, texts))
    wrong += compare(name, "ids with added tokens", texts, [tokenizer.encode(t).ids for t in texts],
                     run(tycho, "encode", path, texts, "--added-tokens"))
    rng = random.Random(5)
    known = sorted(tokenizer.get_vocab().values())
    drawn = bare + [[rng.choice(known) for _ in range(rng.randrange(1, 12))] for _ in range(len(texts))]
    drawn = [ids for ids in drawn if valid_runs(tokenizer, ids)]
    for option, skip in (((), False), (("--skip-special",), True)):
        wrong += compare(name, f"texts {option}", drawn, [tokenizer.decode(ids, skip_special_tokens=skip) for ids in drawn],
                         run(tycho, "decode", path, drawn, *option))
    return wrong


def check_piece_model(tycho, name, path, texts):
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    ids = [processor.encode(t) for t in texts]
    wrong = compare(name, "ids", texts, ids, run(tycho, "encode", path, texts))
    # Unknown pieces come back as " ⁇ " there, as their name here.
    plain = [row for row in ids if processor.unk_id() not in row]
    return wrong + compare(name, "texts", plain, [processor.decode(row) for row in plain], run(tycho, "decode", path, plain))


def check(tycho, count, paths):
    print(f"tokenizers {tokenizers.__version__}, sentencepiece {sentencepiece.__version__}")
    rng = random.Random(17)
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        if not paths:
            for name, tokenizer in styles().items():
                paths.append(pathlib.Path(folder) / f"{name}.json")
                tokenizer.save(str(paths[-1]))
            for name, model in piece_models().items():
                paths.append(pathlib.Path(folder) / f"{name}.model")
                paths[-1].write_bytes(model)
        for path in map(pathlib.Path, paths):
            is_json = path.read_bytes()[:1] == b"{"
            words = [t["content"] for t in json.loads(path.read_text())["added_tokens"]][:50] if is_json else []
            texts = FIXED + [hostile(rng, words) for _ in range(count)]
            bad = (check_hugging_face if is_json else check_piece_model)(tycho, path.name, path, texts)
            print(f"{path.name}: {len(texts)} texts, {bad} differences", flush=True)
            wrong += bad
    sys.exit(1 if wrong else 0)


def make():
    OUT.mkdir(exist_ok=True)
    rng = random.Random(11)
    texts = FIXED + [hostile(rng) for _ in range(45)]
    golden = {"texts": texts}
    for name, tokenizer in styles().items():
        tokenizer.save(str(OUT / f"{name}.json"), pretty=False)
        bare = [tokenizer.encode(t, add_special_tokens=False).ids for t in texts]
        golden[name] = {"ids": bare, "texts": [tokenizer.decode(ids, skip_special_tokens=False) for ids in bare],
                        "added": tokenizer.encode("a").ids}
    for name, model in piece_models().items():
        (OUT / f"{name}.model").write_bytes(model)
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        ids = [processor.encode(t) for t in texts]
        golden[name + ".model"] = {"ids": ids, "texts": [processor.decode(row) for row in ids], "unknown": processor.unk_id()}
    (OUT / "encoded.json").write_text(json.dumps(golden, ensure_ascii=True, separators=(",", ":")) + "\n")


class HostileTexts:
    """Texts that tests/trainer/data/tokenizer/hostile_texts.h makes too, so that they need not be kept."""

    def __init__(self, words):
        self.words, self.state = WORDS + words, 0

    def below(self, bound):
        self.state = (self.state + 0x9E3779B97F4A7C15) % 2**64
        mixed = self.state
        mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % 2**64
        return (mixed ^ mixed >> 31) % bound

    def next(self):
        text, spaced = "", self.below(10) < 3
        for _ in range(self.below(30)):
            kind = self.below(20)
            if kind < 8:
                text += PLAIN[self.below(len(PLAIN))]
            elif kind < 13:
                text += self.words[self.below(len(self.words))]
            elif kind < 14:
                text += PLAIN[self.below(len(PLAIN))] * (2 + self.below(38))
            else:
                low, high = RANGES[self.below(len(RANGES))]
                text += chr(low + self.below(high - low))
            text += " " if spaced else ""
        return text


HOSTILE_TEXTS, HOSTILE_BLOCK = 10000, 500


def digests_of(words, encode, decode):
    texts, out = HostileTexts(words), []
    for _ in range(HOSTILE_TEXTS // HOSTILE_BLOCK):
        numbers = []
        for _ in range(HOSTILE_BLOCK):
            ids = encode(texts.next())
            decoded = decode(ids).encode()
            numbers += [len(ids), *ids, len(decoded), *decoded]
        out.append(zlib.crc32(struct.pack(f"<{len(numbers)}Q", *numbers)))
    return out


def digests():
    styles = {}
    for path in sorted(OUT.iterdir()):
        if path.suffix == ".model":
            processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
            # Unknown pieces come back as " ⁇ " there, as their name here.
            decode = lambda ids: "" if processor.unk_id() in ids else processor.decode(ids)
            styles[path.name] = {"words": [], "unknown": processor.unk_id(), "crc": digests_of([], processor.encode, decode)}
        elif path.name not in ("encoded.json", "hostile.json"):
            tokenizer = Tokenizer.from_file(str(path))
            words = [token["content"] for token in json.loads(path.read_text())["added_tokens"]][:50]
            styles[path.name] = {"words": words, "crc": digests_of(
                words, lambda text: tokenizer.encode(text, add_special_tokens=False).ids,
                lambda ids: tokenizer.decode(ids, skip_special_tokens=False))}
        print(path.name, flush=True)
    tables = {"plain": PLAIN, "words": WORDS, "ranges": RANGES, "block": HOSTILE_BLOCK}
    (OUT / "hostile.json").write_text(json.dumps({**tables, "styles": styles}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["make"]:
        make()
    elif sys.argv[1:2] == ["digests"]:
        digests()
    elif sys.argv[1:2] == ["check"] and len(sys.argv) > 3:
        check(sys.argv[2], int(sys.argv[3]), sys.argv[4:])
    else:
        sys.exit(__doc__)
