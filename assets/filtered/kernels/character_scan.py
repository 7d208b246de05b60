"""Find the kinds of characters in each text, read from Arrow's text buffers.

Purpose: one pass finds the rows that a slow Polars operation has to touch, and the script of most
letters of a text. Kinds are given as regexes; their tables of all code points are made once per
process.
Method: vector instructions find the bytes that are no printable ASCII, 64 at a time. Two of them
name a block of 64 code points (4,096 for four-byte characters), and a character is decoded only if
its block has a kind that the text has not shown yet.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

from functools import cache
from typing import NamedTuple

import numpy as np
import polars as pl
from numba import int64, njit, uint64
from numpy.typing import NDArray

from assets.text.kernels.character_classes import NUM_CODES
from assets.text.kernels.compiling import ARRAY_KERNEL, INLINED, KERNEL
from assets.text.kernels.many_bytes import (
    ONE,
    RUN,
    find_byte,
    first_one,
    mark_bytes,
    ones_below,
)
from assets.text.kernels.utf8 import decode

Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int64]

_BLOCK = 64  # code points that share all bytes of UTF-8 but the last
_RUN = 128  # bytes looked at together
_TAB, _NEWLINE, _BLANK, _DELETE = 0x09, 0x0A, 0x20, 0x7F


class Kinds(NamedTuple):
    """Bits of all code points, and of all pairs of bytes that begin a character.

    classes: uint8 [0x110000], the bits of each code point. pairs: uint8 [256 * 64]; index
    64 * byte + (next byte % 64) has the bits of all characters that begin with the two bytes.
    """

    classes: Bytes
    pairs: Bytes


@cache
def tell_kinds(patterns: tuple[str, ...]) -> Kinds:
    """Return the `Kinds` in which bit i marks the characters that regex i matches.

    Each pattern must match single characters only. Raises ValueError for more than 8 patterns, or
    if one matches a printable ASCII character, tab or newline, which the scan passes over.
    """
    if len(patterns) > 8:
        raise ValueError(f"{len(patterns)} patterns given, at most 8 fit. Split them.")
    classes = np.zeros(NUM_CODES, np.uint8)
    for i, pattern in enumerate(patterns):
        classes[matching_codes(pattern)] |= np.uint8(1 << i)
    passed_over = [_TAB, _NEWLINE, *range(_BLANK, _DELETE)]
    if classes[passed_over].any():
        raise ValueError(
            f"printable ASCII matches one of {patterns=}, and the scan passes over it. Narrow them."
        )
    return Kinds(classes, _bits_by_two_bytes(classes))


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


def _bits_by_two_bytes(classes: Bytes) -> Bytes:
    pairs = np.zeros((256, _BLOCK), np.uint8)
    pairs[0xC0:0xE0] = classes[:0x800].reshape(32, _BLOCK)
    pairs[0xE0:0xF0] = np.bitwise_or.reduce(classes[:0x10000].reshape(16, _BLOCK, _BLOCK), axis=2)
    beyond = np.bitwise_or.reduce(classes.reshape(-1, _BLOCK * _BLOCK), axis=1)
    planes = np.zeros(8 * _BLOCK, np.uint8)
    planes[: len(beyond)] = beyond
    pairs[0xF0:0xF8] = planes.reshape(8, _BLOCK)
    return pairs.ravel()


def kinds_of(data: Bytes, offsets: Offsets, kinds: Kinds) -> Bytes:
    """Return the OR of the bits of all characters for each of n texts, uint8 [n].

    data: UTF-8 bytes; offsets: int64 [n + 1].
    """
    bits = np.zeros(len(offsets) - 1, np.uint8)
    _scan_texts(data, offsets, kinds.classes, kinds.pairs, bits)
    return bits


def find_lines(data: Bytes, offsets: Offsets, kinds: Kinds, wanted: np.uint8) -> Offsets:
    """Return the lines of n texts with a character of a wanted bit, int64 [lines, 4].

    Columns: text, first byte, end (after the newline, or of the text), bits of all characters.
    data: UTF-8 bytes; offsets: int64 [n + 1].
    """
    return _find_lines(data, offsets, kinds.classes, kinds.pairs, wanted)


def dominant_groups(data: Bytes, offsets: Offsets, groups: Bytes) -> Bytes:
    """Return the group with most bytes for each of n texts, uint8 [n]; 0 if no group has any.

    groups: uint8 [0x110000], the group of each code point, 0 if it is not counted; all ASCII
    letters are in one group, other ASCII characters in none. Of equal groups the lowest wins.
    """
    dominant = np.zeros(len(offsets) - 1, np.uint8)
    _weigh_texts(data, offsets, groups, dominant)
    return dominant


@njit(**KERNEL)
def _scan_texts(data: Bytes, offsets: Offsets, classes: Bytes, pairs: Bytes, bits: Bytes) -> None:
    for row in range(len(bits)):
        span = (uint64(offsets[row]), uint64(offsets[row + 1]))
        bits[row] = _scan_text(data, span, classes, pairs)


@njit(**ARRAY_KERNEL)
def _find_lines(
    data: Bytes, offsets: Offsets, classes: Bytes, pairs: Bytes, wanted: np.uint8
) -> Offsets:
    lines = np.empty((len(offsets), 4), np.int64)
    count = 0
    for row in range(len(offsets) - 1):
        at, stop = uint64(offsets[row]), uint64(offsets[row + 1])
        while at < stop:
            end = min(find_byte(data, (at, stop), _NEWLINE) + ONE, stop)
            bits = _scan_text(data, (at, end), classes, pairs)
            if bits & wanted:
                if count == len(lines):
                    lines = np.concatenate((lines, np.empty_like(lines)))
                lines[count] = row, int64(at), int64(end), int64(bits)
                count += 1
            at = end
    return lines[:count]


@njit(**INLINED)
def _scan_text(data: Bytes, span: tuple[int, int], classes: Bytes, pairs: Bytes) -> np.uint8:
    at, stop = span
    bits = np.uint8(0)
    while at < stop:
        controls, leads = _look_at_run(data, at, min(stop - at, RUN))
        while controls:
            bits = np.uint8(bits | classes[data[at + first_one(controls)]])
            controls &= controls - ONE
        while leads:
            place = at + first_one(leads)
            if pairs[_pair(data[place], data[place + ONE])] & ~bits:
                bits = np.uint8(bits | classes[decode(data, place)[0]])
            leads &= leads - ONE
        at += RUN
    return bits


@njit(**INLINED)
def _look_at_run(data: Bytes, at: int, size: int) -> tuple[int, int]:
    """Mark ASCII controls but tab and newline, and first bytes of other characters, among 64."""
    if at + RUN <= uint64(len(data)):
        inside = ones_below(size) if size < RUN else ~uint64(0)
        controls = mark_bytes(data, at, uint64(0), uint64(_TAB))
        controls |= mark_bytes(data, at, uint64(_NEWLINE + 1), uint64(_BLANK - _NEWLINE - 1))
        controls |= mark_bytes(data, at, uint64(_DELETE), ONE)
        return controls & inside, mark_bytes(data, at, uint64(0xC0), uint64(0x40)) & inside
    controls = leads = uint64(0)
    for i in range(size):
        byte = data[at + i]
        is_control = (byte < _BLANK and byte != _TAB and byte != _NEWLINE) or byte == _DELETE
        controls |= uint64(is_control) << i
        leads |= uint64(byte >= 0xC0) << i
    return controls, leads


@njit(**ARRAY_KERNEL)
def _pair(byte: np.uint8, following: np.uint8) -> np.uint64:
    # An unsigned index spares numba the test for a negative one.
    return (np.uint64(byte) << np.uint64(6)) | (np.uint64(following) & np.uint64(0x3F))


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
