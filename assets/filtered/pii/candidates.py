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
    is_hit = texts.str.contains(scan.core)
    frame = pl.DataFrame({"text": texts}).filter(is_hit)
    words = frame["text"].str.extract_all(scan.candidate)
    counts = words.list.len().to_numpy().astype(np.int64)
    has_any = counts > 0
    if not has_any.any():
        return _NOTHING
    # Polars returns matches without places: what is between them has the other sizes.
    gaps = frame.filter(has_any).select(pl.col("text").str.split(scan.candidate, literal=False))
    within = windows[is_hit.to_numpy()][has_any]
    window = np.repeat(np.arange(len(within)), counts[has_any])
    places = 2 * np.arange(len(window)) + window + 1
    sizes = np.empty(2 * len(window) + len(within), np.int64)
    is_gap = np.ones(len(sizes), bool)
    is_gap[places] = False
    sizes[is_gap] = _sizes(gaps["text"])
    sizes[places] = _sizes(words.filter(has_any))
    ends = sizes.cumsum()
    firsts = np.searchsorted(window, np.arange(len(within)))
    before = 2 * firsts + np.arange(len(within))  # the first gap of each window
    moves = (within[:, 1] - ends[before] + sizes[before])[window] + ends[places]
    return np.column_stack([within[window, 0], moves - sizes[places], moves])


def _cut(data: Bytes, windows: Integers) -> pl.Series:
    """Return the texts of windows, without a copy."""
    import pyarrow as pa

    bounds = windows[:, 1:].ravel()  # the texts between the windows are left out
    array: Any = pa.LargeStringArray.from_buffers(
        len(bounds) - 1, pa.py_buffer(bounds), pa.py_buffer(data)
    )
    return pl.Series(array, dtype=pl.String).gather_every(2)


def _sizes(lists: pl.Series) -> Integers:
    return lists.explode().str.len_bytes().to_numpy().astype(np.int64)
