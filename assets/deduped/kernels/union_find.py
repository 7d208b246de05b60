"""Union-find over numbered documents.

Purpose: the inner loops of `component_files`. A parent is never larger than its child, so the
smallest number of a component identifies it.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import int64, njit, types, uint64
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_KERNEL

Parents = NDArray[np.uint32] | NDArray[np.int64]

_pairs = types.Array(types.uint64, 2, "C", readonly=True)
_edges = types.Array(types.int64, 1, "C", readonly=True)
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


@njit(types.int64(_edges, types.uint64), **ARRAY_KERNEL)
def _number(edges: NDArray[np.int64], row_id: int) -> int:
    """Return the number of a document; -1 if its part has no documents, -2 if it has fewer."""
    part, row = int64(row_id >> uint64(32)), int64(row_id & uint64(0xFFFFFFFF))
    if part + 1 >= len(edges) or edges[part] == edges[part + 1]:
        return -1
    return edges[part] + row if edges[part] + row < edges[part + 1] else -2


@njit([types.int64(_pairs, _edges, dtype) for dtype in _parents], **ARRAY_KERNEL)
def link_pairs(pairs: NDArray[np.uint64], edges: NDArray[np.int64], parents: Parents) -> int:
    """Join the ends of the pairs of row ids, uint64 [m, 2], in place, but those of no documents.

    `edges` has the first number of each part; `parents` [n] are at first 0 to n - 1. Returns the
    place of the first pair that is wrong, m if there is none.
    """
    for row in range(len(pairs)):
        one, other = _number(edges, pairs[row, 0]), _number(edges, pairs[row, 1])
        if one == -1 or other == -1:
            continue
        # A pair is (earlier, later); any other is wrong.
        if min(one, other) < 0 or one >= other:
            return row
        one, other = _root(parents, one), _root(parents, other)
        # Towards the smaller number, on which `number_components` relies.
        parents[max(one, other)] = min(one, other)
    return len(pairs)


@njit([types.int64(dtype, types.boolean[::1]) for dtype in _parents], **ARRAY_KERNEL)
def number_components(parents: Parents, is_member: NDArray[np.bool_]) -> int:
    """Mark the numbers that are in a pair, bool [n], and replace their parents by components.

    Components are numbered in the order of their smallest numbers; their number is returned. Two
    passes in ascending order are enough, because no parent comes after its child.
    """
    for row in range(len(parents)):
        parent = int64(parents[row])
        if parent != row:
            is_member[row], is_member[parent] = True, True
            # The parent is smaller, so this pass has led it to its root already.
            parents[row] = parents[parent]
    count = 0
    for row in range(len(parents)):
        if is_member[row] and int64(parents[row]) == row:
            parents[row] = count
            count += 1
        elif is_member[row]:
            # The parent is a root, and this pass has numbered it already.
            parents[row] = parents[parents[row]]
    return count
