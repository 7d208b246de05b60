"""Count lines, those that may be labels, and how a text ends.

Lines are non-blank. A label is a short line without a sign that ends a sentence or clause, before a
line that does not continue it.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value, arg-type"

from typing import NamedTuple

import numpy as np
from numba import njit, uint64

from assets.filtered.kernels.pages.page_counts import (
    CLAUSE,
    CLOSING,
    LETTER,
    SINGLE,
    SPACE,
    TERMINAL,
    UPPER,
    Bytes,
    Classes,
    Form,
    Integers,
)
from assets.filtered.kernels.pages.sign_masks import Signs
from assets.text.kernels.compiling import INLINED, KERNEL
from assets.text.kernels.many_bytes import ONE, count_ones, first_one, ones_below, size_of
from assets.text.kernels.utf8 import decode, last_start

DOT, ELLIPSIS = ord("."), ord("…")
LABEL_CHARACTERS = 80  # of a line that may be a label; hard-wrapped prose goes on in lower case


class Line(NamedTuple):
    """A line so far: its characters, 0 before its first word, and classes of some of them."""

    characters: int  # and one more for each word
    first: int
    last: int  # of the last word, but for closings
    last_word: int  # the first of the last word


@njit(**INLINED)
def add_to_lines(
    data: Bytes, at: int, block: tuple[Signs, int], classes: Classes,
    state: tuple[Line, int, Integers],
) -> tuple[Line, int]:  # fmt: skip
    """Add words to the line that is open, and to those after each line feed of a mask."""
    (signs, feeds), (line, label, counts) = block, state
    words = signs.words
    starts = words & ~(words << ONE)
    while True:
        before = (feeds & (~feeds + ONE)) - ONE  # the bits before the first line feed, or all
        own = words & before
        if own:
            line = _longer(data, at, (own, starts & own, signs), classes, line)
        if feeds == 0:
            return line, label
        if line.characters:
            label = end_line(line, label, counts)
            line = Line(0, 0, 0, 0)
        words &= ~before
        feeds &= feeds - ONE


@njit(**INLINED)
def _longer(
    data: Bytes, at: int, own: tuple[int, int, Signs], classes: Classes, line: Line
) -> Line:
    """Return a line with the words of a mask added."""
    words, starts, signs = own
    last_start = size_of(starts) - ONE
    counted = words & ~signs.closings & ~ones_below(last_start)
    characters = np.int64(count_ones(words & signs.heads) + count_ones(starts))
    first = line.first if line.characters else _class_at(data, at + first_one(words), classes)
    last = _class_at(data, at + size_of(counted) - ONE, classes) if counted else 0
    last_word = _class_at(data, at + last_start, classes)
    return Line(line.characters + characters, first, last, last_word)


@njit(**INLINED)
def _class_at(data: Bytes, at: int, classes: Classes) -> int:
    """Return the class of the character that the byte at a place belongs to."""
    return np.int64(classes[decode(data, last_start(data, at + ONE))[0]])


@njit(**INLINED)
def end_line(line: Line, label: int, counts: Integers) -> int:
    """Count a line and the label before it; return its characters if it may be a label."""
    characters, first, last, last_word = line
    counts[Form.LAST_CHARACTERS] = characters
    counts[Form.LAST_LOWER] = last_word & LETTER and last & LETTER and not last_word & UPPER
    counts[Form.LINES] += 1
    counts[Form.LINE_CHARACTERS] += characters
    is_continued = first & LETTER and not first & (UPPER | SINGLE)
    if label and not is_continued:
        add_label(label, counts)
    if last & TERMINAL:
        counts[Form.FINISHED_CHARACTERS] += characters
    may_be_label = not last & (TERMINAL | CLAUSE) and characters <= LABEL_CHARACTERS
    return characters if may_be_label else 0


@njit(**INLINED)
def add_label(characters: int, counts: Integers) -> None:
    """Count a label, which is none if it has 0 characters."""
    counts[Form.LABEL_LINES] += characters > 0
    counts[Form.LABEL_CHARACTERS] += characters


@njit(**KERNEL)
def look_at_end(data: Bytes, span: tuple[int, int], classes: Classes, counts: Integers) -> None:
    """Tell a text that ends a sentence from one that breaks off with an ellipsis."""
    start, at = span
    dots = 0
    while at > start:
        at -= uint64(1)
        while data[at] & 0xC0 == 0x80:
            at -= uint64(1)
        code, _ = decode(data, at)
        if code == DOT:
            dots += 1
            continue
        if dots == 0 and classes[code] & (SPACE | CLOSING):
            continue
        if dots > 2 or (dots == 0 and code == ELLIPSIS):
            counts[Form.LAST_DOTS] = 1
        elif dots > 0 or classes[code] & TERMINAL:
            counts[Form.LAST_FINISHED] = 1
        return
