"""Tables of a syntax (actions of bytes, comment marks, traits), and the counts of a document."""
# mypy: disable-error-code="untyped-decorator, no-any-return"

from enum import IntEnum, auto

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_KERNEL
from assets.text.kernels.many_bytes import find_byte

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]


class Count(IntEnum):
    """Counts of a document, in the order of the columns."""

    CODE_LINES = 0
    COMMENT_LINES = auto()
    COMMENT_CHARACTERS = auto()
    INDENTED_LINES = auto()
    PUNCTUATION_CHARACTERS = auto()
    KEYWORD_WORDS = auto()
    CODE_WORDS = auto()
    VISIBLE_TEXT_CHARACTERS = auto()
    LONG_HEX_OR_BASE64_CHARACTERS = auto()


class Trait(IntEnum):
    """Traits of a syntax beyond its comment marks, as bits."""

    TRIPLE = 1  # three quotes delimit a string of many lines
    DOCSTRING = 2  # such a string at the start of a line is a comment
    CHARACTER = 4  # ' encloses one character; elsewhere it is code (a lifetime, a prime)
    TRANSPOSE = 8  # ' after a word or a bracket is an operator
    MULTILINE = 16  # strings in " may run over lines, as those in ` always may
    RAW = 32  # a backslash escapes nothing
    AFTER_BLANK = 64  # a line mark counts only after a blank or at the start of its line
    LINE_START = 128  # block marks, and line marks but the first, count only in the first column
    HTML = 256  # text outside tags is visible


BLANK, CODE, NEWLINE, MARK, QUOTE, ESCAPE = (
    0,
    1,
    2,
    3,
    4,
    5,
)  # the action of a byte: the token that it may begin
OPEN, CLOSE, MARKS = 3, 4, 5  # places of the marks of a syntax; 0 to 2 are line marks
MARK_BYTES = 8
LF, SPACE, TAB = 10, 32, 9


@njit(**ARRAY_KERNEL)
def is_blank(byte: int) -> bool:
    """Check for ASCII white space other than the newline."""
    return byte == SPACE or (TAB <= byte <= 13 and byte != LF)


@njit(**ARRAY_KERNEL)
def find_newline(text: Bytes, at: int) -> np.int64:
    """Return the position of the next newline from byte `at` on, or the text's length."""
    return np.int64(find_byte(text, (uint64(at), uint64(len(text))), LF))
