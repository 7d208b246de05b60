"""Check the candidates of a scan in pages of text, which have all that a check reads."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from assets.filtered.pii.scan import Scan
from resources.settings.filtering.filter_steps import KINDS

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]

REJECTED = len(KINDS)  # stands for the kind of a rejected candidate
_BEFORE = 128 * 4  # bytes; a check reads at most 120 characters before a candidate
_GAP = 4_096  # bytes between candidates that share a page
_PAGE_BITS = 16  # a page has some 64 kB, unless a candidate is longer


def check_candidates(data: Bytes, offsets: Integers, scan: Scan, places: Integers) -> Integers:
    """Return the spans of candidates, and the rejected candidates, int64 [n, 4], in characters.

    places: int64 [n, 3]: row, first byte, end of each candidate, in order. Column 3 is the number
    of the kind. Of candidates in the same text only the first is checked.
    """
    from assets.filtered.kernels.matches import first_alike
    from assets.filtered.kernels.span_edit import to_characters

    if not len(places):
        return np.zeros((0, 4), np.int64)
    characters = places.copy()
    to_characters(data, offsets, characters)
    own, alike = np.unique(
        first_alike(data, offsets, places, _BEFORE, 4 * scan.sight), return_inverse=True
    )
    found = _read_pages(data, offsets, scan, places[own])
    found = found[np.argsort(found[:, 0], kind="stable")]
    # Each takes what its like has: all at the same distance.
    sizes = np.bincount(found[:, 0], minlength=len(own))
    counts = sizes[alike]
    steps = np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts, counts)
    spans: Integers = found[np.repeat((sizes.cumsum() - sizes)[alike], counts) + steps]
    spans[:, 1:3] += np.repeat(characters[:, 1] - characters[own[alike], 1], counts)[:, None]
    spans[:, 0] = np.repeat(places[:, 0], counts)
    return spans


def _read_pages(data: Bytes, offsets: Integers, scan: Scan, places: Integers) -> Integers:
    """Read each candidate in its page; column 0 has its number: see `check_candidates`."""
    from assets.filtered.kernels.span_edit import to_characters

    characters = places.copy()
    to_characters(data, offsets, characters)
    firsts, pages = _pages(offsets, scan, places)
    bases = pages[:, [0, 1, 1]]
    to_characters(data, offsets, bases)
    kind, content = KINDS.index(scan.kind), data.data

    def every() -> Iterator[tuple[int, int, int, int]]:
        lasts = [*firsts[1:].tolist(), len(places)]
        edges = zip(firsts.tolist(), lasts, bases[:, 1].tolist(), pages.tolist(), strict=True)
        for first, last, base, (_, low, high) in edges:
            # A character cut by the page's edge counts before the base.
            text = str(content[low:high], "utf-8", "ignore")
            for i, (start, end) in enumerate((characters[first:last, 1:] - base).tolist(), first):
                spans = list(scan.check(text, start, end))
                for span in spans:
                    yield i, base + span[0], base + span[1], kind
                # Two words can lead to one password: the first may find another once it is gone.
                if not spans or scan.kind == "password":
                    yield i, base + start, base + end, REJECTED

    return np.fromiter(every(), np.dtype((np.int64, 4)))


def _pages(offsets: Integers, scan: Scan, places: Integers) -> tuple[Integers, Integers]:
    """Return the first candidate of each page, and the pages: int64 [p, 3]: row, start, end."""
    rows, starts, ends = places.T
    is_first = np.ones(len(places), bool)
    is_first[1:] = (rows[1:] != rows[:-1]) | (starts[1:] - ends[:-1] > _GAP)
    is_first[1:] |= starts[1:] >> _PAGE_BITS != starts[:-1] >> _PAGE_BITS
    firsts = np.flatnonzero(is_first)
    lasts = np.append(firsts[1:], len(places)) - 1
    own = rows[firsts]
    lows = np.maximum(starts[firsts] - _BEFORE, offsets[own])
    highs = np.minimum(ends[lasts] + 4 * scan.sight, offsets[own + 1])
    return firsts, np.column_stack([own, lows, highs])
