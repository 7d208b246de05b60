"""Count the characters and words of a text, and hash its words for what repeats itself.

Words are those of `str.split()`, except that a character of a script without spaces (Han, kana) is
a word of its own; letters and digits are those of `str.isalpha`, `isdigit` and `isalnum`.
Words come as bit masks (`sign_masks`), and one by one where those end: a word of more than 62 bytes
or with a character of four.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, arg-type, assignment, return-value"

from enum import IntEnum, auto
from typing import NamedTuple

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from assets.filtered.kernels.sign_masks import (
    ALPHANUMERIC,
    CLOSING,
    DAMAGE,
    DIGIT,
    JOINT,
    LETTER,
    SINGLE,
    SPACE,
    UPPER,
    Bytes,
    Classes,
    Integers,
    Signs,
)
from assets.text.kernels.compiling import INLINED, KERNEL
from assets.text.kernels.hashing import hash_bytes
from assets.text.kernels.many_bytes import ONE, count_ones, first_one, held, ones_below
from assets.text.kernels.utf8 import decode

SHORT_LINE_CHARS = 30  # datatrove's FineWeb filter: len(line) <= 30


class Count(IntEnum):
    """Counts, in the order of the columns; numba takes the members as integers."""

    CHARACTERS = 0
    NEWLINES = auto()
    HASHES = auto()  # "#"
    WORD_CHARACTERS = auto()  # not white space
    ALPHANUMERIC_CHARACTERS = auto()
    ALPHABETIC_CHARACTERS = auto()
    DIGIT_CHARACTERS = auto()
    UPPERCASE_CHARACTERS = auto()
    WORDS = auto()
    ALPHABETIC_WORDS = auto()  # with at least one letter
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


Hashes = NDArray[np.uint64]
Positions = NDArray[np.uint32]
Words = tuple[Hashes, Positions]  # of a text: hash, and characters of all words up to each

HASH, NEWLINE, SLASH, SMALL_W, DOT = (ord(sign) for sign in "#\n/w.")


class Word(NamedTuple):
    """Numbers of a word's characters, and classes of some of them."""

    characters: int
    letters: int
    alphanumerics: int
    digits: int
    uppers: int
    damages: int
    runs: int  # of letters
    switches: int  # from a small letter to a capital
    end_bits: int  # of the last one, but for closings
    last_bits: int  # of the last one, but for joints
    is_url: bool


@njit(**KERNEL)
def count_characters(data: Bytes, span: tuple[int, int], counts: Integers) -> None:
    """Fill the first three counts: characters, line feeds, and "#"."""
    start, stop = span
    characters = newlines = hashes = np.int64(0)
    # Sums of their own: the compiler makes vector instructions of it.
    for i in range(start, stop):
        characters += (data[i] & 0xC0) != 0x80
        newlines += data[i] == NEWLINE
        hashes += data[i] == HASH
    counts[0], counts[1], counts[2] = characters, newlines, hashes


@njit(**INLINED)
def hash_words(data: Bytes, at: int, signs: Signs, words: Words, counts: Integers) -> None:
    """Write the hash and the end of each word of a mask behind those of words counted before."""
    (hashes, ends), own, singles = words, signs.words, signs.singles
    count, characters = uint64(counts[Count.WORDS]), uint64(counts[Count.WORD_CHARACTERS])
    # Of a single `own` has the second byte alone: its hash begins before it, and ends behind.
    starts = own & ~(own << ONE) ^ (singles | singles >> ONE)
    stops = ~own & (own << ONE) ^ (singles << ONE | singles << uint64(2))
    while starts:
        first, last = first_one(starts), first_one(stops)
        starts &= starts - ONE
        stops &= stops - ONE
        hashes[count] = hash_bytes(data, at + first, at + last)
        ends[count] = characters + count_ones(signs.heads & ones_below(last))
        count += ONE


@njit(**INLINED)
def add_words(signs: Signs, counts: Integers) -> None:
    """Count the words of a mask and their characters."""
    words, heads, letters = signs.words, signs.heads, signs.letters
    counts[Count.WORDS] += np.int64(count_ones(words & ~(words << ONE)))
    counts[Count.WORD_CHARACTERS] += np.int64(count_ones(heads))
    counts[Count.ALPHANUMERIC_CHARACTERS] += np.int64(count_ones(signs.alphanumerics & heads))
    counts[Count.ALPHABETIC_CHARACTERS] += np.int64(count_ones(letters & heads))
    counts[Count.DIGIT_CHARACTERS] += np.int64(count_ones(signs.digits & heads))
    counts[Count.UPPERCASE_CHARACTERS] += np.int64(count_ones(signs.uppers & heads))
    counts[Count.ALPHABETIC_WORDS] += np.int64(count_ones(held(words, letters)))


@njit(**INLINED)
def add_word(word: Word, counts: Integers) -> None:
    """Count a word that `read_word` returned."""
    counts[Count.WORDS] += 1
    counts[Count.WORD_CHARACTERS] += word.characters
    counts[Count.ALPHANUMERIC_CHARACTERS] += word.alphanumerics
    counts[Count.ALPHABETIC_CHARACTERS] += word.letters
    counts[Count.DIGIT_CHARACTERS] += word.digits
    counts[Count.UPPERCASE_CHARACTERS] += word.uppers
    counts[Count.ALPHABETIC_WORDS] += word.letters > 0


@njit(**KERNEL)
def read_word(data: Bytes, span: tuple[int, int], classes: Classes) -> tuple[int, Word]:
    """Read the word at the start of data[span]; return its end as well."""
    (at, stop), start = span, span[0]
    characters = letters = alphanumerics = digits = uppers = damages = np.int64(0)
    runs = switches = before = end_bits = last = slashes = np.int64(0)
    while at < stop:
        wide, width = decode(data, at)
        code, bits = np.int64(wide), np.int64(classes[wide])
        if bits & (SPACE | SINGLE) and (bits & SPACE or at > start):
            break
        at += width
        characters += 1
        letters += _has(bits, LETTER)
        alphanumerics += _has(bits, ALPHANUMERIC)
        digits += _has(bits, DIGIT)
        uppers += _has(bits, UPPER)
        damages += _has(bits, DAMAGE)
        runs += _has(bits, LETTER) & (_has(before, LETTER) ^ 1)
        switches += _has(bits, UPPER) & _has(before, LETTER) & (_has(before, UPPER) ^ 1)
        slashes |= np.int64(code == SLASH) & np.int64(last == SLASH) & np.int64(characters > 4)
        before, last = before if bits & JOINT else bits, code
        end_bits = end_bits if bits & CLOSING else bits
        if bits & SINGLE:
            break
    is_url = slashes != 0 or (
        characters > 4 and data[start] | 0x20 == SMALL_W and data[start + uint64(3)] == DOT
    )
    return at, Word(
        characters, letters, alphanumerics, digits, uppers, damages, runs, switches, end_bits,
        before, is_url,
    )  # fmt: skip


@njit(**INLINED)
def _has(bits: int, bit: int) -> int:
    """Return 1 if a bit is set, else 0, without a branch."""
    return np.int64((bits & bit) != 0)
