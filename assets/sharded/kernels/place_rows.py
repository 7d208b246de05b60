"""Copies rows of bytes to places in a file's bytes: what record formats are made of.

Purpose: formats that put a header before every row (MDS, litdata, tar) want rows of one array
between pieces of another. Price: 6 GB/s (16-byte rows: 2), where a Python loop over slices reaches
0.04 (64 tokens a row) to 1.2 (2,048); the whole file's bytes in memory.
"""
# mypy: disable-error-code="untyped-decorator"

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

_bytes = types.Array(types.uint8, 1, "C", readonly=True)
_places = types.Array(types.int64, 1, "C", readonly=True)


@njit(types.void(types.uint8[::1], _places, _bytes, _places), cache=True, nogil=True)
def place_rows(
    target: NDArray[np.uint8],
    places: NDArray[np.int64],
    content: NDArray[np.uint8],
    starts: NDArray[np.int64],
) -> None:
    """Copy row i, uint8 content[starts[i]:starts[i + 1]], to target[places[i]:].

    `places` is int64 [n], `starts` int64 [n + 1]. Bounds are the caller's.
    """
    for row in range(len(places)):
        size = starts[row + 1] - starts[row]
        # One index for both, and no sum in it: only so is the loop compiled to wide copies (14 x).
        source, copy = content[starts[row] :], target[places[row] :]
        for i in range(size):
            copy[i] = source[i]
