"""What bench/tokenizer.cpp does, with Hugging Face's `tokenizers`: the same arguments, the same output.

RAYON_NUM_THREADS sets its threads. TOKENIZERS_PARALLELISM=false makes it use one.
"""
import array
import sys
import time

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers


def train(path, vocabulary, _threads, out):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(vocab_size=int(vocabulary), min_frequency=2, special_tokens=["<|endoftext|>"],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    start = time.perf_counter()
    tokenizer.train([path], trainer)
    print(time.perf_counter() - start)
    tokenizer.save(out, pretty=True)


def encode(path, text_path, ids_path, threads):
    with open(text_path, encoding="utf-8", newline="") as file:
        text = file.read()
    tokenizer = Tokenizer.from_file(path)
    pieces = cut(text)   # one text of many megabytes takes it longer than parts that fit the processor's caches
    for _ in range(3):
        start = time.perf_counter()
        if int(threads) == 1:
            encodings = [tokenizer.encode(piece, add_special_tokens=False) for piece in pieces]
        else:
            encodings = tokenizer.encode_batch(pieces, add_special_tokens=False)
        print(time.perf_counter() - start)
    with open(ids_path, "wb") as file:
        for encoding in encodings:
            array.array("i", encoding.ids).tofile(file)


def cut(text, size=100_000):
    """Between a letter and the space after it: there the pieces of byte-level BPE end in any case."""
    pieces, begin = [], 0
    while len(text) - begin > 2 * size:
        end = begin + size
        while not (text[end - 1].isascii() and text[end - 1].isalnum() and text[end] in " \n"):
            end += 1
        pieces.append(text[begin:end])
        begin = end
    return pieces + [text[begin:]]


if __name__ == "__main__":
    {"train": train, "encode": encode}[sys.argv[1]](*sys.argv[2:])
