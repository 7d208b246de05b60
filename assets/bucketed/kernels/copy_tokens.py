"""Assembly of sequences: sort segments by their sequence, copy tokens to their places."""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_KERNEL

_places = types.Array(types.uint32, 1, "C", readonly=True)
_sizes = types.Array(types.int64, 1, "C", readonly=True)


@njit(
    types.Tuple((types.uint32[::1], types.int64[::1]))(_places, _places, types.int64),
    **ARRAY_KERNEL,
)
def sort_by_key(
    keys: NDArray[np.uint32], order: NDArray[np.uint32], num_keys: int
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Sort `order`, uint32 [n], by `keys[order]`, stable; keys, uint32 [n], are below `num_keys`.

    Returns the sorted order, uint32 [n], and the first position of each key, int64 [num_keys + 1].
    A counting sort, because numpy's stable sort of 32-bit values takes eight times as long.
    """
    starts = np.zeros(num_keys + 1, np.int64)
    for key in keys:
        starts[np.int64(key) + 1] += 1
    for key in range(num_keys):
        starts[key + 1] += starts[key]
    at, by_key = starts[:-1].copy(), np.empty(len(order), np.uint32)
    for place in order:
        key = np.int64(keys[place])
        by_key[at[key]] = place
        at[key] += 1
    return by_key, starts


_copy_types = [
    types.void(types.Array(token, 1, "C", readonly=True), _sizes, _sizes, _sizes, token[::1])
    for token in (types.uint16, types.uint32)
]


@njit(_copy_types, **ARRAY_KERNEL)
def copy_pieces(
    source: NDArray[np.uint16] | NDArray[np.uint32],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    places: NDArray[np.int64],
    target: NDArray[np.uint16] | NDArray[np.uint32],
) -> None:
    """Copy `lengths[i]` tokens from `source[starts[i]:]` to `target[places[i]:]`, for all i.

    starts, lengths and places are int64 [n]; source and target are of one dtype. Bounds are not
    checked.
    """
    for i in range(len(starts)):
        # Both slices are indexed from 0: otherwise a check of the index's sign prevents
        # vectorisation, and the copy takes six times as long.
        tokens = source[starts[i] : starts[i] + lengths[i]]
        place = target[places[i] : places[i] + lengths[i]]
        for k in range(len(tokens)):
            place[k] = tokens[k]
