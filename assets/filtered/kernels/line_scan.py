"""Find, trim and copy lines: the code that the line rules of C4 and RefinedWeb share, and counters.

Both rules only remove bytes, so a text is unchanged exactly if it kept its length. Every text is
written to one output buffer; the next one overwrites it there if it is unchanged.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

from enum import IntEnum, auto
from functools import cache
from typing import NamedTuple

import numpy as np
import polars as pl
from numba import njit, uint64
from numpy.typing import NDArray

from assets.text.kernels.character_classes import LETTERS_END, add_marks, classes_by
from assets.text.kernels.compiling import ARRAY_INLINED, ARRAY_KERNEL
from assets.text.kernels.utf8 import ONE, decode, last_start

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]
Classes = NDArray[np.uint16]


class LineCount(IntEnum):
    """Counts of a text, in the order of the columns; numba takes the members as integers."""

    SENTENCES = 0
    LOREM_IPSUM_LINES = auto()
    CURLY_BRACKET_LINES = auto()
    JAVASCRIPT_LINES = auto()
    POLICY_LINES = auto()
    UNFINISHED_LINES = auto()
    FEW_WORD_LINES = auto()
    LONG_WORD_LINES = auto()
    CITATIONS = auto()
    REFINEDWEB_LINES = auto()
    REFINEDWEB_WORDS = auto()
    LINE_WORDS = auto()


class Line(NamedTuple):
    """Bounds of a line in a byte buffer, and the number of its words."""

    start: int
    stop: int
    words: int


# Bytes and code points share a table, since tuples of arrays cost numba a reference count per call:
# the first five bits are classes of the byte with this number, the others of the code point.
BYTE_SPACE, NEWLINE, MAYBE_SPACE, BRACKET, BRACE = (1 << bit for bit in range(5))
SPACE, WORD, UPPER, DIGIT, DECIMAL, SOFT_END, HARD_END, CLOSER, END_MARK = (
    1 << bit for bit in range(5, 14)
)
ANY_END = SOFT_END | HARD_END
FLAGGED = 1 << 14  # not a class: the row may hold a phrase
LINE_FEED, BLANK, UNDERSCORE = (ord(sign) for sign in "\n _")
# These occur inside numbers, names and addresses too, so they end a sentence before a blank only.
SOFT_MARKS = ".?!…‼⁇⁈⁉‽․﹒．"


@cache
def _unicode_classes() -> Classes:
    tests = {SPACE: str.isspace, WORD: str.isalnum, UPPER: str.isupper}
    classes = classes_by({**tests, DIGIT: str.isdigit, DECIMAL: str.isdecimal})
    codes = np.r_[0:0xD800, 0xE000:LETTERS_END]
    texts = pl.Series([chr(code) for code in codes])
    for pattern, bit in (
        (r"\p{Sentence_Terminal}", HARD_END),
        (r"[\p{Pe}\p{Pf}\p{Pi}'\"]", CLOSER),
    ):
        classes[codes[texts.str.contains(pattern).to_numpy()]] |= bit
    soft = [ord(mark) for mark in SOFT_MARKS]
    classes[soft] = classes[soft] & ~np.uint16(HARD_END) | SOFT_END
    classes[:128] |= (classes[:128] & SPACE != 0) * np.uint16(BYTE_SPACE)
    classes[[0xC2, 0xE1, 0xE2, 0xE3]] |= MAYBE_SPACE  # where the white space beyond ASCII begins
    add_marks(classes, "\n", NEWLINE)
    add_marks(classes, "[", BRACKET)
    add_marks(classes, "{", BRACE)
    return classes


def character_classes(end_marks: tuple[str, ...] = ()) -> Classes:
    """Return a new table of the class bits of each byte and code point, uint16 [0x110000]."""
    classes = _unicode_classes().copy()
    add_marks(classes, "".join(end_marks), END_MARK)
    return classes


@njit(**ARRAY_INLINED)
def skip(text: Bytes, i: int, stop: int, classes: Classes, wanted: int) -> tuple[int, np.uint16]:
    """Return the end of the run of `wanted` classes at byte `i`, and the OR of its class bits."""
    kinds = np.uint16(0)
    while i < stop:
        code, width = decode(text, i)
        if not classes[code] & wanted:
            break
        kinds |= classes[code]
        i += width
    return i, kinds


@njit(**ARRAY_INLINED)
def trim(
    text: Bytes, start: int, stop: int, classes: Classes, space: int = SPACE
) -> tuple[int, int]:
    """Return the bounds of text[start:stop] without the white space around it."""
    if start < stop and BLANK < text[start] < 0x80 and BLANK < text[stop - ONE] < 0x80:
        return start, stop
    start, _ = skip(text, start, stop, classes, space)
    while start < stop:
        i = last_start(text, stop)
        if not classes[decode(text, i)[0]] & space:
            break
        stop = i
    return start, stop


@njit(**ARRAY_INLINED)
def scan_line(
    text: Bytes, start: int, stop: int, classes: Classes
) -> tuple[np.int64, np.int64, np.int64]:
    """Return the end of the line at `start`, its words, and the OR of its bytes' class bits."""
    one = uint64(BYTE_SPACE)
    i, end, words, kinds, after_space = uint64(start), uint64(stop), uint64(0), uint64(0), one
    while i < end:
        bits = uint64(classes[text[i]])
        if bits & uint64(NEWLINE | MAYBE_SPACE):
            if bits & uint64(NEWLINE):
                break
            code, width = decode(text, i)
            bits = uint64((classes[code] & SPACE) != 0)
            i += uint64(width - 1)
        # A word begins where a byte of no white space follows one: bit 0 of both.
        words += after_space & ~bits
        after_space = bits & one
        kinds |= bits
        i += one
    return np.int64(i), np.int64(words), np.int64(kinds)


