"""Count words, lines and n-grams as DCLM and dolma do: their definitions, not their code.

DCLM (refinedweb.yaml): lines and paragraphs without surrounding white space, n-grams of Unicode's
words. dolma (tagger gopher_v1): lines as they are, blank ones too, and n-grams of which overlaps
count again.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment"

from enum import IntEnum, auto

import numpy as np
import polars as pl
from numba import njit, uint64

from assets.filtered.counting.kernels.split_words import (
    ALPHANUMERIC,
    SPACE,
    Bytes,
    Classes,
    Hashes,
    Integers,
    Words,
    count_copies,
    cut_segments,
    next_word,
    word_classes,
)
from assets.filtered.kernels.ngrams import (
    ALL_NGRAM_COUNTS,
    NGRAM_COUNTS,
    count_ngrams,
    count_overlapping,
)
from assets.filtered.kernels.text_scores import blocks, buffers_of
from assets.text.kernels.compiling import ARRAY_INLINED, ARRAY_KERNEL
from assets.text.kernels.hashing import hash_bytes
from assets.text.kernels.utf8 import count_continuations, decode, last_start
from assets.text.table_rows import table_of

LINE_FEED, DOT, BLANK = 0x0A, 0x2E, 0x20
HASH, ELLIPSIS = ord("#"), ord("…")
STAR, DASH, BULLET, CIRCLE = (ord(mark) for mark in "*-•●")
MAX_MEDIAN = 255  # the length of longer words: no limit is near
ONE, TWO, THREE, FIVE = (uint64(number) for number in (1, 2, 3, 5))


class WordCount(IntEnum):
    """Counts of words between white space and of lines; numba takes the members as integers."""

    WORDS = 0
    WORD_CHARACTERS = auto()
    ALPHABETIC_WORDS = auto()  # with a letter
    COUNTED_WORDS = auto()  # fastText's that begin with a letter or digit
    SYMBOL_WORDS = auto()  # with "#" or "…"
    STOP_WORDS = auto()  # occurrences
    TWICE_MEDIAN_LENGTH = auto()
    LINES = auto()
    LINE_CHARACTERS = auto()
    BULLET_LINES = auto()
    ELLIPSIS_LINES = auto()
    REPEATED_LINES = auto()  # all copies
    REPEATED_LINE_CHARACTERS = auto()
    PARAGRAPHS = auto()
    PARAGRAPH_CHARACTERS = auto()
    REPEATED_PARAGRAPHS = auto()
    REPEATED_PARAGRAPH_CHARACTERS = auto()
    NGRAM_WORD_CHARACTERS = auto()


COLUMNS = tuple(count.name.lower() for count in WordCount)


def count_dclm(
    texts: pl.Series, stop_words: tuple[str, ...], *, ngrams: bool = True
) -> pl.DataFrame:
    """Return the counts of texts (no nulls) as DCLM has them, Int64; stop words in any case."""
    return _count(texts, stop_words, ngrams, is_dclm=True)


def count_dolma(
    texts: pl.Series, stop_words: tuple[str, ...], *, ngrams: bool = True
) -> pl.DataFrame:
    """Return the counts of texts (no nulls) as dolma has them, Int64; stop words as written."""
    return _count(texts, stop_words, ngrams, is_dclm=False)


def _count(
    texts: pl.Series, stop_words: tuple[str, ...], ngrams: bool, *, is_dclm: bool
) -> pl.DataFrame:
    names = NGRAM_COUNTS if is_dclm else NGRAM_COUNTS + ALL_NGRAM_COUNTS
    counts = np.zeros((len(texts), len(WordCount)), np.int64)
    ngram_counts = np.zeros((len(texts), len(names)), np.int64)
    tables = (word_classes(), _hashes_of(stop_words))
    for rows in blocks(texts.str.len_bytes().cast(pl.Int64).to_numpy()):
        starts, data = buffers_of(texts[rows])
        room = 2 * (len(data) // 3 + len(starts)) if ngrams else 0  # "a²a²" has two in three bytes
        words = Words(np.empty(room, np.uint64), np.empty(room, np.uint32))
        kernel = _count_dclm if is_dclm else _count_dolma
        word_offsets = kernel((starts, data), tables, words, counts[rows])
        if ngrams:
            count = count_ngrams if is_dclm else count_overlapping
            count(*words, word_offsets, ngram_counts[rows])
    return table_of(counts, COLUMNS).hstack(table_of(ngram_counts, names))


def _hashes_of(words: tuple[str, ...]) -> Hashes:
    encoded = [np.frombuffer(word.encode(), np.uint8) for word in words]
    hashes = [hash_bytes(word, np.uint64(0), np.uint64(len(word))) for word in encoded]
    return np.array(hashes, np.uint64)


@njit(**ARRAY_KERNEL)
def _count_dclm(
    texts: tuple[Integers, Bytes], tables: tuple[Classes, Hashes], words: Words, counts: Integers
) -> Integers:
    """Fill the counts, and the words if there is room; return word offsets, int64 [n + 1]."""
    (starts, data), (classes, _) = texts, tables
    word_offsets = np.zeros(len(starts), np.int64)
    nothing = Words(words.hashes[:0], words.ends[:0])
    for row in range(len(counts)):
        span = (uint64(starts[row]), uint64(starts[row + 1]))
        _count_words(data, span, tables, nothing, True, counts[row])
        counts[row, WordCount.COUNTED_WORDS] = _counted_words(data, span, classes)
        _count_lines(data, span, classes, True, counts[row])
        _count_paragraphs(data, span, classes, counts[row])
        first = word_offsets[row]
        if len(words.hashes):
            own = Words(words.hashes[first:], words.ends[first:])
            number = cut_segments(data, span, classes, own)
            counts[row, WordCount.NGRAM_WORD_CHARACTERS] = own.ends[number - 1] if number else 0
            word_offsets[row + 1] = first + number
    return word_offsets


@njit(**ARRAY_KERNEL)
def _count_dolma(
    texts: tuple[Integers, Bytes], tables: tuple[Classes, Hashes], words: Words, counts: Integers
) -> Integers:
    """Fill the counts, and the words if there is room; return word offsets, int64 [n + 1]."""
    (starts, data), (classes, _) = texts, tables
    word_offsets = np.zeros(len(starts), np.int64)
    for row in range(len(counts)):
        span = (uint64(starts[row]), uint64(starts[row + 1]))
        first = word_offsets[row]
        own = Words(words.hashes[first:], words.ends[first:])
        _count_words(data, span, tables, own, False, counts[row])
        _count_lines(data, span, classes, False, counts[row])
        if len(words.hashes):
            word_offsets[row + 1] = first + counts[row, WordCount.WORDS]
    return word_offsets


@njit(**ARRAY_KERNEL)
def _count_words(
    data: Bytes,
    span: tuple[int, int],
    tables: tuple[Classes, Hashes],
    words: Words,
    in_any_case: bool,
    counts: Integers,
) -> None:
    """Fill the counts of words between white space, and `words` if it has room."""
    classes, stop_words = tables
    at, stop = span
    lengths = np.zeros(MAX_MEDIAN + 1, np.int64)
    lower = np.empty(64, np.uint8)
    total = 0
    while True:
        word = next_word(data, at, stop, classes)
        if word.start == stop:
            break
        at = word.stop
        if len(words.hashes):
            number = counts[WordCount.WORDS]
            words.hashes[number] = hash_bytes(data, word.start, at)
            words.ends[number] = total + word.characters
        total += word.characters
        counts[WordCount.WORDS] += 1
        counts[WordCount.ALPHABETIC_WORDS] += word.has_letter
        counts[WordCount.SYMBOL_WORDS] += _has_symbol(data, word.start, at)
        lengths[min(word.characters, MAX_MEDIAN)] += 1
        size = at - word.start
        if size <= uint64(len(lower)):
            for i in range(size):
                byte = data[word.start + uint64(i)]
                is_upper = in_any_case and uint64(byte) - uint64(65) < uint64(26)
                lower[i] = byte | 0x20 if is_upper else byte
            key = hash_bytes(lower, uint64(0), size)
            for stop_word in stop_words:
                counts[WordCount.STOP_WORDS] += key == stop_word
    counts[WordCount.WORD_CHARACTERS] = total
    counts[WordCount.TWICE_MEDIAN_LENGTH] = _twice_median(lengths, counts[WordCount.WORDS])


@njit(**ARRAY_KERNEL)
def _counted_words(data: Bytes, span: tuple[int, int], classes: Classes) -> int:
    """Count fastText's words, between ASCII white space, that begin with a letter or digit."""
    at, stop = span
    number, is_after_space = 0, True
    while at < stop:
        code, width = decode(data, at)
        number += is_after_space and (classes[code] & ALPHANUMERIC) != 0
        is_after_space = code == 0 or (code < 0x80 and (classes[code] & SPACE) != 0)
        at += width
    return number


