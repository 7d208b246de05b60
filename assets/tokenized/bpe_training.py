"""Training of a byte-level BPE: `tokenizers` defines the result, a faster way to it is used.

On 100 MB and 32,000 entries `tokenizers` takes 58 s of CPU and ours 5 s, for the same file
byte by byte; gigatoken takes 8 s, rustbpe 14 s and gives 1,516 of 31,743 merges at other places
(benchmarks/bpe_training.py, all in one run on a busy machine).
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from assets.tokenized.bpe_merging import (
    NUM_CODES,
    SURROGATES,
    WordCounts,
    learn_merges,
    letter_classes,
)

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Texts = Iterable[Sequence[str] | pl.Series]  # a batch at a time

# Contractions, blanks before words, ties of pairs, words that merge to the same string twice.
PROBE_TEXTS = (
    "It's what they'd said: we'll see, I'VE 'tis don't 'll'll '' 's",
    "the cat  and   the\n\n hat \t that\r\n  sat",
    "3.14 1,000,000 ½ ² x² 第1章 ⅷ٣",
    "你好，世界。今日はカタカナ 안녕하세요 Привет мир مرحبا שלום ไทย हिन्दी é e\u0301",
    "\u00a0a\u2003b\u3000 c\u200b d \u0085 e",
    "aaaaaaa aaa aa abababab bababa abcabcab bcabca cababc",
)


def empty_tokenizer() -> Tokenizer:
    """A byte-level BPE (GPT-2's split) that has learned nothing yet."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def train_with_tokenizers(
    batches: Texts, special_tokens: Sequence[str], vocab_size: int, min_frequency: int
) -> str:
    """The tokenizer.json that `tokenizers` trains."""
    from tokenizers import pre_tokenizers, trainers

    tokenizer = empty_tokenizer()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=min_frequency,
        special_tokens=list(special_tokens),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator((list(batch) for batch in batches), trainer)
    return tokenizer.to_str()


def train_fast(
    batches: Texts, special_tokens: Sequence[str], vocab_size: int, min_frequency: int
) -> str:
    """The same tokenizer.json, with our own loops."""
    from tokenizers import models

    counts = WordCounts()
    for batch in batches:
        counts.add(pl.Series(batch, dtype=pl.String))
    tokens, merges = learn_merges(counts, special_tokens, vocab_size, min_frequency)
    tokenizer = empty_tokenizer()
    tokenizer.model = models.BPE({token: number for number, token in enumerate(tokens)}, merges)
    tokenizer.add_special_tokens(list(special_tokens))
    return tokenizer.to_str()


def train_equal(
    batches: Texts, special_tokens: Sequence[str], vocab_size: int, min_frequency: int
) -> str:
    """The tokenizer.json that `tokenizers` trains, from the fast training if that is equal."""
    train = train_fast if is_fast_exact() else train_with_tokenizers
    return train(batches, special_tokens, vocab_size, min_frequency)


@cache
def is_fast_exact() -> bool:
    """Whether the fast training is equal to that of `tokenizers` on a probe; once per process."""
    texts = [*PROBE_TEXTS, *PROBE_TEXTS[:3], text_of_range_ends()]
    mine, reference = WordCounts(), Counter[bytes]()
    mine.add(pl.Series(texts))
    for text in texts:
        reference.update(reference_words(text))
    is_exact = mine.as_dict() == reference
    for vocab_size, special_tokens in ((400, ["<s>"]), (1000, ["<s>", "the"])):
        settings = ([texts[:-1]], special_tokens, vocab_size, 1)
        is_exact = is_exact and train_fast(*settings) == train_with_tokenizers(*settings)
    if not is_exact:
        message = "our training differs from that of tokenizers on the probe texts: not used"
        warnings.warn(message, stacklevel=3)
    return is_exact


def reference_words(text: str) -> list[bytes]:
    """The words of two bytes or more that `tokenizers` splits a text into."""
    splitter = empty_tokenizer().pre_tokenizer
    assert splitter is not None
    words = (text[start:stop].encode() for _, (start, stop) in splitter.pre_tokenize_str(text))
    return [word for word in words if len(word) > 1]


def text_of_range_ends() -> str:
    """The first and last character of each range of letters, numbers, blanks and others.

    Beside a letter, a number and a mark: where Unicode versions differ, the words do.
    """
    classes = letter_classes()
    starts = np.flatnonzero(np.diff(classes)) + 1
    codes = np.setdiff1d(np.concatenate([starts - 1, starts]), np.arange(NUM_CODES)[SURROGATES])
    return "".join(f"a{chr(code)}1{chr(code)}!{chr(code)}" for code in codes.tolist())
