"""Search windows of texts for the candidates of a scan: Rust's regexes, with places as arrays."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.filtered.pii.scan import FAR, Scan
from assets.text.buffers import texts_in

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
    from assets.filtered.kernels.matches import find_again

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
