"""Count the lines of a page, its labels, end and pairs of letters, for the scores of `page_scores`.

Lines are counted on the masks of `sign_masks` by additions and shifts.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value, arg-type"

from itertools import product
from typing import NamedTuple

import numpy as np
from numba import njit, uint64

from assets.filtered.kernels.page_words import Form
from assets.filtered.kernels.sign_masks import (
    CLAUSE,
    CLOSING,
    FINISH,
    LETTER,
    SINGLE,
    SPACE,
    UPPER,
    Bytes,
    Classes,
    Integers,
    Signs,
)
from assets.filtered.kernels.text_words import Word
from assets.text.kernels.compiling import INLINED, KERNEL
from assets.text.kernels.many_bytes import (
    ONE,
    RUN,
    count_ones,
    first_one,
    ones_below,
    read_2,
    size_of,
)
from assets.text.kernels.utf8 import decode, last_start
from assets.text.kernels.words import capitals, small_letters

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
    (signs, feeds), (line, label, form) = block, state
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
            label = end_line(line, label, form)
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
def end_line(line: Line, label: int, form: Integers) -> int:
    """Count a line and the label before it; return its characters if it may be a label."""
    characters, first, last, last_word = line
    form[Form.LAST_CHARACTERS] = characters
    form[Form.LAST_LOWER] = last_word & LETTER and last & LETTER and not last_word & UPPER
    form[Form.FORM_LINES] += 1
    form[Form.LINE_CHARACTERS] += characters
    is_continued = first & LETTER and not first & (UPPER | SINGLE)
    if label and not is_continued:
        _add_label(label, form)
    if last & FINISH:
        form[Form.FINISHED_CHARACTERS] += characters
    may_be_label = not last & (FINISH | CLAUSE) and characters <= LABEL_CHARACTERS
    return characters if may_be_label else 0


@njit(**INLINED)
def longer_by(word: Word, bits: int, line: Line) -> Line:
    """Return a line with a word added whose first character is of class `bits`."""
    characters = line.characters + word.characters + 1
    return Line(characters, line.first if line.characters else bits, word.end_bits, bits)


@njit(**INLINED)
def _add_label(characters: int, form: Integers) -> None:
    """Count a label, which is none if it has 0 characters."""
    form[Form.LABEL_LINES] += characters > 0
    form[Form.LABEL_CHARACTERS] += characters


@njit(**INLINED)
def end_text(line: Line, label: int, form: Integers) -> None:
    """Count the last line, and the label that nothing follows."""
    _add_label(end_line(line, label, form) if line.characters else label, form)


@njit(**KERNEL)
def look_at_end(data: Bytes, span: tuple[int, int], classes: Classes, form: Integers) -> None:
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
            form[Form.LAST_DOTS] = 1
        elif dots > 0 or classes[code] & FINISH:
            form[Form.LAST_FINISHED] = 1
        return


def pair_table(scores: Bytes) -> Bytes:
    """Return the likelihood of each pair of ASCII letters, uint8 [26 * 26], by their bytes.

    That of `first` before `second`, in any case, is at first + 256 * second, uint8 [65536].
    """
    table = np.zeros((256, 256), np.uint8)
    for first, second in product((ord("a"), ord("A")), repeat=2):
        table[second : second + 26, first : first + 26] = scores.reshape(26, 26).T
    return table.ravel()


@njit(**KERNEL)
def weigh_pairs(data: Bytes, span: tuple[int, int], scores: Bytes, form: Integers) -> None:
    """Count the pairs of ASCII letters, and add up their scores."""
    at, stop = span
    total = uint64(0)
    for place in range(at + ONE, stop):
        total += uint64(scores[read_2(data, place - ONE)])
    form[Form.PAIR_SCORES] = np.int64(total)
    pairs = uint64(0)
    # As far as 65 bytes can be read; the rest byte by byte.
    while at + RUN < min(stop, uint64(len(data))):
        letters = small_letters(data, at) | capitals(data, at)
        following = small_letters(data, at + ONE) | capitals(data, at + ONE)
        pairs += count_ones(letters & following)
        at += RUN
    for place in range(at + ONE, stop):
        pairs += uint64(_is_letter(data[place - ONE]) & _is_letter(data[place]))
    form[Form.PAIRS] = np.int64(pairs)


@njit(**INLINED)
def _is_letter(byte: int) -> bool:
    return 97 <= byte | 0x20 <= 122