@njit(**ARRAY_KERNEL)
def is_word(text: Bytes, i: int, classes: Classes) -> bool:
    """Check for a letter, digit or underscore at byte `i`."""
    return text[i] == UNDERSCORE or (classes[decode(text, i)[0]] & WORD) != 0


@njit(**ARRAY_INLINED)
def copy(text: Bytes, start: int, stop: int, out: Bytes, size: int) -> int:
    """Copy text[start:stop] to `out` at `size`; return the position after it."""
    source, target = uint64(start), uint64(size)
    for i in range(uint64(max(stop - start, 0))):
        out[target + i] = text[source + i]
    return size + max(stop - start, 0)


# Phrases of the C4 reference code, of RefinedWeb as DCLM reads it, and the nouns of counters.
PHRASES = (
    "lorem ipsum/javascript/terms of use/privacy policy/cookie policy/uses cookies/use of cookies/"
    "use cookies/edit]/citation needed]/items in cart/sign-in/read more.../read more…/likes/shares/"
    "comments/retweets/reposts/quotes/bookmarks/upvotes/downvotes/downloads/views/followers"
)
LOREM, JAVASCRIPT, FIRST_POLICY, EDIT, CITATION_NEEDED = 0, 1, 2, 8, 9
ITEMS_IN_CART, SIGN_IN, READ_MORE, READ_MORE_CHARACTER, FIRST_COUNTED = 10, 11, 12, 13, 14
_encoded = PHRASES.encode().split(b"/")
NUM_PHRASES = len(_encoded)
FIRST_LETTERS = np.array([phrase[0] for phrase in _encoded], np.uint8)
PHRASE_BYTES = np.frombuffer(b"".join(_encoded), np.uint8)
PHRASE_STARTS = np.cumsum([0, *(len(phrase) for phrase in _encoded)])


@njit(**ARRAY_KERNEL)
def begins(text: Bytes, i: int, stop: int, phrase: int, fold: bool) -> int:
    """Return the end of a phrase at byte `i`, 0 if the text differs; `fold` ignores ASCII case."""
    first, last = PHRASE_STARTS[phrase], PHRASE_STARTS[phrase + 1]
    if stop - i < last - first:
        return 0
    for at in range(first, last):
        byte = text[i + at - first]
        if fold and 0x41 <= byte <= 0x5A:
            byte |= np.uint8(0x20)
        if byte != PHRASE_BYTES[at]:
            return 0
    return i + last - first


@njit(**ARRAY_KERNEL)
def phrases_in(text: Bytes, start: int, stop: int) -> int:
    """Return 1 << LOREM, JAVASCRIPT or FIRST_POLICY, ORed, for phrases in text[start:stop]."""
    bits, end = 0, uint64(stop)
    for i in range(uint64(start), end):
        letter = text[i] | np.uint8(0x20)
        for phrase in range(EDIT):
            if letter == FIRST_LETTERS[phrase] and begins(text, np.int64(i), stop, phrase, True):
                bits |= 1 << min(phrase, FIRST_POLICY)
    return bits
