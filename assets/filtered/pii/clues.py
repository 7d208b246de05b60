"""Clues: short patterns of bytes, one of which is in every text with a candidate of a scan.

A clue is a pattern of fixed length in bytes of UTF-8: `[a-z]` is one byte of a class, `\\d` a
digit, `.` any byte or the end of the text, `{n}` repeats an element; anything else is itself. One
shorter than four bytes has an "@". A kernel looks for all clues in one pass over the text, which
takes 1.2 to 2 s/GB; regexes, 0.3 to 0.9 s/GB each of 35, read only windows around a clue of theirs.
"""

import re
from collections.abc import Sequence
from functools import cache
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from assets.filtered.pii.scan import Scan

if TYPE_CHECKING:
    from assets.filtered.kernels.clue_scan import ClueTables

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]
_ELEMENT = re.compile(rb"(\[(?:[^\]\\]|\\.)+\]|\\x[0-9a-f]{2}|\\.|.)(?:\{(\d+)\})?", re.DOTALL)


def windows_of(data: Bytes, offsets: Integers, scans: Sequence[Scan]) -> list[Integers]:
    """Return the windows of each scan that its candidates are in, int64 [n, 3]: row, start, stop.

    data: UTF-8 bytes; offsets: int64 [n + 1]. The windows of a scan share no byte and are in order.
    """
    from assets.filtered.kernels.clue_scan import find_windows

    windows = find_windows(data, offsets, clue_tables(tuple(scans)))
    windows = windows[windows[:, 0].astype(np.uint8).argsort(kind="stable")]
    ends = np.searchsorted(windows[:, 0], np.arange(1, len(scans)))
    return np.split(windows[:, 1:], ends)


@cache
def clue_tables(scans: tuple[Scan, ...]) -> "ClueTables":
    """Make the kernel's tables."""
    from assets.filtered.kernels import clue_scan as kernel

    clues = [(elements_of(clue), number) for number, scan in enumerate(scans)
             for clue in scan.clues]  # fmt: skip
    signs: list[tuple[int, int]] = []
    grams: list[tuple[int, int, NDArray[np.uint32]]] = []
    for number, (elements, _) in enumerate(clues):
        if len(elements) < kernel.GRAM:
            is_sign = elements.sum(axis=1) == elements[:, kernel.SIGN]
            signs.append((number, int(is_sign.argmax())))
        else:
            grams += [(number, *_rarest_grams(elements, parity)) for parity in (0, 1)]
    rows = [(*sign, link - 1) for link, sign in enumerate(signs)]
    rows += [(number, place, -1) for number, place, words in grams for _ in words]
    tables = kernel.ClueTables(
        bits=np.zeros((1 << kernel.HASH_BITS) // 32, np.uint32),
        grams=np.full(1 << kernel.SLOT_BITS, kernel.NO_GRAM),
        slots=np.full((1 << kernel.SLOT_BITS) + 1, -1, np.int32),
        links=np.array(rows, np.int64).reshape(-1, 3),
        elements=np.concatenate([np.zeros((0, 256), np.uint8), *(rows for rows, _ in clues)]),
        starts=np.cumsum([0, *(len(rows) for rows, _ in clues)]),
        scans=np.array([scan for _, scan in clues], np.int64),
        held=np.concatenate([np.zeros((0, 256), np.uint8)] + [elements_of(s.held) for s in scans]),
        reaches=np.array([scan.reach for scan in scans], np.int64),
    )
    tables.slots[-1] = len(signs) - 1
    words = np.concatenate([np.zeros(0, np.uint32), *(words for *_, words in grams)])
    kernel.link_grams(words, len(signs), tables)
    return tables


def elements_of(clue: str) -> NDArray[np.uint8]:
    """Return the bytes that each element of a clue allows, uint8 [elements, 256], 0 or 1."""
    rows: list[NDArray[np.uint8]] = []
    for match in _ELEMENT.finditer(clue.encode()):
        is_special = match[1] == b"." or (match[1][0] in b"[\\" and len(match[1]) > 1)
        is_allowed = re.compile(match[1] if is_special else re.escape(match[1]), re.DOTALL)
        row = np.zeros(256, np.uint8)
        row[[found.start() for found in is_allowed.finditer(bytes(range(256)))]] = 1
        rows += [row] * int(match[2] or 1)
    return np.array(rows)


def _rarest_grams(elements: NDArray[np.uint8], parity: int) -> tuple[int, NDArray[np.uint32]]:
    """Return the even or odd place in a clue with the fewest grams, and these, folded, uint32.

    A gram may begin up to 3 bytes before the clue, or end after it: any byte is there, and at the
    end of a clue whose last bytes may be those after a text.
    """
    from assets.filtered.kernels.clue_scan import GRAM

    any_byte = np.ones(256, bool)
    is_open = np.logical_and.accumulate(elements[::-1, 0] > 0)[::-1]
    around = [any_byte] * (GRAM - 1)
    rows = [*around, *np.where(is_open[:, None], any_byte, elements > 0), *around]
    folded = _folded_bytes()
    choices = [np.flatnonzero(np.bincount(folded[row])).astype(np.uint32) for row in rows]
    places = range((parity + 1) % 2, len(rows) - GRAM + 1, 2)  # in `rows`, three bytes before
    first = min(places, key=lambda place: prod(map(len, choices[place : place + GRAM])))
    words = np.zeros(1, np.uint32)
    for i, own in enumerate(choices[first : first + GRAM]):
        words = (words[:, None] | own << np.uint32(8 * i)).ravel()
    return first - (GRAM - 1), words


@cache
def _folded_bytes() -> NDArray[np.uint32]:
    """Return what the kernel makes of each byte, uint32 [256]."""
    from assets.filtered.kernels.clue_scan import fold

    return np.array([fold(byte) & 0xFF for byte in range(256)], np.uint32)
