"""Count the form of a text: its words, lines, windows of words, and end.

The counts behind the scores of `page_form`, which tell prose from menus, lists of links, keywords,
noise and pages that were cut. Words are runs between white space, and each Han or kana character.

Method: up to 63 bytes of whole words become a bit each per class (`sign_masks`); words and lines
are then counted by additions and shifts. Only words of more bytes, and of characters of four, are
read one character after another.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value, arg-type"

from itertools import product
from typing import NamedTuple

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from assets.filtered.kernels.page_words import (
    SLOTS,
    WINDOW,
    Hashes,
    Seen,
    count_full_window,
    count_odd,
    count_signs,
    count_window,
    hash_word,
    hash_words,
    read_word,
)
from assets.filtered.kernels.sign_masks import (
    CLAUSE,
    CLOSING,
    LETTER,
    LINE_FEED,
    SINGLE,
    SPACE,
    TERMINAL,
    UPPER,
    Form,
    Signs,
    read_signs,
)
from assets.text.kernels.compiling import ARRAY_KERNEL, INLINED, KERNEL
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

Bytes = NDArray[np.uint8]
Classes = NDArray[np.uint16]
Integers = NDArray[np.int64]

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


Tables = tuple[Classes, Bytes]
Work = tuple[Classes, Hashes, Seen]  # classes of 64 bytes, hashes of words, of a window


@njit(**ARRAY_KERNEL)
def count_form(data: Bytes, starts: Integers, tables: Tables, counts: Integers) -> None:
    """Fill `counts`, int64 [n, len(Form)], for n texts.

    data: UTF-8; starts: int64 [n + 1]; tables: of `form_classes` and `pair_table`.
    """
    kinds, keys = np.zeros(64 + 4, np.uint16), np.zeros(1 + WINDOW + 64, np.uint64)
    seen = Seen(np.zeros(SLOTS, np.uint8), np.zeros(WINDOW + 1, np.uint8))
    for row in range(len(counts)):
        span = (uint64(starts[row]), uint64(starts[row + 1]))
        _count_text(data, span, tables[0], (kinds, keys, seen), counts[row])
        look_at_end(data, span, tables[0], counts[row])
        _weigh_pairs(data, span, tables[1], counts[row])


@njit(**KERNEL)
def _count_text(
    data: Bytes, span: tuple[int, int], classes: Classes, work: Work, counts: Integers
) -> None:
    (at, stop), (kinds, keys, seen) = span, work
    line = Line(0, 0, 0, 0)
    label = 0  # characters of the line before, if it may be a label
    num_keys = uint64(0)
    while at < stop:
        signs, feeds, size = read_signs(data, (at, stop), classes, kinds)
        code, width = decode(data, at)
        if size:
            if signs.words:
                num_keys = hash_words(data, at, signs, keys, num_keys)
                count_signs(signs, counts)
                count_odd(data, at, signs, counts)
            line, label = add_to_lines(data, at, (signs, feeds), classes, (line, label, counts))
        elif classes[code] & SPACE:
            size += width
            if code == LINE_FEED and line.characters:
                label = end_line(line, label, counts)
                line = Line(0, 0, 0, 0)
        else:
            end, characters, last = read_word(data, (at, stop), classes, counts)
            num_keys += ONE
            keys[num_keys] = hash_word(data, at, end)
            first = np.int64(classes[code])
            characters += line.characters + 1
            line = Line(characters, line.first if line.characters else first, last, first)
            size = end - at
        at += size
        num_keys = count_full_window(keys, num_keys, seen, counts)
    if line.characters:
        label = end_line(line, label, counts)
    add_label(label, counts)
    if 2 * num_keys >= WINDOW or counts[Form.WINDOW_WORDS] == 0:
        count_window(keys, np.int64(num_keys), seen, counts)


def pair_table(scores: Bytes) -> Bytes:
    """Return the likelihood of each pair of ASCII letters, uint8 [26 * 26], by their bytes.

    That of `first` before `second`, in any case, is at first + 256 * second, uint8 [65536].
    """
    table = np.zeros((256, 256), np.uint8)
    for first, second in product((ord("a"), ord("A")), repeat=2):
        table[second : second + 26, first : first + 26] = scores.reshape(26, 26).T
    return table.ravel()


@njit(**KERNEL)
def _weigh_pairs(data: Bytes, span: tuple[int, int], scores: Bytes, counts: Integers) -> None:
    """Count the pairs of ASCII letters, and add up their scores."""
    at, stop = span
    total = uint64(0)
    for place in range(at + ONE, stop):
        total += uint64(scores[read_2(data, place - ONE)])
    counts[Form.PAIR_SCORES] = np.int64(total)
    pairs = uint64(0)
    # As far as 65 bytes can be read; the rest byte by byte.
    while at + RUN < min(stop, uint64(len(data))):
        letters = small_letters(data, at) | capitals(data, at)
        following = small_letters(data, at + ONE) | capitals(data, at + ONE)
        pairs += count_ones(letters & following)
        at += RUN
    for place in range(at + ONE, stop):
        pairs += uint64(_is_letter(data[place - ONE]) & _is_letter(data[place]))
    counts[Form.PAIRS] = np.int64(pairs)


@njit(**INLINED)
def _is_letter(byte: int) -> bool:
    return 97 <= byte | 0x20 <= 122
