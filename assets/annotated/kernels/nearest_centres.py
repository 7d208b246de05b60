"""The nearest of many centres in two levels: of groups of centres, then of a group's own."""
# mypy: disable-error-code="untyped-decorator, no-any-return, return-value"

import numpy as np
from numba import njit, types, uint64
from numpy.typing import NDArray

from assets.annotated.kernels.word_vectors import DIMENSIONS, integer_root
from assets.text.kernels.compiling import ARRAY_KERNEL, INLINED

Vectors = NDArray[np.int8]
Integers = NDArray[np.int32]

_vectors = types.Array(types.int8, 2, "C", readonly=True)
_integers = types.Array(types.int32, 1, "C", readonly=True)


@njit(**INLINED)
def product(one: Vectors, other: Vectors) -> int:
    """Return the inner product of two vectors, int32: at most 256 * 127 * 127."""
    total = np.int32(0)
    for d in range(DIMENSIONS):
        total = np.int32(total + np.int32(one[uint64(d)]) * np.int32(other[uint64(d)]))
    return total


@njit(**INLINED)
def distance(vector: Vectors, centre: Vectors, inner: int) -> int:
    """Return 1,000 times 1 less the cosine of two vectors, rounded up; 1,000 for zeros."""
    square = np.int64(product(vector, vector)) * np.int64(product(centre, centre))
    return 1000 - 1000 * np.int64(inner) // max(integer_root(square), 1)


@njit(types.UniTuple(types.int32[::1], 2)(_vectors, _vectors, _vectors, _integers), **ARRAY_KERNEL)
def nearest_centres(
    vectors: Vectors, groups: Vectors, centres: Vectors, starts: Integers
) -> tuple[Integers, Integers]:
    """Return the centre of each of n vectors, int32 [n], and the distance to it, int32 [n].

    groups, int8 [g, DIMENSIONS], are means of centres, int8 [c, DIMENSIONS]; group i has those from
    starts[i] up to starts[i + 1], at least one. The greatest product wins; of equal ones the first.
    """
    found, distances = np.zeros(len(vectors), np.int32), np.zeros(len(vectors), np.int32)
    for i in range(len(vectors)):
        vector, group, most = vectors[i], 0, product(vectors[i], groups[0])
        for g in range(1, len(groups)):
            own = product(vector, groups[g])
            if own > most:
                group, most = g, own
        centre = starts[group]
        most = product(vector, centres[centre])
        for c in range(starts[group] + 1, starts[group + 1]):
            own = product(vector, centres[c])
            if own > most:
                centre, most = c, own
        found[i], distances[i] = centre, distance(vector, centres[centre], most)
    return found, distances
