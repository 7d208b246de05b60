"""Count words, lines, paragraphs and their repetition over the Arrow buffers of a text column.

The counts behind most filter scores. `text_counts` names them, `text_words` counts characters and
words, `text_lines` lines and paragraphs, `ngrams` repeated runs of words.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from numba import njit, uint64

from assets.filtered.kernels.ngrams import NGRAM_COUNTS, count_ngrams
from assets.filtered.kernels.text_lines import count_ellipses, count_lines
from assets.filtered.kernels.text_words import (
    Bytes,
    Count,
    Hashes,
    Integers,
    Positions,
    character_classes,
    count_words,
)
from assets.text.kernels.compiling import ARRAY_KERNEL
from assets.text.table_rows import table_of

BLOCK_BYTES = 1 << 20  # the arrays of a block fit the cache


def count_text(texts: pl.Series, *, ngrams: bool = True) -> pl.DataFrame:
    """Return one Int64 column per count, named in lower case; one row per text (no nulls).

    The columns are those of `Count` and, with `ngrams`, of `kernels.ngrams.NGRAM_COUNTS`.
    """
    counts, ngram_counts, _ = _count_and_work(texts, ngrams)
    frame = table_of(counts, [count.name.lower() for count in Count])
    if not ngrams:
        return frame
    return frame.hstack(table_of(ngram_counts, NGRAM_COUNTS))


def count_work(texts: pl.Series) -> int:
    """Return the number of table slots and n-grams that `count_text` reads, to test linear work."""
    return _count_and_work(texts, True)[2]


def _count_and_work(texts: pl.Series, ngrams: bool) -> tuple[Integers, Integers, int]:
    counts = np.zeros((len(texts), len(Count)), np.int64)
    ngram_counts = np.zeros((len(texts), len(NGRAM_COUNTS)), np.int64)
    words, work = _room_for_words(0), 0
    for rows in blocks(texts.str.len_bytes().cast(pl.Int64).to_numpy()):
        starts, data = buffers_of(texts[rows])
        num_words = (len(data) + len(starts)) // 2 if ngrams else 0  # at most
        if len(words[0]) < num_words:
            words = _room_for_words(num_words)
        texts_and_classes = ((starts, data), character_classes())
        word_offsets, probes = _count_documents(*texts_and_classes, words, counts[rows])
        work += probes
        del data, texts_and_classes  # the tables of a long text come after it
        if ngrams:
            work += sum(count_ngrams(*words, word_offsets, ngram_counts[rows]))
    return counts, ngram_counts, work


def _room_for_words(num_words: int) -> tuple[Hashes, Positions]:
    return np.empty(num_words, np.uint64), np.empty(num_words, np.uint32)


def blocks(num_bytes: Integers) -> Iterator[slice]:
    """Yield runs of rows of at most BLOCK_BYTES, or a single row with a longer text."""
    ends, first = np.cumsum(num_bytes), 0
    while first < len(ends):
        before = ends[first - 1] if first else 0
        last = max(int(np.searchsorted(ends, before + BLOCK_BYTES, "right")), first + 1)
        yield slice(first, last)
        first = last


def buffers_of(texts: pl.Series) -> tuple[Integers, Bytes]:
    array: Any = texts.rechunk().to_arrow()
    _, offsets, data = array.buffers()
    starts = np.frombuffer(offsets, np.int64)[array.offset :][: len(texts) + 1]
    return starts, np.frombuffer(data or b"", np.uint8)


@njit(**ARRAY_KERNEL)
def _count_documents(
    texts: tuple[Integers, Bytes], kinds: Bytes, words: tuple[Hashes, Positions], counts: Integers
) -> tuple[Integers, int]:
    """Fill the counts, and the hash and end of each word if there is room; return word offsets."""
    starts, data = texts
    word_offsets = np.zeros(len(starts), np.int64)
    num_words, probes = 0, 0
    for row in range(len(counts)):
        span = (uint64(starts[row]), uint64(starts[row + 1]))
        own = (words[0][num_words:], words[1][num_words:])
        own_counts = counts[row]
        count_words(data, span, kinds, own, own_counts)
        text = data[starts[row] : starts[row + 1]]
        own_counts[Count.ELLIPSES] = count_ellipses(text, len(text) > own_counts[Count.CHARACTERS])
        probes += count_lines(data, span, kinds, own_counts)
        num_words += own_counts[Count.WORDS] if len(words[0]) else 0
        word_offsets[row + 1] = num_words
    return word_offsets, probes
