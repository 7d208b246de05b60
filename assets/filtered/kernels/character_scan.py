"""Find the group of characters, such as a script, that most of a text is in.

ASCII letters are counted by vector instructions; other characters are decoded.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

from functools import cache

import numpy as np
import polars as pl
from numba import njit
from numpy.typing import NDArray

from assets.text.kernels.character_classes import NUM_CODES
from assets.text.kernels.compiling import ARRAY_KERNEL
from assets.text.kernels.utf8 import decode

Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int64]

_BLOCK = 64  # code points that are tried together
_RUN = 128  # bytes looked at together


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
