"""Copy rows of bytes to places in the bytes of a file.

Purpose: formats with a header before every row (MDS, litdata, tar) interleave the rows of one array
with those of another. A Python loop over slices is many times slower for short rows.
Price: the whole file's bytes in memory.
"""
# mypy: disable-error-code="untyped-decorator"

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_KERNEL

_bytes = types.Array(types.uint8, 1, "C", readonly=True)
_places = types.Array(types.int64, 1, "C", readonly=True)


@njit(types.void(types.uint8[::1], _places, _bytes, _places), **ARRAY_KERNEL)
def place_rows(
    target: NDArray[np.uint8],
    places: NDArray[np.int64],
    content: NDArray[np.uint8],
    starts: NDArray[np.int64],
) -> None:
    """Copy row i, uint8 content[starts[i]:starts[i + 1]], to target[places[i]:].

    `places` is int64 [n], `starts` int64 [n + 1]. Bounds are not checked.
    """
    for row in range(len(places)):
        size = starts[row + 1] - starts[row]
        # The loop becomes wide copies only if both slices share one index without a sum (14 x).
        source, copy = content[starts[row] :], target[places[row] :]
        for i in range(size):
            copy[i] = source[i]
