"""Words as other programs cut them: by white space (`str.split`), and by Unicode's word breaks.

Also the copies among the lines of a text. The counts of `recipe_counts` are made of these.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment"

from functools import cache
from typing import NamedTuple

import numpy as np
import polars as pl
from numba import njit, uint64
from numpy.typing import NDArray

from assets.text.kernels.character_classes import LETTERS_END, classes_by
from assets.text.kernels.compiling import ARRAY_INLINED, ARRAY_KERNEL
from assets.text.kernels.hashing import hash_bytes
from assets.text.kernels.utf8 import decode

Bytes = NDArray[np.uint8]
Classes = NDArray[np.uint16]
Integers = NDArray[np.int64]
Hashes = NDArray[np.uint64]
Positions = NDArray[np.uint32]

SPACE, LETTER, ALPHANUMERIC = 1, 2, 4
# Word_Break of Unicode's UAX 29 as a number in the bits from WORD_BREAK on; 0: any other.
WORD_BREAK = 8
OTHER, ALETTER, HEBREW, NUMERIC, KATAKANA, EXTEND_NUM_LET = range(6)
MID_LETTER, MID_NUM_LET, MID_NUM, SINGLE_QUOTE, DOUBLE_QUOTE, EXTEND = range(6, 12)
LETTERS = (ALETTER, HEBREW)
PROPERTIES = {
    r"\p{wb=ALetter}": ALETTER,
    r"\p{wb=Hebrew_Letter}": HEBREW,
    r"\p{wb=Numeric}": NUMERIC,
    r"\p{wb=Katakana}": KATAKANA,
    r"\p{wb=ExtendNumLet}": EXTEND_NUM_LET,
    r"\p{wb=MidLetter}": MID_LETTER,
    r"\p{wb=MidNumLet}": MID_NUM_LET,
    r"\p{wb=MidNum}": MID_NUM,
    "'": SINGLE_QUOTE,
    '"': DOUBLE_QUOTE,
    r"[\p{wb=Extend}\p{wb=Format}\p{wb=ZWJ}]": EXTEND,
}
ONE = uint64(1)


class Words(NamedTuple):
    """Room for the words of a text: hashes, ends and number of characters of each.

    hashes: uint64; ends: uint32, characters of all words up to the end of this one.
    """

    hashes: Hashes
    ends: Positions


class Word(NamedTuple):
    """A run between white space: its bytes, characters, and whether it has a letter."""

    start: int
    stop: int
    characters: int
    has_letter: bool


@cache
def word_classes() -> Classes:
    """Return class bits and Word_Break of every code point, uint16 [0x110000]."""
    tests = {SPACE: str.isspace, LETTER: str.isalpha, ALPHANUMERIC: str.isalnum}
    classes = classes_by(tests)
    codes = np.r_[0:0xD800, 0xE000:LETTERS_END]
    texts = pl.Series([chr(code) for code in codes])
    for pattern, number in PROPERTIES.items():
        classes[codes[texts.str.contains(pattern).to_numpy()]] |= np.uint16(number << WORD_BREAK)
    return classes


@njit(**ARRAY_INLINED)
def next_word(data: Bytes, at: int, stop: int, classes: Classes) -> Word:
    """Return the next run between white space from byte `at`; its start is `stop` if none is."""
    while at < stop:
        code, width = decode(data, at)
        if not classes[code] & SPACE:
            break
        at += width
    start, characters, has_letter = at, 0, False
    while at < stop:
        code, width = decode(data, at)
        bits = classes[code]
        if bits & SPACE:
            break
        has_letter |= (bits & LETTER) != 0
        characters += 1
        at += width
    return Word(start, at, characters, has_letter)


@njit(**ARRAY_INLINED)
def _joins(before: int, last: int, kind: int, following: int) -> bool:
    """Check that no word ends between two characters (UAX 29, rules WB5 to WB13b).

    `before` and `last` are the properties of the two characters before, `following` of the next.
    """
    if kind >= MID_LETTER:  # WB6, WB7b, WB12: a mark joins if the next character does; WB7a
        return _spans(last, kind, following) or (last == HEBREW and kind == SINGLE_QUOTE)
    if last >= MID_LETTER:  # WB7, WB7c, WB11
        return last != EXTEND and _spans(before, last, kind)
    if kind == OTHER or last == OTHER:
        return False
    if kind == EXTEND_NUM_LET or last == EXTEND_NUM_LET:  # WB13a, WB13b
        return True
    return (kind == KATAKANA) == (last == KATAKANA)  # WB5, WB8, WB9, WB10, WB13


@njit(**ARRAY_INLINED)
def _spans(first: int, mark: int, second: int) -> bool:
    """Check that a mark between two characters joins them."""
    is_quote = mark in (MID_NUM_LET, SINGLE_QUOTE)
    if first in LETTERS and second in LETTERS:
        is_hebrew = first == HEBREW and second == HEBREW
        return is_quote or mark == MID_LETTER or (mark == DOUBLE_QUOTE and is_hebrew)
    return first == NUMERIC and second == NUMERIC and (is_quote or mark == MID_NUM)


@njit(**ARRAY_INLINED)
def _following(data: Bytes, at: int, stop: int, classes: Classes) -> int:
    """Return the property of the next character that is not of the class Extend."""
    while at < stop:
        code, width = decode(data, at)
        kind = classes[code] >> WORD_BREAK
        if kind != EXTEND:
            return kind
        at += width
    return 0


@njit(**ARRAY_KERNEL)
def cut_segments(data: Bytes, span: tuple[int, int], classes: Classes, words: Words) -> int:
    """Fill in the segments of Unicode's word breaks that begin with a letter or digit; count them.

    Rule WB4: characters of the class Extend belong to the one before, and do not count as such.
    """
    at, stop = span
    count, total = 0, 0
    start, characters, is_word = at, 0, False
    before, last = 0, 0
    while at < stop:
        code, width = decode(data, at)
        bits = classes[code]
        kind = bits >> WORD_BREAK
        if kind == EXTEND:
            starts = at == start
        else:
            following = 0
            if kind >= MID_LETTER:
                following = _following(data, at + uint64(width), stop, classes)
            starts = at == start or not _joins(before, last, kind, following)
            before, last = last, kind
        if starts:
            if is_word:
                total += characters
                words.hashes[count] = hash_bytes(data, start, at)
                words.ends[count] = total
                count += 1
            start, characters, is_word = at, 0, (bits & ALPHANUMERIC) != 0
        characters += 1
        at += width
    if is_word:
        words.hashes[count] = hash_bytes(data, start, stop)
        words.ends[count] = total + characters
        count += 1
    return count


@njit(**ARRAY_KERNEL)
def count_copies(keys: Hashes, lengths: Positions) -> tuple[int, int]:
    """Return the number of keys that occur more than once, all copies, and their lengths' sum."""
    order = np.argsort(keys)
    copies = characters = 0
    for i in range(len(order)):
        key = keys[order[i]]
        is_copy = i > 0 and keys[order[i - 1]] == key
        is_copy |= i + 1 < len(order) and keys[order[i + 1]] == key
        if is_copy:
            copies += 1
            characters += np.int64(lengths[order[i]])
    return copies, characters
