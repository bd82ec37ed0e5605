"""Writes tests/golden/tokenizer/normalizers.json: texts in the normal forms of Unicode, and what tokenizer/whole.json makes of them
when such a form is its normalizer. Made with tokenizers 0.23.3.

    python tests/golden/make_normalizer_goldens.py
"""
import json
import pathlib
import random

from tokenizers import AddedToken, Tokenizer, normalizers

OUT = pathlib.Path(__file__).parent / "tokenizer"
FORMS = {"NFC": normalizers.NFC(), "NFD": normalizers.NFD(), "NFKC": normalizers.NFKC(), "NFKD": normalizers.NFKD()}
TEXTS = ["", "plain", "e\u0301", "\u00e9", "a\u0323\u0307 a\u0307\u0323", "\u1100\u1161\u11a8 \uac01", "\u0958 \u0915\u093c", "ﬁ ½ ² ｆｕｌｌ",
         "\u212b \u2126", "\U0001d15e", "\u0344 \u0f73", "cafe\u0301<|endoftext|>cafe\u0301", "x<\u0065\u0301>y <\u00e9>", "\u0301 alone"]
RANGES = [(0x41, 0x7A), (0xC0, 0x24F), (0x300, 0x36F), (0x300, 0x36F), (0x370, 0x3FF), (0x900, 0x97F), (0x1100, 0x11FF), (0x1E00, 0x1EFF),
          (0x2150, 0x218F), (0x3040, 0x30FF), (0xAC00, 0xAC40), (0xF900, 0xFA0D), (0xFB00, 0xFB06), (0xFF00, 0xFFEF)]


def main():
    rng = random.Random(3)
    texts = TEXTS + ["".join(" " if rng.random() < 0.15 else chr(rng.randrange(*rng.choice(RANGES)))
                             for _ in range(rng.randrange(1, 30))) for _ in range(60)]
    golden = {"texts": texts}
    for name, form in FORMS.items():
        tokenizer = Tokenizer.from_file(str(OUT / "whole.json"))
        tokenizer.normalizer = form
        # Searched in the normalised text, and normalised itself.
        tokenizer.add_tokens([AddedToken("<e\u0301>", normalized=True)])
        golden[name] = {"normal": [form.normalize_str(text) for text in texts],
                        "ids": [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]}
    (OUT / "normalizers.json").write_text(json.dumps(golden, ensure_ascii=True, separators=(",", ":")) + "\n")


main()
