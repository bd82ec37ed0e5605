"""tekken.json of Mistral's models: small ones, and what mistral-common makes of texts with them.

    python tests/golden/make_tekken_goldens.py make              writes tests/golden/tekken/, which the tests read
    python tests/golden/make_tekken_goldens.py check TYCHO 10000   compares TYCHO with the package on its own files, of 131,072 tokens

Made with mistral-common 1.13.1 and tiktoken 0.14.0 from the package's tekken_240911.json, of which the small files have the first
tokens; texts are those of tokenizer_styles.py (tokenizers 0.23.3, sentencepiece 0.2.3). `check` prints the versions it has run with.
"""
import base64
import importlib.metadata
import json
import pathlib
import random
import sys
import tempfile

import mistral_common
from mistral_common.tokens.tokenizers.tekken import SpecialTokenPolicy, Tekkenizer

import tokenizer_styles as styles

OUT = pathlib.Path(__file__).parent / "tekken"
DATA = pathlib.Path(mistral_common.__file__).parent / "data"
# With it, special tokens in texts stay text, as for mistral-common.
CONFIG = json.dumps({"split_special_tokens": True}) + "\n"


def small(version, num_tokens, num_special, special):
    """The first tokens of a real file, of which the last 40 are beyond default_vocab_size."""
    real = json.loads((DATA / "tekken_240911.json").read_text())
    config = {**real["config"], "num_vocab_tokens": num_tokens, "default_vocab_size": num_tokens - 40 + num_special,
              "default_num_special_tokens": num_special, "version": version}
    made = {"config": config, "vocab": real["vocab"][:num_tokens]}
    if special:
        named = Tekkenizer.DEPRECATED_SPECIAL_TOKENS
        made["special_tokens"] = [{**token, "token_str": str(token["token_str"])} for token in named]
        made["special_tokens"].append({"rank": len(named), "token_str": "[THINK]", "is_control": False})
    return made


def make():
    golden = {}
    rng = random.Random(23)
    texts = styles.FIXED + [styles.hostile(rng) for _ in range(45)]
    for name, file in {"v3": small("v3", 1000, 30, False), "v11": small("v11", 700, 1000, True)}.items():
        folder = OUT / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "tekken.json").write_text(json.dumps(file, separators=(",", ":")) + "\n")
        (folder / "tokenizer_config.json").write_text(CONFIG)
        tokenizer = Tekkenizer.from_file(folder / "tekken.json")
        encode = lambda text: tokenizer.encode(text, bos=False, eos=False)
        decode = lambda ids: tokenizer.decode(ids, special_token_policy=SpecialTokenPolicy.KEEP)
        size = tokenizer.n_words
        golden[name] = {"size": size, "begin": tokenizer.encode("a", bos=True, eos=False), "texts": texts,
                        "ids": [encode(text) for text in texts],
                        "tokens": [base64.b64encode(tokenizer.id_to_byte_piece(i, SpecialTokenPolicy.KEEP)).decode()
                                   for i in range(size)],
                        "crc": styles.digests_of([], encode, decode)}
    (OUT / "encoded.json").write_text(json.dumps(golden, ensure_ascii=True, separators=(",", ":")) + "\n")


def check(tycho, count):
    print(*(f"{name} {importlib.metadata.version(name)}" for name in ("mistral-common", "tiktoken")))
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "tokenizer_config.json").write_text(CONFIG)
        for file in sorted(DATA.glob("tekken*.json")):
            path = pathlib.Path(folder) / file.name
            path.write_bytes(file.read_bytes())
            tokenizer = Tekkenizer.from_file(path)
            rng = random.Random(29)
            pieces = [tokenizer.id_to_piece(rng.randrange(1000, tokenizer.n_words)) for _ in range(2000)]
            texts = styles.FIXED + [styles.hostile(rng, pieces) for _ in range(count)]
            texts += ["".join(rng.choice(pieces) for _ in range(rng.randrange(30))) for _ in range(count)]
            ids = [tokenizer.encode(text, bos=False, eos=False) for text in texts]
            bad = styles.compare(file.name, "ids", texts, ids, styles.run(tycho, "encode", path, texts))
            bad += styles.compare(file.name, "texts", ids, [tokenizer.decode(row) for row in ids],
                                  styles.run(tycho, "decode", path, ids))
            print(f"{file.name}: {len(texts)} texts, {bad} differences", flush=True)
            wrong += bad
    sys.exit(1 if wrong else 0)


if sys.argv[1:2] == ["make"]:
    make()
elif sys.argv[1:2] == ["check"] and len(sys.argv) > 3:
    check(sys.argv[2], int(sys.argv[3]))
else:
    sys.exit(__doc__)
