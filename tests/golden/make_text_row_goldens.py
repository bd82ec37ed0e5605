"""Writes tests/golden/text_rows/: rows of texts as TorchTitan's HuggingFaceTextDataset gives them.

Made with torchtitan 0.3.0, datasets 5.2.0 and tokenizers 0.22.2; imports of torchtitan that reading texts does not need are left out.

    python tests/golden/make_text_row_goldens.py
"""
import json
import pathlib
import shutil

GOLDEN = pathlib.Path(__file__).parent
OUT = GOLDEN / "text_rows"
TEXTS = ["One text.", "Another, which is longer: it goes on over several rows, as texts do.", "x", "", "Émile's \"third\" text\nhas two lines.", "The end"]
SEQ_LEN = 12


def main():
    from datasets import load_dataset
    from torchtitan.components.tokenizer import HuggingFaceTokenizer
    from torchtitan.hf_datasets import DatasetConfig, text_datasets

    shutil.rmtree(OUT, ignore_errors=True)
    (OUT / "tokenizer").mkdir(parents=True)
    lines = OUT / "texts.jsonl"
    lines.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    shutil.copy(GOLDEN / "tokenizer/whole.json", OUT / "tokenizer/tokenizer.json")
    (OUT / "tokenizer/tokenizer_config.json").write_text(json.dumps({"eos_token": "<|endoftext|>"}) + "\n")
    text_datasets.DATASETS["texts"] = DatasetConfig(
        path=str(lines), loader=lambda path: load_dataset("json", data_files=path, split="train"), sample_processor=lambda sample: sample["text"]
    )
    tokenizer = HuggingFaceTokenizer(HuggingFaceTokenizer.Config(), tokenizer_path=str(OUT / "tokenizer")) if hasattr(
        HuggingFaceTokenizer, "Config"
    ) else HuggingFaceTokenizer(str(OUT / "tokenizer"))
    data = text_datasets.HuggingFaceTextDataset("texts", None, tokenizer, seq_len=SEQ_LEN)
    rows = [{"tokens": row["input"].tolist(), "targets": labels.tolist(), "positions": row["positions"].tolist()} for row, labels in data]
    (OUT / "rows.json").write_text(json.dumps(rows, separators=(",", ":")) + "\n")


main()
