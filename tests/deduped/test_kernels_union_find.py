"""Kernels of connected components against sets and sorted lists."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from assets.deduped.kernels.union_find import (
    find_labels,
    group_rows,
    link_pairs,
    merge_two,
    number_row_ids,
    resolve_labels,
    rows_up_to,
)

Pair = tuple[int, int]
LOW, SIZE = 10, 8  # of the range of numbers that pairs are linked in
SPANS = [(0, 3), (0, 0), (3, 5)]  # three parts, one of them without documents
HUGE = st.integers(0, 3) | st.integers(2**64 - 4, 2**64 - 1)
any_pairs = st.lists(st.tuples(HUGE, HUGE), max_size=20)
row_ids = st.builds(lambda part, row: part << 32 | row, st.integers(0, 3), st.integers(0, 3))
ranged_pairs = st.lists(
    st.tuples(st.integers(0, LOW + SIZE - 1), st.integers(LOW, LOW + SIZE - 1)).filter(
        lambda pair: pair[0] < pair[1]
    ),
    max_size=12,
)


def array(pairs: list[Pair], dtype: type = np.uint64) -> NDArray[Any]:
    return np.array(pairs, dtype).reshape(-1, 2)


def components(pairs: list[Pair]) -> list[set[int]]:
    parts = [{number} for number in range(LOW + SIZE)]
    for a, b in pairs:
        one = next(part for part in parts if a in part)
        other = next(part for part in parts if b in part)
        if one is not other:
            parts.remove(other)
            one |= other
    return parts


@given(any_pairs, any_pairs)
def test_two_sets_of_pairs_become_their_sorted_union(left: list[Pair], right: list[Pair]) -> None:
    merged = merge_two(array(sorted(set(left))), array(sorted(set(right))))

    assert [tuple(pair) for pair in merged.tolist()] == sorted({*left, *right})


@given(any_pairs, st.tuples(HUGE, HUGE))
def test_pairs_up_to_one_are_counted(pairs: list[Pair], last: Pair) -> None:
    assert rows_up_to(array(sorted(pairs)), array([last])) == sum(pair <= last for pair in pairs)


@given(st.lists(st.tuples(row_ids, row_ids), max_size=4))
@example([(0, 1), (2, 2 << 32), (2 << 32, 2 << 32 | 1)])
@example([(0, 3)])
@example([(0, 1 << 32)])
@example([(1, 1)])
def test_row_ids_are_numbered_up_to_the_first_bad_pair(pairs: list[Pair]) -> None:
    numbers = {
        part << 32 | row: start + row
        for part, (start, stop) in enumerate(SPANS)
        for row in range(stop - start)
    }
    good = [a < b and a in numbers and b in numbers for a, b in pairs]

    numbered, bad = number_row_ids(array(pairs), np.array(SPANS, np.int64))

    count = good.index(False) if False in good else len(pairs)
    assert bad == (count if count < len(pairs) else -1)
    assert numbered[:count].tolist() == [[numbers[a], numbers[b]] for a, b in pairs[:count]]


@given(ranged_pairs, st.sampled_from([np.uint32, np.int64]))
@example([(10, 11), (11, 12), (3, 12)], np.uint32)
def test_labels_are_the_smallest_numbers_of_components(pairs: list[Pair], dtype: type) -> None:
    parents: NDArray[Any] = np.arange(LOW, LOW + SIZE, dtype=dtype)
    is_member = np.zeros(SIZE, np.bool_)

    passed = link_pairs(array(pairs, np.int64), LOW, parents)
    resolve_labels(parents, LOW, is_member)

    parts = components(pairs)
    labels = [min(part) for n in range(LOW, LOW + SIZE) for part in parts if n in part]
    outer = components([(a, b) for a, b in passed.tolist()])
    below = {number: min(part) for part in outer for number in part if number < LOW}
    assert [below.get(label, label) for label in parents.tolist()] == labels
    assert all(a < b < LOW for a, b in passed.tolist())
    inner = {n for a, b in pairs for n in (a, b) if n >= LOW}
    assert {LOW + int(i) for i in np.flatnonzero(is_member)} == inner


@given(st.lists(st.integers(0, 4), max_size=30), st.sampled_from([np.uint64, np.int64]))
def test_rows_are_sorted_by_group_and_stay_in_order(groups: list[int], dtype: type) -> None:
    rows = array([(i, i * i) for i in range(len(groups))], dtype)

    grouped, ends = group_rows(rows, np.array(groups, np.int64), 5)

    order = sorted(range(len(groups)), key=lambda i: groups[i])
    assert grouped.tolist() == rows[order].tolist()
    assert ends.tolist() == [sum(group <= last for group in groups) for last in range(5)]


@given(st.sets(HUGE, min_size=1), st.data())
def test_labels_are_those_of_a_dictionary(ids: set[int], data: st.DataObject) -> None:
    ordered = sorted(ids)
    firsts = sorted(data.draw(st.lists(st.sampled_from(ordered), max_size=6)))
    start = data.draw(st.integers(0, ordered.index(firsts[0]) if firsts else 0))
    labels = np.arange(len(ordered), dtype=np.uint64) + np.uint64(100)

    found, position = find_labels(
        array([(first, 0) for first in firsts]), np.array(ordered, np.uint64), labels, start
    )

    assert found.tolist() == [100 + ordered.index(first) for first in firsts]
    assert position == (ordered.index(firsts[-1]) if firsts else start)


@pytest.mark.parametrize("first", [0, 2, 4])
def test_a_row_id_without_a_label_is_refused(first: int) -> None:
    ids = np.array([1, 3], np.uint64)

    with pytest.raises(ValueError, match="a pair is of no component"):
        find_labels(array([(first, 9)]), ids, ids, 0)
