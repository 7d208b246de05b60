"""Find the lines that hold a character of a class, and the script that most of a text is in.

Runs of 128 bytes are looked at by vector instructions, and characters decoded only in those that
hold one which may count.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

from functools import cache

import numpy as np
import polars as pl
from numba import int64, njit, uint8
from numpy.typing import NDArray

from assets.text.kernels.character_classes import NUM_CODES
from assets.text.kernels.compiling import ARRAY_KERNEL
from assets.text.kernels.utf8 import decode

Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int64]

_BLOCK = 64  # code points that are tried together
_RUN = 128  # bytes looked at together
_TAB, _NEWLINE, _BLANK, _DELETE = 0x09, 0x0A, 0x20, 0x7F


def matching_codes(pattern: str, among: Offsets | None = None) -> Offsets:
    """Return the code points, int64 in ascending order, whose character `pattern` matches.

    `among` limits the search to these code points, int64, ascending, without surrogates.
    """
    codes, characters, blocks = _every_block() if among is None else _blocks_of(among)
    # Regexes are slow to start: characters are tried one by one only where 64 together match.
    hits = blocks.str.contains(pattern).arg_true().to_numpy().astype(np.int64) * _BLOCK
    places = (hits[:, None] + np.arange(_BLOCK)).ravel()
    places = places[places < len(codes)]
    singles = pl.Series([characters[i] for i in places], dtype=pl.String)
    return codes[places[singles.str.contains(pattern).to_numpy()]]


@cache
def _every_block() -> tuple[Offsets, str, pl.Series]:
    return _blocks_of(np.r_[0:0xD800, 0xE000:NUM_CODES])


def _blocks_of(codes: Offsets) -> tuple[Offsets, str, pl.Series]:
    """Return code points with their characters, and these in blocks (String)."""
    characters = codes.astype("<u4").tobytes().decode("utf-32-le")
    starts = range(0, len(codes), _BLOCK)
    return codes, characters, pl.Series([characters[i : i + _BLOCK] for i in starts])


@cache
def character_bits(patterns: tuple[str, ...]) -> Bytes:
    """Return a number for each code point, uint8 [0x110000], in which bit i says: regex i matches.

    Printable ASCII, tabs and newlines have none: `find_lines` passes over them.
    """
    bits = np.zeros(NUM_CODES, np.uint8)
    for i, pattern in enumerate(patterns):
        bits[matching_codes(pattern)] |= np.uint8(1 << i)
    bits[[_TAB, _NEWLINE, *range(_BLANK, _DELETE)]] = 0
    return bits


@njit(**ARRAY_KERNEL)
def find_lines(data: Bytes, offsets: Offsets, bits: Bytes) -> Offsets:
    """Return the lines of n texts with a character that has a bit, int64 [lines, 4].

    Columns: text, first byte, end (after the newline, or of the text), the OR of the bits of its
    characters. data: UTF-8 bytes; offsets: int64 [n + 1]; bits: uint8 [0x110000].
    """
    lines = np.empty((16, 4), np.int64)
    count = 0
    for row in range(len(offsets) - 1):
        at, stop = offsets[row], offsets[row + 1]
        while True:
            first = _next_place(data, at, stop, bits)
            if first == stop:
                break
            end = first
            while first > at and data[first - 1] != _NEWLINE:
                first -= 1
            found = uint8(0)
            while end < stop and data[end] != _NEWLINE:
                code, width = decode(data, end)
                found |= bits[code]
                end += width
            at = min(end + 1, stop)
            if count == len(lines):
                lines = np.concatenate((lines, np.empty_like(lines)))
            lines[count] = row, first, at, int64(found)
            count += 1
    return lines[:count]


@njit(**ARRAY_KERNEL)
def _next_place(data: Bytes, at: int, stop: int, bits: Bytes) -> int:
    """Return the first byte of the next character with a bit, or `stop`."""
    while at < stop:
        end = min(at + _RUN, stop)
        others = False
        # All of the run, since a loop that may stop early is not vectorised.
        for byte in data[at:end]:
            others |= (byte < _BLANK) & (byte != _TAB) & (byte != _NEWLINE) | (byte >= _DELETE)
        if others:
            for i in range(at, end):
                if (data[i] < 0x80 or data[i] >= 0xC0) and bits[decode(data, i)[0]]:
                    return i
        at = end
    return stop


def dominant_groups(data: Bytes, offsets: Offsets, groups: Bytes) -> Bytes:
    """Return the group with most bytes for each of n texts, uint8 [n]; 0 if no group has any.

    groups: uint8 [0x110000], the group of each code point, 0 if it is not counted; all ASCII
    letters are in one group, other ASCII characters in none. Of equal groups the lowest wins.
    """
    dominant = np.zeros(len(offsets) - 1, np.uint8)
    _weigh_texts(data, offsets, groups, dominant)
    return dominant


@njit(**ARRAY_KERNEL)
def _weigh_texts(data: Bytes, offsets: Offsets, groups: Bytes, dominant: Bytes) -> None:
    weights = np.zeros(256, np.int64)
    for row in range(len(dominant)):
        weights[:] = 0
        _weigh_text(data[offsets[row] : offsets[row + 1]], groups, weights)
        weights[0] = 0
        dominant[row] = np.argmax(weights)


@njit(**ARRAY_KERNEL)
def _weigh_text(text: Bytes, groups: Bytes, weights: Offsets) -> None:
    ascii_letters = 0
    for start in range(0, len(text), _RUN):
        run = text[start : start + _RUN]
        letters, others = _count_ascii(run)
        ascii_letters += letters
        if others:
            for i in range(start, start + len(run)):
                # The width is counted from the first byte: no other byte is looked at.
                if text[i] >= 0xC0:
                    width = 2 + (text[i] >= 0xE0) + (text[i] >= 0xF0)
                    weights[groups[decode(text, i)[0]]] += width
    weights[groups[ord("a")]] += ascii_letters


@njit(**ARRAY_KERNEL)
def _count_ascii(run: Bytes) -> tuple[np.uint8, np.uint8]:
    """Count ASCII letters, and bytes of other characters, of a run of fewer than 256 bytes."""
    letters, others = np.uint8(0), np.uint8(0)
    for byte in run:
        lower = np.uint8(byte | 0x20)
        letters = np.uint8(letters + np.uint8((lower >= 0x61) & (lower <= 0x7A)))
        others = np.uint8(others + np.uint8(byte >= 0x80))
    return letters, others
