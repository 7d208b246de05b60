"""Search windows of texts for the candidates of a scan: Rust's regexes, with places as arrays."""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.filtered.pii.scan import Scan

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]

_NOTHING = np.zeros((0, 3), np.int64)


def candidates(data: Bytes, windows: Integers, scan: Scan) -> Integers:
    """Return row, first byte and end of the candidates in windows of the data, int64 [n, 3].

    windows: int64 [w, 3]: row, first byte, end; in order and without overlap.
    """
    if not len(windows):
        return _NOTHING
    texts = _cut(data, windows)
    words = texts.str.extract_all(scan.candidate)
    counts = words.list.len().to_numpy().astype(np.int64)
    having = np.flatnonzero(counts)
    if not len(having):
        return _NOTHING
    within, counts, matched = windows[having], counts[having], _sizes(words)
    # Polars returns matches without places: what is between them has the other sizes. Most windows
    # of a list are one match, and to split them takes as long as to find it.
    lengths = np.add.reduceat(matched, counts.cumsum() - counts)
    is_split = lengths < within[:, 2] - within[:, 1]
    between = pl.lit(texts.gather(having[is_split])).str.split(scan.candidate, literal=False)
    gaps = np.zeros(len(matched) + len(within), np.int64)
    gaps[np.repeat(is_split, counts + 1)] = _sizes(pl.select(between).to_series())
    window = np.repeat(np.arange(len(within)), counts)
    places = 2 * np.arange(len(window)) + window + 1
    sizes = np.empty(2 * len(window) + len(within), np.int64)
    is_gap = np.ones(len(sizes), bool)
    is_gap[places] = False
    sizes[is_gap] = gaps
    sizes[places] = matched
    ends = sizes.cumsum()
    firsts = 2 * (counts.cumsum() - counts) + np.arange(len(within))
    stops = (within[:, 1] - ends[firsts] + sizes[firsts])[window] + ends[places]
    return np.column_stack([within[window, 0], stops - sizes[places], stops])


def _cut(data: Bytes, windows: Integers) -> pl.Series:
    """Return the texts of windows, without a copy."""
    import pyarrow as pa

    bounds = windows[:, 1:].ravel()  # the texts between the windows are left out
    array: Any = pa.LargeStringArray.from_buffers(
        len(bounds) - 1, pa.py_buffer(bounds), pa.py_buffer(data)
    )
    return pl.Series(array, dtype=pl.String).gather_every(2)


def _sizes(lists: pl.Series) -> Integers:
    return lists.explode(empty_as_null=False).str.len_bytes().to_numpy().astype(np.int64)
