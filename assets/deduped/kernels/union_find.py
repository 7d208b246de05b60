"""Connected components of sorted pairs: merging, numbering, and union-find over a range of numbers.

Purpose: the inner loops of `component_files`. A pair (a, b) has a < b. In union-find over the
numbers from `low` on, a parent is never larger than its child, and every path ends at its root or
at a number below `low`. Two connected ends below `low` are passed on as a pair for the range below.
With low = 0 this is plain union-find.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import int64, njit, types
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_KERNEL

Pairs = NDArray[np.uint64]
Numbered = NDArray[np.int64]
Parents = NDArray[np.uint32] | NDArray[np.int64]

_words = types.Array(types.uint64, 1, "C", readonly=True)
_pairs = types.Array(types.uint64, 2, "C", readonly=True)
_numbered = types.Array(types.int64, 2, "C", readonly=True)
_places = types.Array(types.int64, 1, "C", readonly=True)
_parents = (types.uint32[::1], types.int64[::1])


@njit(types.boolean(_pairs, types.int64, _pairs, types.int64), **ARRAY_KERNEL)
def _is_before(pairs: Pairs, row: int, others: Pairs, other: int) -> bool:
    """Check that the pair at `row` comes before the pair at `other`."""
    if pairs[row, 0] != others[other, 0]:
        return pairs[row, 0] < others[other, 0]
    return pairs[row, 1] < others[other, 1]


@njit(types.int64(_pairs, _pairs), **ARRAY_KERNEL)
def rows_up_to(pairs: Pairs, last: Pairs) -> int:
    """Count the sorted pairs, uint64 [m, 2], up to and including the pair `last`, uint64 [1, 2]."""
    start, stop = 0, len(pairs)
    while start < stop:
        middle = (start + stop) // 2
        if _is_before(last, 0, pairs, middle):
            stop = middle
        else:
            start = middle + 1
    return start


@njit(types.uint64[:, ::1](_pairs, _pairs), **ARRAY_KERNEL)
def merge_two(left: Pairs, right: Pairs) -> Pairs:
    """Merge two sorted sets of pairs, uint64 [m, 2] each, into one; a pair in both comes once."""
    merged = np.empty((len(left) + len(right), 2), np.uint64)
    count, i, j = 0, 0, 0
    while i < len(left) and j < len(right):
        if _is_before(right, j, left, i):
            merged[count] = right[j]
            j += 1
        else:
            j += not _is_before(left, i, right, j)
            merged[count] = left[i]
            i += 1
        count += 1
    for rest, start in ((left, i), (right, j)):
        for row in range(start, len(rest)):
            merged[count] = rest[row]
            count += 1
    return merged[:count]


@njit(types.Tuple((types.int64[:, ::1], types.int64))(_pairs, _numbered), **ARRAY_KERNEL)
def number_row_ids(pairs: Pairs, spans: Numbered) -> tuple[Numbered, int]:
    """Number the documents of pairs of row ids; return int64 [m, 2] and the first bad row, or -1.

    `spans`, int64 [parts, 2], are the first number of a part's documents and the one after the
    last. A row is bad if a row id is outside its part's span, or if the first is not the smaller.
    """
    numbers = np.empty((len(pairs), 2), np.int64)
    for row in range(len(pairs)):
        if pairs[row, 0] >= pairs[row, 1]:
            return numbers, row
        for side in range(2):
            part = int64(pairs[row, side] >> np.uint64(32))
            if part >= len(spans):
                return numbers, row
            number = spans[part, 0] + int64(pairs[row, side] & np.uint64(0xFFFFFFFF))
            if number >= spans[part, 1]:
                return numbers, row
            numbers[row, side] = number
    return numbers, -1


@njit([types.int64(dtype, types.int64, types.int64) for dtype in _parents], **ARRAY_KERNEL)
def _root(parents: Parents, low: int, number: int) -> int:
    """Return the end of a number's path, with path halving.

    Source: Tarjan and van Leeuwen 1984, "Worst-case analysis of set union algorithms".
    """
    while number >= low:
        parent = int64(parents[number - low])
        if parent < low or parent == number:
            return parent
        parents[number - low] = parents[parent - low]
        number = int64(parents[number - low])
    return number


@njit([types.int64[:, ::1](_numbered, types.int64, dtype) for dtype in _parents], **ARRAY_KERNEL)
def link_pairs(pairs: Numbered, low: int, parents: Parents) -> Numbered:
    """Join the ends of the pairs, int64 [m, 2]; return the pairs to pass on, int64 [k, 2].

    `parents` [n], at first low to low + n - 1, is updated in place. All numbers must be below
    low + n. The smaller end becomes the parent, so the smallest number identifies a component.
    """
    passed = np.empty((len(pairs), 2), np.int64)
    count = 0
    for row in range(len(pairs)):
        one, other = _root(parents, low, pairs[row, 0]), _root(parents, low, pairs[row, 1])
        smaller, larger = min(one, other), max(one, other)
        if larger >= low:
            parents[larger - low] = smaller
        elif smaller < larger:
            passed[count, 0], passed[count, 1] = smaller, larger
            count += 1
    return passed[:count]


@njit([types.void(dtype, types.int64, types.boolean[::1]) for dtype in _parents], **ARRAY_KERNEL)
def resolve_labels(parents: Parents, low: int, is_member: NDArray[np.bool_]) -> None:
    """Replace parents [n] by labels, and mark the numbers that are in a pair, bool [n], in place.

    Parents below `low` must be labels already. One pass in ascending order is enough, because no
    parent comes after its child.
    """
    for row in range(len(parents)):
        parent = int64(parents[row])
        if parent == low + row:
            continue
        is_member[row] = True
        if parent >= low:
            is_member[parent - low] = True
            parents[row] = parents[parent - low]


@njit(
    [
        types.Tuple((types.Array(dtype, 2, "C"), types.int64[::1]))(
            types.Array(dtype, 2, "C", readonly=True), _places, types.int64
        )
        for dtype in (types.uint64, types.int64)
    ],
    **ARRAY_KERNEL,
)
def group_rows(
    rows: Pairs, groups: NDArray[np.int64], num_groups: int
) -> tuple[Pairs, NDArray[np.int64]]:
    """Sort rows [m, 2] by their group, int64 [m], stable; return them and each group's end.

    Groups are 0 to num_groups - 1; the ends are int64 [num_groups].
    """
    ends = np.zeros(num_groups + 1, np.int64)
    for group in groups:
        ends[group + 1] += 1
    for group in range(num_groups):
        ends[group + 1] += ends[group]
    grouped = np.empty_like(rows)
    for row in range(len(rows)):
        grouped[ends[groups[row]]] = rows[row]
        ends[groups[row]] += 1
    return grouped, ends[:num_groups]


@njit(
    types.Tuple((types.uint64[::1], types.int64))(_pairs, _words, _words, types.int64),
    **ARRAY_KERNEL,
)
def find_labels(
    pairs: Pairs, row_ids: NDArray[np.uint64], labels: NDArray[np.uint64], start: int
) -> tuple[NDArray[np.uint64], int]:
    """Look up the labels of the first row ids of sorted pairs, from position `start` on.

    `row_ids`, ascending, and `labels` are uint64 [n]. Returns the labels, uint64 [m], and the
    position to continue from. Raises ValueError if a row id has no label.
    """
    pair_labels = np.empty(len(pairs), np.uint64)
    for row in range(len(pairs)):
        while start < len(row_ids) and row_ids[start] < pairs[row, 0]:
            start += 1
        if start == len(row_ids) or row_ids[start] != pairs[row, 0]:
            raise ValueError(
                "a pair is of no component: pass the pairs that the components were made of"
            )
        pair_labels[row] = labels[start]
    return pair_labels, start
