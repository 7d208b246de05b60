"""What the form of a page is told by: classes of characters, and counts."""

from enum import IntEnum, auto
from functools import cache

import numpy as np
from numpy.typing import NDArray

from assets.text.kernels.character_classes import (
    NUM_CODES,
    SINGLES,
    TERMINAL_MARKS,
    add_marks,
    classes_by,
)

Bytes = NDArray[np.uint8]
Classes = NDArray[np.uint16]
Integers = NDArray[np.int64]

SPACE, LETTER, UPPER, DIGIT, TERMINAL, CLAUSE, CLOSING, SINGLE, JOINT, DAMAGE = (
    1 << i for i in range(10)
)
CLAUSES = ",;:،؛、，；："
CLOSINGS = "\"'”’»)]}*_`」』）】›"
JOINTS = "'’-‐‑"
# Signs that wrong charsets and lost characters leave, seldom used in any language.
DAMAGED = "ÃÂâ¢£¤¥¦¨ª¬¯±²³´µ¶¸¹¼½¾ð\ufffd□█▓▒░" + "".join(map(chr, range(0x80, 0xA0)))


class Form(IntEnum):
    """Counts, in the order of the columns."""

    WORDS = 0
    CHARACTERS = auto()  # not white space
    LETTERS = auto()
    UPPERS = auto()
    DIGITS = auto()
    DAMAGES = auto()
    SINGLES = auto()  # Han and kana
    CASED_WORDS = auto()  # that begin with a letter of a script with case, by its capitals
    LETTER_WORDS = auto()  # not SINGLE, with a letter
    ONE_LETTER_WORDS = auto()
    MARK_WORDS = auto()  # without letters and digits
    NUMBERS = auto()  # with digits and no letter
    CLAUSE_WORDS = auto()  # before a comma, colon or semicolon
    ODD_CHARACTERS = auto()  # of words that mix letters with digits, marks or capitals
    URL_CHARACTERS = auto()
    PAIRS = auto()  # of ASCII letters within words
    PAIR_SCORES = auto()
    LINES = auto()
    LINE_CHARACTERS = auto()
    FINISHED_CHARACTERS = auto()  # of lines that end a sentence
    LABEL_LINES = auto()
    LABEL_CHARACTERS = auto()
    WINDOW_WORDS = auto()
    WINDOW_DISTINCT = auto()
    WINDOW_REPEATED = auto()
    LAST_CHARACTERS = auto()  # of the last line
    LAST_FINISHED = auto()  # the text ends a sentence
    LAST_DOTS = auto()  # or breaks off with an ellipsis
    LAST_LOWER = auto()  # or with a word that is not capitalised


@cache
def form_classes() -> Classes:
    """Return the class bits of every code point, uint16 [0x110000]."""
    tests = {SPACE: str.isspace, LETTER: str.isalpha, UPPER: str.isupper, DIGIT: str.isdigit}
    classes = classes_by(tests)
    for marks, bit in (
        (TERMINAL_MARKS + "…", TERMINAL),
        (CLAUSES, CLAUSE),
        (CLOSINGS, CLOSING),
        (JOINTS, JOINT),
        (DAMAGED, DAMAGE),
    ):
        add_marks(classes, marks, bit)
    for first, last in SINGLES:
        classes[first : last + 1] |= SINGLE
    assert len(classes) == NUM_CODES
    return classes
