"""Weigh the evidence for source code line by line.

A line's evidence is a sum of weights (`code_score` has them): of each two neighbouring bytes by
their classes, divided by the line's bytes, and of its first word, last byte and indent. Work is
linear in the text.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, return-value"

from enum import IntEnum, auto
from typing import NamedTuple

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from assets.filtered.kernels.code_counts import (
    LF,
    SPACE,
    TAB,
    Bytes,
    Integers,
    find_newline,
    slot_of,
)
from assets.text.kernels.compiling import INLINED, KERNEL
from assets.text.kernels.many_bytes import (
    EIGHT,
    HIGH_BITS,
    ONE,
    ONES,
    RUN,
    count_ones,
    first_one,
    mark_bytes,
    ones_below,
    read_2,
    read_some,
    reverse_bytes,
    size_of,
)
from assets.text.kernels.words import mark_byte

Floats = NDArray[np.float64]
Hashes = NDArray[np.uint64]

LIMIT = 4.0  # of a line's evidence, so that no line decides for its text
MARGIN = 1e-6  # of a sum of evidence, far more than its rounding
STAR, SLASH, HASH, DASH, QUOTE, APOSTROPHE = 42, 47, 35, 45, 34, 39


class Sign(IntEnum):
    """Signs of a line besides its pairs of bytes, in the order of their weights."""

    BIAS = 0
    KEYWORD = auto()
    INDENT = auto()
    LOWER_CASE = auto()
    SEMICOLON = auto()
    BRACE = auto()
    BRACKET = auto()
    COMMA = auto()
    FULL_STOP = auto()


class Lexicon(NamedTuple):
    """Tables of the evidence.

    pairs     weight of two neighbouring bytes, at first + 256 * second; before a line is LF;
              int8 [65536], which fit the cache
    signs     weights of `Sign`, float64
    endings   `Sign` of a line's last byte, uint8 [256], BIAS for none
    keywords  first words by hash, as `code_counts.hash_words` makes them
    """

    pairs: NDArray[np.int8]
    signs: Floats
    endings: Bytes
    keywords: Hashes


@njit(**KERNEL)
def weigh_texts(
    starts: Integers, data: Bytes, lexicon: Lexicon, border: float, found: Floats
) -> None:
    """Fill `found`, float64 [n, 2], for n texts with offsets `starts`, int64 [n + 1].

    Columns: sum of the evidence of all lines, each within LIMIT, and number of lines. Lines are
    non-blank, without the blanks around them. A text is read until no line that is left can move
    its mean evidence across the border, to the end for NaN. Sum and number are then those with the
    evidence nearest to the border in all lines that are left.
    """
    for row in range(len(found)):
        text = data[starts[row] : starts[row + 1]]
        at, size = uint64(0), uint64(len(text))
        evidence, lines, left = 0.0, 0, _most_lines(text)
        while at < size:
            start, at, span = _next_line(text, at)
            left -= at - start > ONE
            if span[0] == span[1]:
                continue
            evidence += _weigh_line(text, start, span, lexicon)
            lines += 1
            distance = evidence - border * (lines + left)
            most = LIMIT * left
            if distance + most < -MARGIN or distance - most > MARGIN:
                evidence += most if distance < 0 else -most
                lines += left
                break
        found[row, 0], found[row, 1] = evidence, lines


@njit(**KERNEL)
def _most_lines(text: Bytes) -> int:
    """Count the lines that are not empty, and one more after a newline at the end."""
    at, size, number, before = uint64(0), uint64(len(text)), ONE, ONE
    while at + RUN <= size:
        newlines = mark_byte(text, at, LF)
        number += count_ones(newlines & ~(newlines << ONE | before))
        before = newlines >> uint64(63)
        at += RUN
    while at < size:
        newline = uint64(text[at] == LF)
        number += newline & ~before
        before = newline
        at += ONE
    return np.int64(number)


@njit(**INLINED)
def _weigh_line(text: Bytes, start: int, span: tuple[int, int], lexicon: Lexicon) -> float:
    """Return the evidence of text[span], the line that begins at `start` without its blanks.

    A comment may be prose: its evidence is not below 0, so that the lines around it decide.
    """
    first, stop = span
    line = text[first:stop]
    is_indented = (first - start >= uint64(2)) | ((first > start) & (text[start] == TAB))
    weight = _weigh_pairs(line, lexicon.pairs) / len(line)
    weight += _weigh_signs(text, span, is_indented, lexicon)
    return max(weight, 0.0 if _is_comment(line) else -LIMIT) if weight < LIMIT else LIMIT


@njit(**INLINED)
def _next_line(text: Bytes, at: int) -> tuple[int, int, tuple[int, int]]:
    """Return a line's start, that of the next, and its span without blanks."""
    newlines = mark_byte(text, at, LF) if at + RUN <= uint64(len(text)) else uint64(0)
    if newlines:
        end = first_one(newlines)
        signs = ~mark_bytes(text, at, uint64(0), uint64(SPACE + 1)) & ones_below(end)
        first = min(first_one(signs), end)
        stop = max(size_of(signs), first)
        return at, at + end + ONE, (at + first, at + stop)
    end = uint64(find_newline(text, at))
    first, stop = at, end
    while first < stop and text[first] <= SPACE:
        first += ONE
    while first < stop and text[stop - ONE] <= SPACE:
        stop -= ONE
    return at, end + ONE, (first, stop)


