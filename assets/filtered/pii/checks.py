"""Check the candidates of a scan in pages of text, which have all that a check reads."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from assets.filtered.pii.scan import Scan
from resources.settings.filtering.filter_steps import KINDS

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]

REJECTED = len(KINDS)  # stands for the kind of a rejected candidate
_BEFORE = 128 * 4  # bytes; a check reads at most 120 characters before a candidate
_GAP = 4_096  # bytes between candidates that share a page
_SAMPLE = 1_024  # candidates that tell whether a list repeats itself
_PAGE_BITS = 16  # a page has some 64 kB, unless a candidate is longer


def check_candidates(data: Bytes, offsets: Integers, scan: Scan, places: Integers) -> Integers:
    """Return the spans of candidates, and the rejected candidates, int64 [n, 5], in characters.

    places: int64 [n, 3]: row, first byte, end of each candidate, in order. Column 3 is the number
    of the kind, column 4 the end of the candidate, in bytes.
    """
    from assets.filtered.kernels.span_edit import to_characters

    if scan.find is not None:
        found = np.ascontiguousarray(scan.find(data, offsets, places))
        found[:, 3] = np.where(found[:, 3], KINDS.index(scan.kind), REJECTED)
        own = np.searchsorted(places[:, 1], found[:, 1], side="right") - 1
        to_characters(data, offsets, found)
        return np.column_stack([found, places[own, 2]])
    text = (data, offsets, scan)
    check = _read_pages if scan.decide is None else _decide
    if scan.decide is None or _repeats(*text, places[:_SAMPLE]):
        found = _check_alike(check, *text, places)
    else:
        found = check(*text, places)
    own, found[:, 0] = places[found[:, 0]], places[found[:, 0], 0]
    return np.column_stack([found, own[:, 2]])


def _repeats(data: Bytes, offsets: Integers, scan: Scan, places: Integers) -> bool:
    """Check that most candidates of a long list are in the same text as one before."""
    from assets.filtered.kernels.matches import first_alike

    if len(places) < _SAMPLE:
        return False
    alike = first_alike(data, offsets, places, _BEFORE, 4 * scan.sight)
    return len(np.unique(alike)) < _SAMPLE // 4


def _check_alike(
    check: Callable[[Bytes, Integers, Scan, Integers], Integers],
    data: Bytes,
    offsets: Integers,
    scan: Scan,
    places: Integers,
) -> Integers:
    """Return what a check says, with numbers of candidates in column 0, int64 [n, 4].

    Of candidates in the same text only the first is checked.
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
    found = check(data, offsets, scan, places[own])
    found = found[np.argsort(found[:, 0], kind="stable")]
    # Each takes what its like has: all at the same distance.
    sizes = np.bincount(found[:, 0], minlength=len(own))
    counts = sizes[alike]
    steps = np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts, counts)
    spans: Integers = found[np.repeat((sizes.cumsum() - sizes)[alike], counts) + steps]
    spans[:, 1:3] += np.repeat(characters[:, 1] - characters[own[alike], 1], counts)[:, None]
    spans[:, 0] = np.repeat(np.arange(len(places)), counts)
    return spans


def _decide(data: Bytes, offsets: Integers, scan: Scan, places: Integers) -> Integers:
    """Decide on candidates in arrays, and read those that are not plain: see `_check_alike`."""
    from assets.filtered.kernels.plain.plain_bytes import REFUSED, UNSURE
    from assets.filtered.kernels.span_edit import to_characters

    assert scan.decide is not None
    moved = places.copy()
    ends = scan.decide(data, offsets, moved)
    kinds = np.where(ends == REFUSED, REJECTED, KINDS.index(scan.kind))
    stops = np.where(ends == REFUSED, places[:, 2], ends)
    numbers = np.flatnonzero(ends != UNSURE)
    decided = np.column_stack([moved[:, :2], stops, kinds])[numbers]
    if scan.kind == "password":  # see `_read_pages`
        accepted = np.flatnonzero(ends > 0)
        words = np.column_stack([places[accepted], np.full(len(accepted), REJECTED)])
        decided, numbers = np.concatenate([decided, words]), np.append(numbers, accepted)
    to_characters(data, offsets, decided)
    decided[:, 0] = numbers
    unsure = np.flatnonzero(ends == UNSURE)
    found = _check_alike(_read_pages, data, offsets, scan, places[unsure])
    found[:, 0] = unsure[found[:, 0]]
    return np.concatenate([decided, found])


def _read_pages(data: Bytes, offsets: Integers, scan: Scan, places: Integers) -> Integers:
    """Read each candidate in its page: see `_check_alike`."""
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
