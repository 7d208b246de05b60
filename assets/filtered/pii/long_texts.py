"""Search a long text again where it changed, with the result of a search of all of it.

A search finds again what it found before, except around what was replaced since. So only an excerpt
around each change is searched; what was found before the change stays, and what was found after it
moves. The seams lie where both searches are sure to go on alike: a regex that goes on at the end of
a match knows nothing of what was before it, and no window holds a byte that no candidate can have.
A scan without such a place reads all of the text again.
Lists of personal data without a gap need it: of a million values, each search replaces a few.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.filtered.pii.candidates import between_characters, known_until
from assets.filtered.pii.clues import elements_of
from assets.filtered.pii.scan import FAR, Scan

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]

LONG = 1 << 18  # bytes of a text that is worth the excerpts
MARGIN = 1 << 13  # bytes of an excerpt on either side of a change
# With more, of a quarter of the text or so, its search as a whole is as fast.
MAX_CHANGES = 4_096
_MAX_ZONES = 64
_SPARSE = 256  # bytes a record: a search of ordinary text takes 4 ms/MB, excerpts up to 100 ms
_BEFORE = 120 * 4  # bytes; a check reads at most 120 characters before a candidate
_CLUE = 64  # bytes, more than a clue has
_SHORT = 640  # characters after a candidate that its check may read, in an excerpt


class Found(NamedTuple):
    """What a search found for a scan: blocks of records of `check_candidates`."""

    blocks: list[Integers]
    has_windows: bool


class Zones(NamedTuple):
    """Changes of a text, int64 [z] in bytes, in order: `MARGIN` bytes beside them are the same."""

    starts: Integers  # in the new text
    ends: Integers
    steps: Integers  # [z + 1]: bytes that the text before, between and after them moved
    char_steps: Integers  # the same in characters


def is_dense(found: list[Found], texts: pl.Series) -> bool:
    """Check that a text has so many candidates that their checks take most of a search of it."""
    num_records = sum(len(block) for own in found for block in own.blocks)
    return num_records * _SPARSE > int(texts.str.len_bytes().sum())


Search = Callable[[Bytes, Integers, Sequence[Scan]], list[Found]]


def search_again(
    found: list[Found], zones: Zones, data: Bytes, scans: Sequence[Scan], search: Search
) -> list[Found]:
    """Return what a search of the new text finds for each scan.

    found: what it found in the old text; data: the bytes of the new one.
    """
    from assets.filtered.kernels.span_edit import to_characters

    if not len(zones.starts):
        return found
    whole = np.array([0, len(data)])
    edges = _excerpts(zones, data)
    if edges is None:
        return search(data, whole, scans)
    bases = np.column_stack([np.zeros_like(edges[:, 0]), edges[:, [0, 0]]])
    to_characters(data, whole, bases)
    sizes = edges[:, 1] - edges[:, 0]
    offsets = np.append(0, sizes.cumsum())
    parts = np.concatenate([data[start:end] for start, end in edges.tolist()])
    joined = []
    for scan, before, after in zip(scans, found, search(parts, offsets, scans), strict=True):
        for block in after.blocks:
            rows = block[:, 0]
            block[:, 1:3] += bases[rows, 1][:, None]
            block[:, 4] += (edges[:, 0] - offsets[:-1])[rows]
            block[:, 0] = 0
        joined.append(_join(before, after, zones, scan, (data, edges)))
    unsure = [scan for scan, own in zip(scans, joined, strict=True) if own is None]
    again = iter(search(data, whole, unsure) if unsure else [])
    return [own or next(again) for own in joined]


def _join(
    before: Found, after: Found, zones: Zones, scan: Scan, texts: tuple[Bytes, Integers]
) -> Found | None:
    """Return what a search of the new text finds for a scan; None if only the search can tell.

    before: what was found in the old text; after: in the excerpts, in places of the new text.
    texts: the new text, and the starts and ends of the excerpts, int64 [z, 2].
    """
    if not before.has_windows and not after.has_windows:
        return before
    if scan.sight > _SHORT:
        return None
    seams = np.empty((len(zones.starts), 2), np.int64)
    ends = (_Ends.of(before.blocks), _Ends.of(after.blocks))
    find = _breaks if scan.reach == FAR else _meetings
    for zone in range(len(seams)):
        own = Zones(*(values[zone:] for values in zones))
        seam = find(ends, own, scan, (texts[0], texts[1][zone]))
        if seam is None:
            return None
        seams[zone] = seam
    moved = seams - np.column_stack([zones.steps[:-1], zones.steps[1:]])
    blocks = [_kept(*block, moved.ravel(), zones) for block in zip(*ends[0], strict=True)]
    for block in after.blocks:
        blocks.append(block[np.searchsorted(seams.ravel(), block[:, 4]) % 2 == 1])
    return Found([block for block in blocks if len(block)], True)


class _Ends(NamedTuple):
    """Blocks of records, and the first and last end, in bytes, of the candidates of each."""

    blocks: list[Integers]
    firsts: list[int]
    lasts: list[int]

    @classmethod
    def of(cls, blocks: list[Integers]) -> "_Ends":
        """Return those of blocks that are not empty."""
        ends = [block[:, 4] for block in blocks]
        return cls(blocks, [own.min() for own in ends], [own.max() for own in ends])

    def between(self, low: int, high: int) -> Integers:
        """Return the ends from one place to another, each once, sorted."""
        own = [block[:, 4] for block, first, last in zip(*self, strict=True)
               if first <= high and low <= last]  # fmt: skip
        ends = np.concatenate([np.zeros(0, np.int64), *own])
        found: Integers = np.unique(ends[(low <= ends) & (ends <= high)])
        return found


def _kept(block: Integers, first: int, last: int, seams: Integers, zones: Zones) -> Integers:
    """Return the records of candidates that end outside the seams, int64 [2 * z], moved."""
    part, other = np.searchsorted(seams, [first, last]).tolist()
    if part == other and part % 2 == 0:  # most blocks, of ten million records
        if zones.steps[part // 2] or zones.char_steps[part // 2]:
            block[:, 1:3] += zones.char_steps[part // 2]
            block[:, 4] += zones.steps[part // 2]
        return block
    parts = np.searchsorted(seams, block[:, 4])
    kept: Integers = block[parts % 2 == 0]
    parts = parts[parts % 2 == 0] // 2
    kept[:, 1:3] += zones.char_steps[parts, None]
    kept[:, 4] += zones.steps[parts]
    return kept


Seams = tuple[int, int] | None


def _breaks(
    ends: tuple[_Ends, _Ends], zone: Zones, scan: Scan, text: tuple[Bytes, Integers]
) -> Seams:
    """Return the nearest bytes around a change that no candidate of a scan can have.

    ends: of the candidates of the old text, and of those of the excerpts.
    """
    data, (low, high) = text
    is_break = elements_of(scan.held)[0] == 0
    is_break[128:] = False  # windows end between characters
    first, last = _unaffected(zone, scan, _CLUE)
    before = np.flatnonzero(is_break[data[low + _CLUE : last]])
    after = np.flatnonzero(is_break[data[first : high - 4 * scan.sight - _CLUE]])
    if (low > 0 and not len(before)) or (high < len(data) and not len(after)):
        return _meetings(ends, zone, scan, text) if scan.mark else None
    return (
        low + _CLUE + int(before[-1]) if low > 0 else -1,
        first + int(after[0]) if high < len(data) else len(data),
    )


def _unaffected(zone: Zones, scan: Scan, far: int) -> tuple[int, int]:
    """Return from where on, and up to where, the same candidates pass the same checks."""
    return int(zone.ends[0]) + _BEFORE + far, int(zone.starts[0]) - 4 * scan.sight - far


def _meetings(
    ends: tuple[_Ends, _Ends], zone: Zones, scan: Scan, text: tuple[Bytes, Integers]
) -> Seams:
    """Return the nearest places around a change where both searches end a match, or have none.

    What a match is depends on at most twice the reach of its scan, or on what is before the second
    of its marks from there; windows may differ as far from a change.
    """
    data, (low, high) = text
    far = _CLUE if scan.mark else 4 * scan.reach + _CLUE
    first, last = _unaffected(zone, scan, far)
    left, right = (low + far, last), (first, high - 4 * scan.sight - far)
    if scan.mark:
        left, right = ((begin, known_until(data, scan, low, end)) for begin, end in (left, right))
    # Without a match in either, the last place is as good: no match is under way there.
    before = _common(*ends, left, int(zone.steps[0]), () if scan.mark else left[1:])
    after = _common(*ends, right, int(zone.steps[1]), () if scan.mark else right[1:])
    if (low > 0 and not len(before)) or (high < len(data) and not len(after)):
        return None
    return (
        int(before[-1]) if low > 0 else -1,
        int(after[0]) if high < len(data) else len(data),
    )


def _common(
    olds: _Ends, news: _Ends, edges: tuple[int, int], step: int, otherwise: tuple[int, ...]
) -> Integers:
    """Return the ends between two edges that both have; if neither has one there, `otherwise`.

    step: what the old ones moved.
    """
    low, high = edges
    own, other = olds.between(low - step, high - step) + step, news.between(low, high)
    if not len(own) and not len(other):
        return np.array(otherwise, np.int64)
    return np.intersect1d(own, other, assume_unique=True)


def changes(before: Integers, after: Integers, sizes: Integers) -> Zones:
    """Return where a text changed whose spans were replaced once these and once those.

    Spans: int64 [n, 5]: start, end, kind, then start and end in bytes, of the original text.
    sizes: int64 [kinds, 2]: characters and bytes of each placeholder.
    """
    own = np.searchsorted(before[:, 3], after[:, 3])
    is_kept = (np.append(before, [[-1] * 5], axis=0)[own] == after).all(axis=1)
    changed = np.concatenate([after[~is_kept], np.delete(before, own[is_kept], axis=0)])
    starts, ends = changed[:, 3:].T
    ends = np.maximum.accumulate(ends[np.argsort(starts, kind="stable")])
    starts = np.sort(starts)
    # Changes that are in one another's excerpts are one.
    firsts, lasts = (places + _growth(after, sizes, places)[:, 1] for places in (starts, ends))
    is_first = np.append(True, firsts[1:] - lasts[:-1] > 2 * MARGIN)[: len(firsts)]
    is_last = np.append(is_first[1:], True)[: len(firsts)]
    edges = np.append(starts[is_first], ends[-1:])
    steps = _growth(after, sizes, edges) - _growth(before, sizes, edges)
    return Zones(firsts[is_first], lasts[is_last], steps[:, 1], steps[:, 0])


def _growth(spans: Integers, sizes: Integers, places: Integers) -> Integers:
    """Return the characters and bytes by which the text before places grew, int64 [n, 2]."""
    grown = sizes[spans[:, 2]] - (spans[:, [1, 4]] - spans[:, [0, 3]])
    total = np.concatenate([[[0, 0]], grown.cumsum(axis=0)])
    grown_before: Integers = total[np.searchsorted(spans[:, 4], places, side="right")]
    return grown_before


def _excerpts(zones: Zones, data: Bytes) -> Integers | None:
    """Return the starts and ends of the excerpts around changes, int64 [z, 2]; None if too many."""
    edges = np.column_stack([zones.starts - MARGIN, zones.ends + MARGIN])
    edges = np.clip(edges, 0, len(data))
    if len(edges) > _MAX_ZONES or 4 * (edges[:, 1] - edges[:, 0]).sum() > len(data):
        return None
    return np.array([[between_characters(data, place) for place in own] for own in edges.tolist()])
