"""Trainers of byte-level BPE on the same real documents: CPU seconds, and whose merges are equal.

    python benchmarks/bpe_training.py FOLDER [MEGABYTES] [VOCABULARY]

* tokenizers: the definition of what the stage gives.
* ours: `train_fast`; its tokenizer.json must be that of `tokenizers`, byte by byte.
* gigatoken, rustbpe, where they are installed: how many of their merges give the same token as that
  of `tokenizers` at the same place. gigatoken reads the texts from a Parquet file.
Each splits as GPT-2 does and takes pairs that occur twice or more (rustbpe: once or more).
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import polars as pl
from corpus_texts import read_texts

sys.path.insert(0, str(Path(__file__).parent.parent))
from assets.tokenized.bpe_merging import spelling
from assets.tokenized.bpe_training import is_fast_exact, train_fast, train_with_tokenizers

END = "<|endoftext|>"
GPT2_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def gigatoken_tokens(path: Path, vocab_size: int) -> list[bytes]:
    """Tokens in the order in which gigatoken merges them."""
    from gigatoken import ParquetFileSource, train_bpe

    source = ParquetFileSource([str(path)], "text")
    with contextlib.redirect_stdout(sys.stderr):
        _, merges = train_bpe(source, vocab_size, [END])
    return [first + second for first, second in merges]


def rustbpe_tokens(texts: pl.Series, vocab_size: int) -> list[bytes]:
    """Tokens in the order in which rustbpe merges them; it has no special tokens."""
    from rustbpe import Tokenizer

    tokenizer = Tokenizer()
    tokenizer.train_from_iterator(iter(texts.to_list()), vocab_size - 1, pattern=GPT2_PATTERN)
    ranked = sorted(tokenizer.get_mergeable_ranks(), key=lambda pair: pair[1])
    return [bytes(token) for token, _ in ranked][256:]


def tokens_of(tokenizer_json: str) -> list[bytes]:
    """Tokens in the order of the merges of a tokenizer.json."""
    return [
        spelling(first + second) for first, second in json.loads(tokenizer_json)["model"]["merges"]
    ]


def timed(train: Callable[[], object]) -> tuple[object, float]:
    """(result, CPU seconds of all threads)."""
    begin = time.process_time()
    return train(), time.process_time() - begin


def main() -> None:
    """Train with each on the documents of a folder."""
    megabytes = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    vocab_size = int(sys.argv[3]) if len(sys.argv) > 3 else 32_000
    texts = read_texts(Path(sys.argv[1]), megabytes * 1_000_000)["text"].rechunk()
    print(f"{texts.str.len_bytes().sum() / 1e6:.1f} MB, {len(texts):,} documents, {vocab_size:,}")
    assert is_fast_exact()  # also compiles the kernels
    settings = ([texts], [END], vocab_size, 2)
    ours, seconds = timed(lambda: train_fast(*settings))
    print(f"{'ours':12} {seconds:6.2f} s")
    reference, seconds = timed(lambda: train_with_tokenizers(*settings))
    print(f"{'tokenizers':12} {seconds:6.2f} s   tokenizer.json equal to ours: {ours == reference}")
    wanted = tokens_of(str(reference))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "texts.parquet"
        texts.to_frame("text").write_parquet(path)
        others = {
            "gigatoken": lambda: gigatoken_tokens(path, vocab_size),
            "rustbpe": lambda: rustbpe_tokens(texts, vocab_size),
        }
        for name, train in others.items():
            if find_spec(name) is None:
                print(f"{name:12} not installed")
                continue
            found, seconds = timed(train)
            same = sum(a == b for a, b in zip(found, wanted, strict=False))
            shared = len(set(found) & set(wanted))
            print(
                f"{name:12} {seconds:6.2f} s   {same:,} of {len(wanted):,} merges at the same "
                f"place, {shared:,} at any"
            )


if __name__ == "__main__":
    main()
