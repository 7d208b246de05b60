"""Count the characters and words of a text, and hash its words for the n-grams.

Words are those of `str.split()`, except that a character of a script without spaces (Han, kana) is
a word of its own; letters and digits are those of `str.isalpha`, `isdigit` and `isalnum`.
Words of plain ASCII are counted as the bits of a number, up to 63 bytes at once (`kernels.words`).
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

from enum import IntEnum, auto
from functools import cache

import numpy as np
from numba import njit
from numpy.typing import NDArray

from assets.text.kernels.character_classes import (
    BULLETS,
    SINGLES,
    TERMINAL_MARKS,
    add_marks,
    classes_by,
)
from assets.text.kernels.compiling import INLINED, KERNEL
from assets.text.kernels.hashing import hash_bytes
from assets.text.kernels.many_bytes import ONE, count_ones, first_one, held
from assets.text.kernels.utf8 import decode
from assets.text.kernels.words import capitals, digit_bytes, mark_byte, plain_words, small_letters

SHORT_LINE_CHARS = 30  # datatrove's FineWeb filter: len(line) <= 30


class Count(IntEnum):
    """Counts, in the order of the columns; numba takes the members as integers."""

    CHARACTERS = 0
    WORD_CHARACTERS = auto()  # not white space
    ALPHANUMERIC_CHARACTERS = auto()
    ALPHABETIC_CHARACTERS = auto()
    DIGIT_CHARACTERS = auto()
    UPPERCASE_CHARACTERS = auto()
    WORDS = auto()
    ALPHABETIC_WORDS = auto()  # with at least one letter
    LONGEST_WORD = auto()  # characters
    NEWLINES = auto()
    HASHES = auto()  # "#"
    ELLIPSES = auto()  # "..." from left to right, and "…"
    RAW_LINES = auto()  # split at "\n", blank ones too
    LONGEST_RAW_LINE = auto()  # characters
    LINES = auto()
    BULLET_LINES = auto()
    ELLIPSIS_LINES = auto()
    TERMINAL_LINES = auto()
    SHORT_LINES = auto()
    DUPLICATE_LINES = auto()  # copies after the first (datatrove's reading of Gopher)
    DUPLICATE_LINE_CHARACTERS = auto()
    REPEATED_LINES = auto()  # all copies, if there are two or more (DCLM's reading)
    REPEATED_LINE_CHARACTERS = auto()
    PARAGRAPHS = auto()
    DUPLICATE_PARAGRAPHS = auto()
    DUPLICATE_PARAGRAPH_CHARACTERS = auto()  # of their lines, without line ends
    REPEATED_PARAGRAPHS = auto()
    REPEATED_PARAGRAPH_CHARACTERS = auto()


Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]
Hashes = NDArray[np.uint64]
Positions = NDArray[np.uint32]

SPACE, LETTER, ALPHANUMERIC, TERMINAL, BULLET, DIGIT, UPPERCASE, SINGLE = (1 << i for i in range(8))
HASH = ord("#")


@cache
def character_classes() -> Bytes:
    """Return the class bits of every code point, uint8 [0x110000]. Made once per process."""
    tests = {SPACE: str.isspace, LETTER: str.isalpha, ALPHANUMERIC: str.isalnum}
    classes = classes_by({**tests, DIGIT: str.isdigit, UPPERCASE: str.isupper})
    add_marks(classes, TERMINAL_MARKS, TERMINAL)
    add_marks(classes, BULLETS, BULLET)
    for first, last in SINGLES:
        classes[first : last + 1] |= SINGLE
    return classes.astype(np.uint8)


@njit(**KERNEL)
def count_words(
    data: Bytes,
    span: tuple[int, int],
    kinds: Bytes,
    words: tuple[Hashes, Positions],
    counts: Integers,
) -> None:
    """Fill the counts of a text, data[span], and the hash and end of each word if there is room.

    `span` is a pair of uint64; kinds: of `character_classes`; `counts` is int64 [Count]; the end of
    a word is the number of characters of all words up to it. `words`: (hashes, uint64 [words];
    ends, uint32 [words]).
    """
    at, stop = span
    hashes, ends = words
    num_words = longest = characters = wide = 0
    while at < stop:
        mask, size = plain_words(data, (at, stop))
        if size:
            _add_plain_words(data, at, mask, counts)
            # A bit at the first byte of each word, and one behind its last: they go in pairs.
            starts, stops = mask & ~(mask << ONE), ~mask & (mask << ONE)
            while starts:
                first, last = at + first_one(starts), at + first_one(stops)
                starts &= starts - ONE
                stops &= stops - ONE
                longest = max(longest, np.int64(last - first))
                characters += np.int64(last - first)
                if len(hashes):
                    hashes[num_words] = hash_bytes(data, first, last)
                    ends[num_words] = characters
                num_words += 1
            at += size
            continue
        code, width = decode(data, at)
        if kinds[code] & SPACE:
            at += width
            wide += np.int64(width) - 1
            continue
        end, length = _read_word(data, (at, stop), kinds, counts)
        longest = max(longest, length)
        characters += length
        wide += np.int64(end - at) - length
        if len(hashes):
            hashes[num_words] = hash_bytes(data, at, end)
            ends[num_words] = characters
        num_words += 1
        at = end
    counts[Count.CHARACTERS] = np.int64(stop - span[0]) - wide
    counts[Count.WORDS] = num_words
    counts[Count.LONGEST_WORD] = longest
    counts[Count.WORD_CHARACTERS] = characters


@njit(**INLINED)
def _add_plain_words(data: Bytes, at: int, words: int, counts: Integers) -> None:
    upper, digits = capitals(data, at) & words, digit_bytes(data, at) & words
    letters = small_letters(data, at) & words | upper
    num_letters, num_digits = np.int64(count_ones(letters)), np.int64(count_ones(digits))
    counts[Count.ALPHANUMERIC_CHARACTERS] += num_letters + num_digits
    counts[Count.ALPHABETIC_CHARACTERS] += num_letters
    counts[Count.DIGIT_CHARACTERS] += num_digits
    counts[Count.UPPERCASE_CHARACTERS] += np.int64(count_ones(upper))
    counts[Count.HASHES] += np.int64(count_ones(mark_byte(data, at, HASH) & words))
    counts[Count.ALPHABETIC_WORDS] += np.int64(count_ones(held(words, letters)))


@njit(**KERNEL)
def _read_word(
    data: Bytes, span: tuple[int, int], kinds: Bytes, counts: Integers
) -> tuple[int, int]:
    """Count a word's characters by their classes; return its end and its characters."""
    (at, stop), start = span, span[0]
    characters = letters = alphanumerics = digits = uppers = hashes = np.int64(0)
    while at < stop:
        code, width = decode(data, at)
        bits = np.int64(kinds[code])
        if bits & (SPACE | SINGLE) and (bits & SPACE or at > start):
            break
        at += width
        characters += 1
        letters += np.int64((bits & LETTER) != 0)
        alphanumerics += np.int64((bits & ALPHANUMERIC) != 0)
        digits += np.int64((bits & DIGIT) != 0)
        uppers += np.int64((bits & UPPERCASE) != 0)
        hashes += np.int64(code == HASH)
        if bits & SINGLE:
            break
    counts[Count.ALPHANUMERIC_CHARACTERS] += alphanumerics
    counts[Count.ALPHABETIC_CHARACTERS] += letters
    counts[Count.DIGIT_CHARACTERS] += digits
    counts[Count.UPPERCASE_CHARACTERS] += uppers
    counts[Count.HASHES] += hashes
    counts[Count.ALPHABETIC_WORDS] += np.int64(letters > 0)
    return at, characters
