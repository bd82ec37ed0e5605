"""What `bench_tokenizer encode` does, with tiktoken and the vocabulary of a tokenizer.json that Tycho or `tokenizers` trained.

    tiktoken_bpe.py encode TOKENIZER FILE IDS THREADS
"""
import array
import json
import sys
import time

import tiktoken

from tokenizers_bpe import cut

GPT2 = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""


def byte_of_character():
    plain = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in plain]
    return {**{chr(byte): byte for byte in plain}, **{chr(0x100 + i): byte for i, byte in enumerate(rest)}}


def main(path, text_path, ids_path, threads):
    with open(path, encoding="utf-8") as file:
        state = json.load(file)
    special = {token["content"]: token["id"] for token in state["added_tokens"]}
    to_byte = byte_of_character()
    # Ids grow with the rank of the merge that makes a token, so they are ranks.
    ranks = {bytes(to_byte[c] for c in token): id for token, id in state["model"]["vocab"].items() if token not in special}
    encoding = tiktoken.Encoding("bench", pat_str=GPT2, mergeable_ranks=ranks, special_tokens=special)
    with open(text_path, encoding="utf-8", newline="") as file:
        pieces = cut(file.read())
    for _ in range(3):
        start = time.perf_counter()
        if int(threads) == 1:
            ids = [encoding.encode_ordinary(piece) for piece in pieces]
        else:
            ids = encoding.encode_ordinary_batch(pieces, num_threads=int(threads))
        print(time.perf_counter() - start)
    with open(ids_path, "wb") as file:
        for part in ids:
            array.array("i", part).tofile(file)


assert sys.argv[1] == "encode"
main(*sys.argv[2:])
