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
    from assets.filtered.kernels.matches import find_again

    if not len(windows):
        return _NOTHING
    lists: Any = _cut(data, windows).str.extract_all(scan.candidate).to_arrow()
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


def _cut(data: Bytes, windows: Integers) -> pl.Series:
    """Return the texts of windows, without a copy."""
    import pyarrow as pa

    bounds = windows[:, 1:].ravel()  # the texts between the windows are left out
    array: Any = pa.LargeStringArray.from_buffers(
        len(bounds) - 1, pa.py_buffer(bounds), pa.py_buffer(data)
    )
    return pl.Series(array, dtype=pl.String).gather_every(2)
