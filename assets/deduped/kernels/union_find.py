"""Connected components of sorted pairs: merging, numbering, and union-find over a range of numbers.

Purpose: the inner loops of `component_files`. A pair (a, b) has a < b. In union-find over
the numbers from `low` on, a parent is never larger than its child, and a number below `low` is the
end of every path: two such ends that turn out to be connected are passed on as a pair for the range
below. With low = 0 this is plain union-find.
Price per pair: 5 ns and level of merging, 5 ns to number, 15 to 30 ns to link.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import int64, njit, types
from numpy.typing import NDArray

Pairs = NDArray[np.uint64]
Numbered = NDArray[np.int64]
Parents = NDArray[np.uint32] | NDArray[np.int64]

_words = types.Array(types.uint64, 1, "C", readonly=True)
_refs = types.Array(types.uint64, 2, "C", readonly=True)
_numbered = types.Array(types.int64, 2, "C", readonly=True)
_places = types.Array(types.int64, 1, "C", readonly=True)
_parents = (types.uint32[::1], types.int64[::1])
_options = {"cache": True, "nogil": True}


@njit(types.boolean(_refs, types.int64, _refs, types.int64), **_options)
def _is_before(pairs: Pairs, row: int, others: Pairs, other: int) -> bool:
    if pairs[row, 0] != others[other, 0]:
        return pairs[row, 0] < others[other, 0]
    return pairs[row, 1] < others[other, 1]


@njit(types.int64(_refs, _refs), **_options)
def rows_up_to(pairs: Pairs, last: Pairs) -> int:
    """How many of the sorted pairs, uint64 [m, 2], are not after the pair `last`, uint64 [1, 2]."""
    start, stop = 0, len(pairs)
    while start < stop:
        middle = (start + stop) // 2
        if _is_before(last, 0, pairs, middle):
            stop = middle
        else:
            start = middle + 1
    return start


@njit(types.uint64[:, ::1](_refs, _refs), **_options)
def merge_two(left: Pairs, right: Pairs) -> Pairs:
    """Two sorted sets of pairs, uint64 [m, 2], as one; what is in both comes once."""
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


@njit(types.Tuple((types.int64[:, ::1], types.int64))(_refs, _numbered), **_options)
def number_refs(pairs: Pairs, spans: Numbered) -> tuple[Numbered, int]:
    """Pairs of refs as pairs of numbers, int64 [m, 2], and the first row that is wrong or -1.

    spans: int64 [parts, 2], the first number of a part's documents and the one after the last.
    Wrong is a ref outside its part's span, or a pair whose first ref is not the smaller.
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


@njit([types.int64(kind, types.int64, types.int64) for kind in _parents], **_options)
def _root(parents: Parents, low: int, number: int) -> int:
    """End of a number's path, with path halving (Tarjan and van Leeuwen 1984)."""
    while number >= low:
        parent = int64(parents[number - low])
        if parent < low or parent == number:
            return parent
        parents[number - low] = parents[parent - low]
        number = int64(parents[number - low])
    return number


@njit([types.int64[:, ::1](_numbered, types.int64, kind) for kind in _parents], **_options)
def link_pairs(pairs: Numbered, low: int, parents: Parents) -> Numbered:
    """Join what the pairs, int64 [m, 2], connect; returns the pairs to pass on, int64 [k, 2].

    `parents` [n], at first low to low + n - 1, is changed in place. No number may be low + n or
    more. The smaller end wins, so that a component is known by its smallest number.
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


@njit([types.void(kind, types.int64, types.boolean[::1]) for kind in _parents], **_options)
def settle(parents: Parents, low: int, is_member: NDArray[np.bool_]) -> None:
    """Make parents [n] labels, where those below `low` already are, and mark who is in a pair.

    One pass from the smallest number up will do, since no parent comes after its child.
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
        types.Tuple((types.Array(kind, 2, "C"), types.int64[::1]))(
            types.Array(kind, 2, "C", readonly=True), _places, types.int64
        )
        for kind in (types.uint64, types.int64)
    ],
    **_options,
)
def group_rows(
    rows: Pairs, groups: NDArray[np.int64], num_groups: int
) -> tuple[Pairs, NDArray[np.int64]]:
    """Rows [m, 2] laid together by their group, int64 [m], in order; and where each group ends."""
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


@njit(types.Tuple((types.uint64[::1], types.int64))(_refs, _words, _words, types.int64), **_options)
def find_labels(
    pairs: Pairs, refs: NDArray[np.uint64], labels: NDArray[np.uint64], start: int
) -> tuple[NDArray[np.uint64], int]:
    """Labels of the first refs of sorted pairs, uint64 [m], and where the search may go on.

    refs and labels: uint64 [n], refs ascending. Raises ValueError if a ref has no label.
    """
    found = np.empty(len(pairs), np.uint64)
    for row in range(len(pairs)):
        while start < len(refs) and refs[start] < pairs[row, 0]:
            start += 1
        if start == len(refs) or refs[start] != pairs[row, 0]:
            raise ValueError("a pair is of no component: these are not the pairs it was made of")
        found[row] = labels[start]
    return found, start