@njit(**KERNEL)
def _weigh_pairs(line: Bytes, pairs: NDArray[np.int8]) -> float:
    weight = pairs[LF | np.int64(line[0]) << 8] + 0
    for at in range(uint64(0), uint64(len(line) - 1)):
        weight += pairs[read_2(line, at)]
    return weight


@njit(**KERNEL)
def _weigh_signs(text: Bytes, span: tuple[int, int], is_indented: bool, lexicon: Lexicon) -> float:
    # Without a branch, as lines are hard to foresee.
    signs, first = lexicon.signs, text[span[0]]
    weight = signs[Sign.BIAS] + signs[Sign.INDENT] * is_indented
    ending = lexicon.endings[text[span[1] - ONE]]
    weight += signs[ending] * (ending != 0)
    weight += signs[Sign.LOWER_CASE] * ((first >= 97) & (first <= 122))
    key = _first_word(text, span)
    is_keyword = lexicon.keywords[slot_of(lexicon.keywords, key)] == key
    return weight + signs[Sign.KEYWORD] * (is_keyword & (key != 0))


@njit(**INLINED)
def _first_word(text: Bytes, span: tuple[int, int]) -> int:
    """Return the letters of ASCII that text[span] begins with, big-endian; 0 for more than 8."""
    first, stop = span
    word = read_some(text, first, min(stop - first, EIGHT))
    folded = word & ~HIGH_BITS | uint64(0x20) * ONES
    above, beyond = folded + uint64(0x80 - 97) * ONES, folded + uint64(0x80 - 123) * ONES
    size = first_one(~(above & ~beyond & ~word) & HIGH_BITS) >> uint64(3)
    if size == EIGHT:
        is_longer = first + EIGHT < stop and 97 <= text[first + EIGHT] | 32 <= 122
        return uint64(0) if is_longer else reverse_bytes(word)
    bits = EIGHT * size
    # Shifted twice, as no number can be shifted by 64.
    return reverse_bytes(word & ones_below(bits)) >> (uint64(63) - bits) >> ONE


@njit(**KERNEL)
def _is_comment(line: Bytes) -> bool:
    """Check for a mark that begins comments, or goes on with them, in many languages."""
    first, second = line[0], line[1] if len(line) > 1 else np.uint8(SPACE)
    is_twice = (first == DASH) | (first == QUOTE) | (first == APOSTROPHE)
    return bool(
        (first == HASH)
        | ((first == SLASH) & ((second == SLASH) | (second == STAR)))
        | ((first == STAR) & ((second <= SPACE) | (second == SLASH)))
        | ((first == second) & is_twice)
    )
