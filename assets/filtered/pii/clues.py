"""Clues: short patterns of bytes, one of which is in every text with a candidate of a scan.

A clue is a pattern of fixed length in bytes of UTF-8: `[a-z]` is one byte of a class, `\\d` a
digit, `.` any byte or the end of the text, `{n}` repeats an element; anything else is itself. A
kernel looks for all clues in one pass over the text, which takes 0.6 to 1 s/GB; regexes, 0.3 to
0.9 s/GB each of 35, read only windows around a clue of theirs.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from assets.filtered.pii.scan import Scan

if TYPE_CHECKING:
    from assets.filtered.kernels.clue_scan import ClueTables

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]
# How often a byte is in texts, roughly: runs of blanks indent code.
_FREQUENCIES = np.full(256, 0.001)
_FREQUENCIES[list(b"abcdefghijklmnopqrstuvwxyz")] = 0.03
_FREQUENCIES[list(b"0123456789")] = 0.01
_FREQUENCIES[ord(" ")] = 0.2
_ELEMENT = re.compile(rb"(\[(?:[^\]\\]|\\.)+\]|\\x[0-9a-f]{2}|\\.|.)(?:\{(\d+)\})?", re.DOTALL)


def windows_of(data: Bytes, offsets: Integers, scans: Sequence[Scan]) -> Iterator[Integers]:
    """Yield the windows of each scan that its candidates are in, int64 [n, 3]: row, start, stop.

    data: UTF-8 bytes; offsets: int64 [n + 1]. The windows of a scan share no byte and are in order.
    """
    from assets.filtered.kernels.clue_scan import find_windows

    windows = find_windows(data, offsets, clue_tables(tuple(scans)))
    scan_of = (windows[:, 0] % len(scans)).astype(np.uint8)
    is_found = np.bincount(scan_of, minlength=len(scans)) > 0
    # One scan after another: all at once, a list of 50 MB takes 0.3 GB more.
    for scan in range(len(scans)):
        own = windows[scan_of == scan] if is_found[scan] else windows[:0]
        own[:, 0] //= len(scans)
        yield own


@cache
def clue_tables(scans: tuple[Scan, ...]) -> "ClueTables":
    """Make the kernel's tables."""
    from assets.filtered.kernels.clue_scan import GRAM, GROUPS, ClueTables

    clues = [(elements_of(clue), number) for number, scan in enumerate(scans)
             for clue in scan.clues]  # fmt: skip
    nothing = np.zeros((0, 256), np.uint8)
    grams = [_rarest_gram(elements, parity) for elements, _ in clues for parity in (0, 1)]
    allowed = np.array([own for _, own in grams], np.uint8).reshape(-1, GRAM, 256)
    pairs, groups = _group(allowed)
    classes, elements = np.unique(
        np.concatenate([nothing, *(rows for rows, _ in clues)]), axis=0, return_inverse=True
    )
    order = np.argsort(groups, kind="stable")
    places = np.array([place for place, _ in grams], np.int64)
    return ClueTables(
        pairs=pairs,
        groups=np.searchsorted(groups[order], np.arange(GROUPS + 1)),
        grams=np.column_stack([order // 2, places[order], *_fixed_bits(allowed[order])]),
        classes=classes,
        elements=elements.ravel(),
        starts=np.cumsum([0, *(len(rows) for rows, _ in clues)]),
        scans=np.array([scan for _, scan in clues], np.int64),
        held=np.concatenate([nothing, *(elements_of(scan.held) for scan in scans)]),
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


def _rarest_gram(elements: NDArray[np.uint8], parity: int) -> tuple[int, NDArray[np.uint8]]:
    """Return the rarest even or odd place of a gram in a clue, and the bytes of the gram.

    It may begin up to 3 bytes before the clue, or end after it: any byte is there, and at the end
    of a clue whose last bytes may be those after a text.
    """
    from assets.filtered.kernels.clue_scan import GRAM

    around = np.ones((GRAM - 1, 256), np.uint8)
    is_open = np.logical_and.accumulate(elements[::-1, 0] > 0)[::-1]
    rows = np.concatenate([around, elements | is_open[:, None], around])
    shares = rows @ _FREQUENCIES
    places = range((parity + 1) % 2, len(rows) - GRAM + 1, 2)  # in `rows`, three bytes before
    first = min(places, key=lambda place: float(shares[place : place + GRAM].prod()))
    return first - (GRAM - 1), rows[first : first + GRAM]


def _fixed_bits(grams: NDArray[np.uint8]) -> tuple[Integers, Integers]:
    """Return the bits that all bytes allowed in each gram, uint8 [n, 4, 256], share; their values.

    Both int64 [n], of four bytes, the first one lowest.
    """
    codes = np.arange(256, dtype=np.uint8)
    ones = np.bitwise_and.reduce(np.where(grams > 0, codes, 255).astype(np.uint8), axis=2)
    some = np.bitwise_or.reduce(np.where(grams > 0, codes, 0).astype(np.uint8), axis=2)
    shared, values = (own.view("<u4").ravel().astype(np.int64) for own in (~(ones ^ some), ones))
    return shared, values & shared


def _group(grams: NDArray[np.uint8]) -> tuple[NDArray[np.uint64], Integers]:
    """Return the table of the kernel's pairs, and the group of each gram.

    A group is likely wherever any first pair of its grams is before any second one, so each gram,
    the most frequent first, joins the group that becomes least more frequent by it.
    """
    from assets.filtered.kernels.clue_scan import GROUPS

    shares = (grams @ _FREQUENCIES).reshape(-1, 2, 2).prod(axis=2)  # of either pair
    members = np.zeros(len(grams), np.int64)
    sums = np.zeros((GROUPS, 2))
    pairs = np.zeros((256, 256, 2), np.uint64)
    for gram in np.argsort(-shares.prod(axis=1), kind="stable"):
        joined = sums + shares[gram]
        own = int(np.argmin(joined.prod(axis=1) - sums.prod(axis=1)))
        members[gram], sums[own] = own, joined[own]
        for side, (first, second) in enumerate(grams[gram].reshape(2, 2, 256)):
            pairs[*np.ix_(second > 0, first > 0), side] |= np.uint64(1 << own)
    return pairs.reshape(-1, 2), members
