"""Clues: short patterns of bytes, one of which is in every text with a candidate of a scan.

A clue is a pattern of fixed length in bytes of UTF-8: `[a-z]` is one byte of a class, `\\d` a
digit, `.` any byte or the end of the text, `{n}` repeats an element; anything else is itself. One
shorter than four bytes has an "@". A kernel looks for all clues in one pass over the text, which
takes 2.5 s/GB; regexes, 0.3 to 0.9 s/GB each of 35, read only windows around a clue of theirs.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
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
    from assets.filtered.kernels.clue_scan import GRAM, HASH_BITS, SIGN, ClueTables, hash_gram

    folded = _folded_bytes()
    clues = [(elements_of(clue), number) for number, scan in enumerate(scans)
             for clue in scan.clues]  # fmt: skip
    slots = np.full((1 << HASH_BITS) + 1, -1, np.int32)
    links: list[tuple[int, int]] = []
    ends = []
    for number, (elements, _) in enumerate(clues):
        if len(elements) < GRAM:
            keys, size = [-1], int(np.argmax(elements.sum(axis=1) == elements[:, SIGN])) + 1
        else:
            first, grams = _rarest_gram(elements, folded, GRAM)
            words = (int.from_bytes(bytes(gram), "little") for gram in grams)
            keys, size = [hash_gram(np.uint32(word)) for word in words], first + GRAM
        ends.append(size)
        for key in keys:
            links.append((number, int(slots[key])))
            slots[key] = len(links) - 1
    return ClueTables(
        folded=folded.astype(np.uint32) << np.uint32(24),
        bits=np.packbits(slots[:-1] >= 0, bitorder="little").view(np.uint32),
        slots=slots,
        chained=np.array(links or [(0, -1)], np.int32),
        elements=np.concatenate([np.zeros((0, 256), np.uint8), *(rows for rows, _ in clues)]),
        starts=np.cumsum([0, *(len(rows) for rows, _ in clues)]),
        ends=np.array(ends, np.int64),
        scans=np.array([scan for _, scan in clues], np.int64),
        held=np.concatenate([np.zeros((0, 256), np.uint8)] + [elements_of(s.held) for s in scans]),
        reaches=np.array([scan.reach for scan in scans], np.int64),
    )


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


def _folded_bytes() -> NDArray[np.uint8]:
    folded = np.arange(256, dtype=np.uint8)
    folded[ord("0") : ord("9") + 1] = ord("0")
    folded[ord("A") : ord("Z") + 1] += ord("a") - ord("A")
    return folded


def _rarest_gram(
    elements: NDArray[np.uint8], folded: NDArray[np.uint8], size: int
) -> tuple[int, Iterator[Sequence[int]]]:
    """Return the first element of the window with the fewest folded grams, and these."""
    choices = [sorted(set(folded[row != 0].tolist())) for row in elements]
    windows = [choices[i : i + size] for i in range(len(choices) - size + 1)]
    first = min(range(len(windows)), key=lambda i: prod(map(len, windows[i])))
    return first, product(*windows[first])
