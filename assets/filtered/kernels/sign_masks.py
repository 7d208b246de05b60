"""Read the words of a text as bit masks of up to 63 bytes, one a class of signs.

Method: vector instructions mark the classes of ASCII. Of other characters, each is looked up once,
and its class is written for all its bytes, so that vector instructions mark these as well. Words
of more bytes, and of characters of four, are left to `text_words.read_word`.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

from functools import cache
from typing import NamedTuple

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from assets.text.kernels.character_classes import (
    BULLETS,
    SINGLES,
    TERMINAL_MARKS,
    add_marks,
    classes_by,
)
from assets.text.kernels.compiling import INLINED
from assets.text.kernels.many_bytes import (
    ONE,
    RUN,
    first_one,
    mark_bits,
    mark_bytes,
    ones_below,
    size_of,
)
from assets.text.kernels.utf8 import decode
from assets.text.kernels.words import (
    capitals,
    digit_bytes,
    mark_byte,
    plain_spaces,
    small_letters,
    wide_bytes,
)

Bytes = NDArray[np.uint8]
Classes = NDArray[np.uint16]
Integers = NDArray[np.int64]

LINE_FEED = 10
SPACE, LETTER, ALPHANUMERIC, UPPER, DIGIT, SINGLE, TERMINAL, FINISH, BULLET = (
    1 << i for i in range(9)
)
CLAUSE, CLOSING, JOINT, DAMAGE = (1 << i for i in range(9, 13))
CLAUSES = ",;:،؛、，；："
CLOSINGS = "\"'”’»)]}*_`」』）】›"
JOINTS = "'’-‐‑"
# Signs that wrong charsets and lost characters leave, seldom used in any language.
DAMAGED = "ÃÂâ¢£¤¥¦¨ª¬¯±²³´µ¶¸¹¼½¾ð\ufffd□█▓▒░" + "".join(map(chr, range(0x80, 0xA0)))


@cache
def character_classes() -> Classes:
    """Return the class bits of every code point, uint16 [0x110000]. Made once per process."""
    tests = {SPACE: str.isspace, LETTER: str.isalpha, ALPHANUMERIC: str.isalnum}
    classes = classes_by({**tests, UPPER: str.isupper, DIGIT: str.isdigit})
    for marks, bit in (
        (TERMINAL_MARKS, TERMINAL),
        (TERMINAL_MARKS + "…", FINISH),
        (BULLETS, BULLET),
        (CLAUSES, CLAUSE),
        (CLOSINGS, CLOSING),
        (JOINTS, JOINT),
        (DAMAGED, DAMAGE),
    ):
        add_marks(classes, marks, bit)
    for first, last in SINGLES:
        classes[first : last + 1] |= SINGLE
    return classes


class Signs(NamedTuple):
    """Classes of up to 63 bytes as bits: of all bytes of a character, but `heads` and `damages`.

    These have one bit a character. Of Han and kana only the second byte is among the words, so that
    there is a gap between two of them.
    """

    words: int
    heads: int
    letters: int
    alphanumerics: int
    uppers: int
    digits: int
    joints: int
    clauses: int
    closings: int
    singles: int
    damages: int


@njit(**INLINED)
def read_signs(
    data: Bytes, span: tuple[int, int], classes: Classes, kinds: Classes
) -> tuple[Signs, int, int]:
    """Return the signs of the whole words at the start of data[span], line feeds, and their bytes.

    classes: of `character_classes`; kinds: uint16 [68], overwritten. The bytes are 0 if the text
    begins with a word that is longer than 62 bytes or has a character of four, and near the end of
    `data`: from any byte of a mask, 64 can be read.
    """
    at, stop = span
    none = uint64(0)
    if at + RUN + RUN > uint64(len(data)):
        return Signs(none, none, none, none, none, none, none, none, none, none, none), none, none
    size = min(stop - at, uint64(63))
    words = ~plain_spaces(data, at)
    uppers = capitals(data, at)
    letters = small_letters(data, at) | uppers
    digits = digit_bytes(data, at)
    alphanumerics = letters | digits
    joints, clauses, closings = _joints(data, at), _clauses(data, at), _closings(data, at)
    later = singles = damages = none
    wide = wide_bytes(data, at)
    if wide & ones_below(size):
        # 0x80 to 0xBF: the later bytes of a character.
        later = mark_bytes(data, at, uint64(0x80), uint64(0x40))
        # Up to a character of four bytes, whose classes are not written.
        size = min(size, first_one(mark_bytes(data, at, uint64(0xF0), uint64(16))))
        heads = wide & ~later & ones_below(size)
        _write_classes(data, at, heads, classes, kinds)
        letters |= mark_bits(kinds, uint64(LETTER)) & wide
        alphanumerics |= mark_bits(kinds, uint64(ALPHANUMERIC)) & wide
        uppers |= mark_bits(kinds, uint64(UPPER)) & wide
        digits |= mark_bits(kinds, uint64(DIGIT)) & wide
        joints |= mark_bits(kinds, uint64(JOINT)) & wide
        clauses |= mark_bits(kinds, uint64(CLAUSE)) & wide
        closings |= mark_bits(kinds, uint64(CLOSING)) & wide
        damages = mark_bits(kinds, uint64(DAMAGE)) & wide & ~later
        alone = mark_bits(kinds, uint64(SINGLE)) & wide
        singles = (alone & heads) << ONE
        words = words & ~(mark_bits(kinds, uint64(SPACE)) & wide) & ~alone | singles
    # Behind the last byte that is of no word and ends its character: the next word is whole.
    if size != stop - at:
        size = size_of(~words & ~(later >> ONE) & ones_below(size))
    inside = ones_below(size)
    words &= inside
    signs = Signs(
        words, words & ~later | singles & inside, letters & words, alphanumerics & words,
        uppers & words, digits & words, joints & words, clauses & words, closings & words,
        singles & inside, damages & words,
    )  # fmt: skip
    return signs, mark_byte(data, at, LINE_FEED) & inside, size


@njit(**INLINED)
def _write_classes(data: Bytes, at: int, heads: int, classes: Classes, kinds: Classes) -> None:
    """Write the classes of the characters that begin at the bits of a mask, for all their bytes."""
    while heads:
        place = first_one(heads)
        heads &= heads - ONE
        bits = classes[decode(data, at + place)[0]]
        # Three in any case: what is beyond the character is written again, or is ASCII and masked.
        for i in range(3):
            kinds[place + uint64(i)] = bits


@njit(**INLINED)
def _joints(data: Bytes, at: int) -> int:
    """Mark the signs of JOINTS that are ASCII."""
    return mark_byte(data, at, 39) | mark_byte(data, at, 45)


@njit(**INLINED)
def _clauses(data: Bytes, at: int) -> int:
    """Mark the signs of CLAUSES that are ASCII."""
    return mark_byte(data, at, 44) | mark_bytes(data, at, uint64(58), uint64(2))


@njit(**INLINED)
def _closings(data: Bytes, at: int) -> int:
    """Mark the signs of CLOSINGS that are ASCII."""
    quotes = mark_byte(data, at, 34) | mark_byte(data, at, 39)
    brackets = mark_bytes(data, at, uint64(41), uint64(2)) | mark_byte(data, at, 93)
    return (
        quotes | brackets | mark_bytes(data, at, uint64(95), uint64(2)) | mark_byte(data, at, 125)
    )
