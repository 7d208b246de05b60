"""Write lists end to end with values inserted around them, in the type that they are stored in.

Purpose: ids come from an encoder as uint32 without marks. To cast them, insert the marks and copy
them to their place, each by NumPy, took four times as long.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import Any

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_KERNEL

NO_MARK = -1
LAST = 3  # the mark that follows a list; those before it come before

_values = types.Array(types.uint32, 1, "C", readonly=True)
_offsets = types.Array(types.int64, 1, "C", readonly=True)
_marks = types.Array(types.int64, 2, "C", readonly=True)


@njit(
    [
        types.void(_values, _offsets, _marks, types.uint16[::1]),
        types.void(_values, _offsets, _marks, types.uint32[::1]),
    ],
    **ARRAY_KERNEL,
)
def write_marked(
    values: NDArray[np.uint32],
    offsets: NDArray[np.int64],
    marks: NDArray[np.int64],
    target: NDArray[Any],
) -> None:
    """Write the lists values[offsets[i]:offsets[i + 1]] each with its marks around it.

    `marks` are int64 [n, 4], three before each list and one after it. Nothing is inserted for
    NO_MARK. `target` has room for exactly this.
    """
    place = 0
    for row in range(len(marks)):
        for mark in range(LAST):
            if marks[row, mark] != NO_MARK:
                target[place] = marks[row, mark]
                place += 1
        listed = values[offsets[row] : offsets[row + 1]]
        room = target[place : place + len(listed)]
        for i in range(len(room)):  # counted from 0 in both, else it is a number at a time
            room[i] = listed[i]
        place += len(listed)
        if marks[row, LAST] != NO_MARK:
            target[place] = marks[row, LAST]
            place += 1
