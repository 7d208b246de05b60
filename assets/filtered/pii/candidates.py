"""Find candidates of a scan in texts, and check them.

A clue is a short pattern of bytes, one of which is in every text with a candidate of a scan:
`[a-z]` is one byte of a class, `\\d` a digit, `.` any byte or the end of the text, `{n}` repeats an
element; anything else is itself. A kernel looks for all clues in one pass over the text, which
takes 0.6 to 1 s/GB; Rust's regexes, 0.3 to 0.9 s/GB each of 35, read only windows around a clue of
theirs. Checks, in Python, read pages of text that have all that they look at.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from assets.filtered.pii.scan import FAR, Scan
from assets.text.buffers import texts_in
from resources.settings.filtering.filter_steps import KINDS

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]

_NOTHING = np.zeros((0, 3), np.int64)


_PIECE = 1 << 22  # bytes of a window; their matches take up to 40 times as much memory


def candidates_in(
    data: Bytes, windows: Integers, scan: Scan, piece: int = _PIECE
) -> Iterator[Integers]:
    """Yield what `candidates` returns, in parts: of a long window piece by piece."""
    is_long = windows[:, 2] - windows[:, 1] > 2 * piece
    if not is_long.any() or not _can_restart(scan):
        yield candidates(data, windows, scan)
        return
    edges = np.flatnonzero(is_long)
    for own in np.split(windows, np.sort(np.concatenate([edges, edges + 1]))):
        if len(own) == 1:
            yield from _pieces(data, own[0], scan, piece)
        else:
            yield candidates(data, own, scan)


def _pieces(data: Bytes, window: Integers, scan: Scan, piece: int) -> Iterator[Integers]:
    """Search a window piece by piece: what follows a match does not depend on what precedes it."""
    row, start, end = window.tolist()
    stop = start
    while stop < end:
        stop = end if end - start < 2 * piece else between_characters(data, start + piece)
        places = candidates(data, np.array([[row, start, stop]]), scan)
        if stop < end:
            last = known_until(data, scan, start, stop)
            places = places[places[:, 2] <= last]
            if not len(places):
                stop = end
                places = candidates(data, np.array([[row, start, stop]]), scan)
            else:
                start = int(places[-1, 2])
        yield places


def _can_restart(scan: Scan) -> bool:
    """Check that a pattern may be searched for from the end of a match on, in a part of a window.

    It must not look for the start of the text, and what follows it must decide on it soon.
    """
    return "(?:^" not in scan.candidate and (scan.reach < FAR or bool(scan.mark))


def known_until(data: Bytes, scan: Scan, start: int, stop: int) -> int:
    """Return up to where the matches in data[start:stop] do not depend on what follows.

    A match, and what is read to find it, is at most twice the reach of its scan long, or ends
    before the second of its marks.
    """
    if not scan.mark:
        return stop - 2 * scan.reach
    marks = np.flatnonzero(data[start:stop] == ord(scan.mark))
    return start + int(marks[-3]) if len(marks) > 2 else start


def between_characters(data: Bytes, place: int) -> int:
    """Return the first place from one on where a character of UTF-8 begins."""
    while place < len(data) and data[place] & 0xC0 == 0x80:
        place += 1
    return place


def candidates(data: Bytes, windows: Integers, scan: Scan) -> Integers:
    """Return row, first byte and end of the candidates in windows of the data, int64 [n, 3].

    windows: int64 [w, 3]: row, first byte, end; in order and without overlap.
    """
    from assets.filtered.kernels.span_edit import find_again

    if not len(windows):
        return _NOTHING
    # One query, as each takes 0.2 ms: of the texts between the borders, every second one.
    texts = texts_in(data, windows[:, 1:].ravel()).to_frame("text")
    matches_of = pl.col("text").gather_every(2).str.extract_all(scan.candidate)
    lists: Any = texts.select(matches_of).to_series().to_arrow()
    if not len(lists.values):
        return _NOTHING
    # Polars returns matches without places: each is the first of its kind after the one before.
    _, ends, matches = (buffer or b"" for buffer in lists.values.buffers())
    return find_again(  # type: ignore[no-any-return]
        data,
        windows,
        np.frombuffer(lists.buffers()[1], np.int64)[: len(windows) + 1],
        np.frombuffer(ends, np.int64)[: len(lists.values) + 1],
        np.frombuffer(matches, np.uint8),
    )


REJECTED = len(KINDS)  # stands for the kind of a rejected candidate
_BEFORE = 128 * 4  # bytes; a check reads at most 120 characters before a candidate
_GAP = 4_096  # bytes between candidates that share a page
_PAGE_BITS = 16  # a page has some 64 kB, unless a candidate is longer


def check_candidates(data: Bytes, offsets: Integers, scan: Scan, places: Integers) -> Integers:
    """Return the spans of candidates, and the rejected candidates, int64 [n, 4], in characters.

    places: int64 [n, 3]: row, first byte, end of each candidate, in order. Column 3 is the number
    of the kind. Of candidates in the same text only the first is checked.
    """
    from assets.filtered.kernels.span_edit import first_alike, to_characters

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


if TYPE_CHECKING:
    from assets.filtered.kernels.clue_scan import ClueTables

# How often a byte is in texts, roughly: runs of blanks indent code.
_FREQUENCIES = np.full(256, 0.001)
_FREQUENCIES[list(b"etaonisrldhcumpgfbyvwkxjqz")] = np.geomspace(0.09, 0.001, 26)
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
    numbers: dict[bytes, int] = {}  # of the sets of bytes; np.unique takes 0.2 s for a row of 256
    elements = [
        numbers.setdefault(row.tobytes(), len(numbers)) for rows, _ in clues for row in rows
    ]
    order = np.argsort(groups, kind="stable")
    places = np.array([place for place, _ in grams], np.int64)
    return ClueTables(
        pairs=pairs,
        groups=np.searchsorted(groups[order], np.arange(GROUPS + 1)),
        grams=np.column_stack([order // 2, places[order], *_fixed_bits(allowed[order])]),
        classes=np.frombuffer(b"".join(numbers), np.uint8).reshape(-1, 256),
        elements=np.array(elements, np.int64),
        starts=np.cumsum([0, *(len(rows) for rows, _ in clues)]),
        scans=np.array([scan for _, scan in clues], np.int64),
        held=np.concatenate([nothing, *(elements_of(scan.held) for scan in scans)]),
        reaches=np.array([scan.reach for scan in scans], np.int64),
    )


def elements_of(clue: str) -> NDArray[np.uint8]:
    """Return the bytes that each element of a clue allows, uint8 [elements, 256], 0 or 1."""
    rows: list[NDArray[np.uint8]] = []
    for match in _ELEMENT.finditer(clue.encode()):
        rows += [allowed_bytes(match[1])] * int(match[2] or 1)
    return np.array(rows)


@cache
def allowed_bytes(element: bytes) -> NDArray[np.uint8]:
    """Return the bytes that an element of a clue allows, uint8 [256], 0 or 1."""
    is_special = element == b"." or (element[0] in b"[\\" and len(element) > 1)
    is_allowed = re.compile(element if is_special else re.escape(element), re.DOTALL)
    row = np.zeros(256, np.uint8)
    row[[found.start() for found in is_allowed.finditer(bytes(range(256)))]] = 1
    return row


def _rarest_gram(elements: NDArray[np.uint8], parity: int) -> tuple[int, NDArray[np.uint8]]:
    """Return the rarest even or odd place of a gram in a clue, and the bytes of the gram.

    It may begin up to 3 bytes before the clue, or end after it: any byte is there, and at the end
    of a clue whose last bytes may be those after a text.
    """
    from assets.filtered.kernels.clue_scan import GRAM

    around = np.ones((GRAM - 1, 256), np.uint8)
    is_open = np.logical_and.accumulate(elements[::-1, 0] > 0)[::-1]
    rows = np.concatenate([around, elements | is_open[:, None], around])
    shares = sliding_window_view(rows @ _FREQUENCIES, GRAM).prod(axis=1)
    start = (parity + 1) % 2  # in `rows`, three bytes before
    first = start + 2 * int(np.argmin(shares[start::2]))
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
