"""Union-find over numbered documents.

Purpose: the inner loops of `component_files`. A parent is never larger than its child, so the
smallest number of a component identifies it.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import int64, njit, types
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_KERNEL

Parents = NDArray[np.uint32] | NDArray[np.int64]

_numbered = types.Array(types.int64, 2, "C", readonly=True)
_parents = (types.uint32[::1], types.int64[::1])


@njit([types.int64(dtype, types.int64) for dtype in _parents], **ARRAY_KERNEL)
def _root(parents: Parents, number: int) -> int:
    """Return the end of a number's path, with path halving.

    Source: Tarjan and van Leeuwen 1984, "Worst-case analysis of set union algorithms".
    """
    while int64(parents[number]) != number:
        parents[number] = parents[parents[number]]
        number = int64(parents[number])
    return number


@njit([types.void(_numbered, dtype) for dtype in _parents], **ARRAY_KERNEL)
def link_pairs(pairs: NDArray[np.int64], parents: Parents) -> None:
    """Join the ends of the pairs, int64 [m, 2], in `parents` [n], at first 0 to n - 1, in place."""
    for row in range(len(pairs)):
        one, other = _root(parents, pairs[row, 0]), _root(parents, pairs[row, 1])
        parents[max(one, other)] = min(one, other)


@njit([types.void(dtype, types.boolean[::1]) for dtype in _parents], **ARRAY_KERNEL)
def resolve_labels(parents: Parents, is_member: NDArray[np.bool_]) -> None:
    """Replace parents [n] by labels, and mark the numbers that are in a pair, bool [n], in place.

    One pass in ascending order is enough, because no parent comes after its child.
    """
    for row in range(len(parents)):
        parent = int64(parents[row])
        if parent != row:
            is_member[row], is_member[parent] = True, True
            parents[row] = parents[parent]