@njit(**ARRAY_INLINED)
def _has_symbol(data: Bytes, at: int, stop: int) -> bool:
    while at < stop:
        code, width = decode(data, at)
        if code in (HASH, ELLIPSIS):
            return True
        at += width
    return False


@njit(**ARRAY_KERNEL)
def _twice_median(lengths: Integers, number: int) -> int:
    """Return the sum of the two middle lengths, the same one twice of an odd number."""
    seen, twice = 0, 0
    for length in range(len(lengths)):
        before, seen = seen, seen + lengths[length]
        for middle in ((number - 1) // 2, number // 2):
            twice += length * (before <= middle < seen)
    return twice


@njit(**ARRAY_KERNEL)
def _count_lines(
    data: Bytes, span: tuple[int, int], classes: Classes, is_dclm: bool, counts: Integers
) -> None:
    """Fill the counts of lines: of DCLM's, stripped and not blank, or of all as they are."""
    start, stop = span
    most = 1
    for i in range(start, stop):
        most += data[i] == LINE_FEED
    keys, lengths, number = np.empty(most, np.uint64), np.empty(most, np.uint32), 0
    at = start
    while at <= stop:
        end = at
        while end < stop and data[end] != LINE_FEED:
            end += ONE
        first, last = _stripped(data, at, end, classes) if is_dclm else (at, end)
        at = end + ONE
        if first < last:
            characters = np.int64(last - first) - np.int64(count_continuations(data, first, last))
            keys[number], lengths[number] = hash_bytes(data, first, last), characters
            counts[WordCount.LINE_CHARACTERS] += characters
            counts[WordCount.BULLET_LINES] += _is_bullet(data, first, is_dclm)
            counts[WordCount.ELLIPSIS_LINES] += _ends_in_ellipsis(data, first, last, is_dclm)
        elif is_dclm:
            continue
        else:
            keys[number], lengths[number] = ONE, 0
        number += 1
    copies, characters = count_copies(keys[:number], lengths[:number])
    counts[WordCount.LINES] = number
    counts[WordCount.REPEATED_LINES] = copies
    counts[WordCount.REPEATED_LINE_CHARACTERS] = characters


@njit(**ARRAY_KERNEL)
def _count_paragraphs(
    data: Bytes, span: tuple[int, int], classes: Classes, counts: Integers
) -> None:
    """Fill the counts of DCLM's paragraphs: stripped, between two line ends in a row."""
    start, stop = span
    most = 1
    for i in range(start, stop):
        most += data[i] == LINE_FEED
    keys, lengths, number = np.empty(most, np.uint64), np.empty(most, np.uint32), 0
    at = start
    while at <= stop:
        end = at
        while end < stop and not (
            data[end] == LINE_FEED and end + ONE < stop and data[end + ONE] == LINE_FEED
        ):
            end += ONE
        first, last = _stripped(data, at, end, classes)
        at = end + TWO
        if first < last:
            characters = np.int64(last - first) - np.int64(count_continuations(data, first, last))
            keys[number], lengths[number] = hash_bytes(data, first, last), characters
            counts[WordCount.PARAGRAPH_CHARACTERS] += characters
            number += 1
    copies, characters = count_copies(keys[:number], lengths[:number])
    counts[WordCount.PARAGRAPHS] = number
    counts[WordCount.REPEATED_PARAGRAPHS] = copies
    counts[WordCount.REPEATED_PARAGRAPH_CHARACTERS] = characters


@njit(**ARRAY_INLINED)
def _stripped(data: Bytes, start: int, stop: int, classes: Classes) -> tuple[int, int]:
    """Return the bounds of data[start:stop] without the white space around it."""
    while start < stop:
        code, width = decode(data, start)
        if not classes[code] & SPACE:
            break
        start += width
    while start < stop:
        at = last_start(data, stop)
        if not classes[decode(data, at)[0]] & SPACE:
            break
        stop = at
    return start, stop


@njit(**ARRAY_INLINED)
def _is_bullet(data: Bytes, at: int, is_dclm: bool) -> bool:
    code = decode(data, at)[0]
    return code in (STAR, DASH) or (is_dclm and code in (BULLET, CIRCLE))


@njit(**ARRAY_INLINED)
def _ends_in_ellipsis(data: Bytes, start: int, stop: int, is_dclm: bool) -> bool:
    """Check for "…" at the end, for DCLM also for "..." and ". . ."."""
    if stop - start < THREE:
        return False
    if data[stop - THREE] == 0xE2 and data[stop - TWO] == 0x80 and data[stop - ONE] == 0xA6:
        return True
    if not is_dclm or data[stop - ONE] != DOT:
        return False
    if data[stop - TWO] == DOT and data[stop - THREE] == DOT:
        return True
    if stop - start < FIVE or data[stop - TWO] != BLANK or data[stop - THREE] != DOT:
        return False
    return data[stop - THREE - ONE] == BLANK and data[stop - FIVE] == DOT
