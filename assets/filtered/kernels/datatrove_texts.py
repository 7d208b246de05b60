"""Count a block of texts as datatrove 0.10 does: words, lines, and repeated runs of words.

The most frequent n-gram is the first of equally frequent ones, with the blanks between its words,
even if it occurs once. Of the others, those count that came before, from left to right, and the
next one begins after them.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

from enum import IntEnum, auto
from typing import NamedTuple

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from assets.filtered.kernels.datatrove_words import TokenCount, count_tokens
from assets.filtered.kernels.line_scan import skip, trim
from assets.filtered.kernels.ngrams import DUPLICATE_SIZES, TOP_SIZES
from assets.filtered.kernels.sign_masks import SPACE, TERMINAL, Classes
from assets.filtered.kernels.text_lines import (
    PROBE_LIMIT,
    count_ellipses,
    ends_in_ellipsis,
)
from assets.filtered.kernels.text_words import SHORT_LINE_CHARS, count_characters
from assets.text.kernels.compiling import ARRAY_INLINED, ARRAY_KERNEL
from assets.text.kernels.hashing import hash_bytes, join
from assets.text.kernels.many_bytes import ONE, find_byte
from assets.text.kernels.utf8 import count_continuations, decode, last_start

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]
Hashes = NDArray[np.uint64]

NEWLINE, CARRIAGE_RETURN, BULLET, DASH = 0x0A, 0x0D, 0x2022, 0x2D
PARAGRAPH = uint64(0x9E3779B97F4A7C15)  # no paragraph is equal to a line
FIRST_SLOTS = 64


class LineKind(IntEnum):
    """Counts of lines, in the order of the columns; numba takes the members as integers."""

    CHARACTERS = 0
    NEWLINES = auto()
    HASHES = auto()  # "#"
    SPLIT_LINES = auto()  # of str.splitlines
    BULLET_LINES = auto()
    ELLIPSIS_LINES = auto()
    LINES = auto()  # between runs of "\n"
    DUPLICATE_LINES = auto()
    DUPLICATE_LINE_CHARACTERS = auto()
    FILLED_LINES = auto()  # not of white space alone
    TERMINAL_LINES = auto()
    SHORT_LINES = auto()
    DUPLICATE_FILLED_CHARACTERS = auto()
    PARAGRAPHS = auto()  # between runs of two "\n" or more
    DUPLICATE_PARAGRAPHS = auto()
    DUPLICATE_PARAGRAPH_CHARACTERS = auto()


@njit(**ARRAY_KERNEL)
def count_raw_lines(data: Bytes, span: tuple[int, int], kinds: Classes, counts: Integers) -> None:
    """Fill `counts`, int64 [LineKind], for the text data[span] of uint64 bounds."""
    start, stop = span
    count_characters(data, span, counts)
    if start == stop:
        return
    _count_split_lines(data, span, kinds, counts)
    slots = FIRST_SLOTS
    while slots < 4 * (counts[LineKind.NEWLINES] + 1):
        slots *= 2
    seen = np.zeros(slots, np.uint64)
    _count_lines(data, span, kinds, seen, counts)
    _count_paragraphs(data, span, kinds, seen, counts)


@njit(**ARRAY_KERNEL)
def _count_split_lines(
    data: Bytes, span: tuple[int, int], kinds: Classes, counts: Integers
) -> None:
    start, stop = span
    while start < stop:
        end = start
        width = uint64(0)
        while end < stop:
            width = _break_at(data, end, stop)
            if width:
                break
            end += ONE
        counts[LineKind.SPLIT_LINES] += 1
        first, last = trim(data, start, end, kinds, SPACE)
        if first < last:
            code, _ = decode(data, first)
            counts[LineKind.BULLET_LINES] += (code == BULLET) | (code == DASH)
            counts[LineKind.ELLIPSIS_LINES] += ends_in_ellipsis(data, first, last)
        start = end + width


@njit(**ARRAY_INLINED)
def _break_at(data: Bytes, at: int, stop: int) -> int:
    """Return the bytes of the line break of `str.splitlines` at a byte, 0 for none."""
    byte = data[at]
    if byte > 0x1E and byte != 0xC2 and byte != 0xE2:
        return uint64(0)
    if byte == CARRIAGE_RETURN and at + ONE < stop and data[at + ONE] == NEWLINE:
        return uint64(2)
    if 0x0A <= byte <= 0x0D or 0x1C <= byte <= 0x1E:
        return ONE
    if byte == 0xC2:
        return uint64(2) * uint64(data[at + ONE] == 0x85)
    is_separator = byte == 0xE2 and data[at + ONE] == 0x80 and data[at + uint64(2)] & 0xFE == 0xA8
    return uint64(3) * uint64(is_separator)


@njit(**ARRAY_KERNEL)
def _count_lines(
    data: Bytes, span: tuple[int, int], kinds: Classes, seen: Hashes, counts: Integers
) -> None:
    start, stop = span
    edges = np.int64(data[start] == NEWLINE) + np.int64(data[stop - ONE] == NEWLINE)
    counts[LineKind.LINES] += edges  # re.split leaves an empty line at each edge
    counts[LineKind.DUPLICATE_LINES] += edges == 2
    while start < stop:
        end = find_byte(data, (start, stop), NEWLINE)
        if end > start:
            length = _length(data, start, end)
            is_copy = _enter(seen, hash_bytes(data, start, end))
            counts[LineKind.LINES] += 1
            counts[LineKind.DUPLICATE_LINES] += is_copy
            counts[LineKind.DUPLICATE_LINE_CHARACTERS] += is_copy * length
            if skip(data, start, end, kinds, SPACE)[0] < end:
                counts[LineKind.FILLED_LINES] += 1
                counts[LineKind.DUPLICATE_FILLED_CHARACTERS] += is_copy * length
                last = kinds[decode(data, last_start(data, end))[0]]
                counts[LineKind.TERMINAL_LINES] += (last & TERMINAL) != 0
                counts[LineKind.SHORT_LINES] += length <= SHORT_LINE_CHARS
        start = end + ONE


@njit(**ARRAY_KERNEL)
def _count_paragraphs(
    data: Bytes, span: tuple[int, int], kinds: Classes, seen: Hashes, counts: Integers
) -> None:
    start, stop = trim(data, span[0], span[1], kinds, SPACE)
    if start == stop:
        counts[LineKind.PARAGRAPHS] = 1
        return
    first = start
    while first < stop:
        end = find_byte(data, (start, stop), NEWLINE)
        after = end
        while after < stop and data[after] == NEWLINE:
            after += ONE
        if end == stop or after > end + ONE:
            is_copy = _enter(seen, hash_bytes(data, first, end) ^ PARAGRAPH)
            counts[LineKind.PARAGRAPHS] += 1
            counts[LineKind.DUPLICATE_PARAGRAPHS] += is_copy
            length = _length(data, first, end)
            counts[LineKind.DUPLICATE_PARAGRAPH_CHARACTERS] += is_copy * length
            first = after
        start = after


@njit(**ARRAY_INLINED)
def _length(data: Bytes, start: int, stop: int) -> int:
    return np.int64(stop - start) - np.int64(count_continuations(data, start, stop))


@njit(**ARRAY_INLINED)
def _enter(seen: Hashes, key: int) -> int:
    """Enter a key in a table that is at most half full; return 1 if it was there.

    A key that finds no slot within PROBE_LIMIT is not entered.
    """
    key = max(key, ONE)
    slot = _slot(seen, seen, key)
    if seen[slot] == 0:
        seen[slot] = key
        return 0
    return np.int64(seen[slot] == key)


FIRST_LINE = len(TokenCount)
ELLIPSES = FIRST_LINE + len(LineKind)
FIRST_COUNT = uint64(1 << 32)


class Tables(NamedTuple):
    """Tables to count a text with: classes of characters and of marks, hashes of stop words."""

    kinds: Classes
    classes: Classes  # [2, codes]
    stop_words: Hashes
    has_ngrams: bool


@njit(**ARRAY_KERNEL)
def count_texts(
    data: Bytes, starts: Integers, keeps_hyphens: Integers, tables: Tables, counts: Integers
) -> None:
    """Fill `counts`, int64 [n, columns], for n texts with `starts`, int64 [n + 1].

    Columns: TokenCount, LineKind, ellipses, and `ngrams.NGRAM_COUNTS`. `keeps_hyphens`: 1 for a
    text in a language whose words with hyphens are one word, else 0.
    """
    room = np.diff(starts).max()
    words = np.empty(room, np.uint64), np.empty(room, np.int64)
    for row in range(len(counts)):
        span, own = (uint64(starts[row]), uint64(starts[row + 1])), counts[row]
        own_tables = (tables.classes[keeps_hyphens[row]], tables.stop_words)
        total = count_tokens(data, span, own_tables, words, own)
        count_raw_lines(data, span, tables.kinds, own[FIRST_LINE:])
        text = data[starts[row] : starts[row + 1]]
        own[ELLIPSES] = count_ellipses(text, len(text) > own[FIRST_LINE])
        if tables.has_ngrams:
            _count_ngrams(words[0][:total], words[1][:total], own[ELLIPSES + 1 :])


@njit(**ARRAY_KERNEL)
def _count_ngrams(hashes: Hashes, ends: Integers, counts: Integers) -> None:
    """Fill `counts`, int64 [len(NGRAM_COUNTS)]."""
    slots = 4
    while slots < 2 * len(hashes):
        slots *= 2
    table = np.empty(slots, np.uint64), np.empty(slots, np.uint64)
    grams = hashes.copy()
    for size in range(2, DUPLICATE_SIZES[-1] + 1):
        number = len(hashes) - size + 1
        if number < 1:
            break
        for i in range(number):
            # The n-gram at i, longer by its last word.
            grams[i] = join(grams[i], hashes[i + size - 1])
        if size <= TOP_SIZES[-1]:
            counts[size - 2] = _top(grams[:number], ends, size, table)
        else:
            counts[size - 2] = _later_copies(grams[:number], ends, size, table[0])


@njit(**ARRAY_KERNEL)
def _top(grams: Hashes, ends: Integers, size: int, table: tuple[Hashes, Hashes]) -> int:
    """Return the characters of the most frequent n-gram, times its occurrences."""
    keys, values = table
    values[:] = 0
    most = FIRST_COUNT
    for i in range(len(grams)):
        slot = _slot(keys, values, grams[i])
        if values[slot] == 0:
            keys[slot] = grams[i]
            values[slot] = uint64(i)
        elif keys[slot] != grams[i]:
            continue
        # The occurrences are above the place of the first one.
        values[slot] += FIRST_COUNT
        most = max(most, values[slot] & ~(FIRST_COUNT - ONE))
    first = len(grams)
    for i in range(len(values)):
        # Of the most frequent ones, the first in the text.
        if values[i] >= most:
            first = min(first, np.int64(values[i] - most))
    start = ends[first - 1] if first else 0
    # With the blanks between its words.
    characters = ends[first + size - 1] - start + size - 1
    return np.int64(characters * np.int64(most >> uint64(32)))


@njit(**ARRAY_INLINED)
def _slot(keys: Hashes, values: Hashes, key: int) -> int:
    """Return the slot of a key, or a free one; after PROBE_LIMIT that of another key."""
    mask = uint64(len(keys) - 1)
    slot, probes = key & mask, 1
    while values[slot] != 0 and keys[slot] != key and probes < PROBE_LIMIT:
        slot = (slot + ONE) & mask
        probes += 1
    return slot


@njit(**ARRAY_KERNEL)
def _later_copies(grams: Hashes, ends: Integers, size: int, seen: Hashes) -> int:
    """Return the characters of the n-grams that came before."""
    seen[:] = 0
    i, characters = 0, 0
    while i < len(grams):
        if _enter(seen, grams[i]):
            characters += ends[i + size - 1] - (ends[i - 1] if i else 0)
            # Behind the copy: copies that overlap count once.
            i += size
        else:
            i += 1
    return characters
