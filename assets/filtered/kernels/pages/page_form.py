"""Count the form of a text: its words, lines, windows of words, and end.

The counts behind the scores of `page_form`, which tell prose from menus, lists of links, keywords,
noise and pages that were cut. Words are runs between white space, and each Han or kana character.

Method: up to 63 bytes of whole words become a bit each per class (`sign_masks`); words and lines
are then counted by additions and shifts. Only words of more bytes, and of characters of four, are
read one character after another.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value, arg-type"

from itertools import product

import numpy as np
from numba import njit, uint64

from assets.filtered.kernels.pages.page_counts import SPACE, Bytes, Classes, Form, Integers
from assets.filtered.kernels.pages.page_lines import (
    Line,
    add_label,
    add_to_lines,
    end_line,
    look_at_end,
)
from assets.filtered.kernels.pages.page_words import count_odd, count_signs, read_word
from assets.filtered.kernels.pages.sign_masks import LINE_FEED, read_signs
from assets.filtered.kernels.pages.word_windows import (
    SLOTS,
    WINDOW,
    Hashes,
    Seen,
    count_full_window,
    count_window,
    hash_word,
    hash_words,
)
from assets.text.kernels.compiling import ARRAY_KERNEL, INLINED, KERNEL
from assets.text.kernels.many_bytes import ONE, RUN, count_ones, read_2
from assets.text.kernels.plain_words import capitals, small_letters
from assets.text.kernels.utf8 import decode

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
