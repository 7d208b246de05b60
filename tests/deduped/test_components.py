"""Components of pairs: numbering, merging, linking and batches."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from assets.deduped.clusters.components import (
    batch_of,
    merge_pairs,
    number_documents,
    number_pairs,
    numbered_row_ids,
)
from assets.deduped.kernels.union_find import find_labels, group_rows, link_pairs, rows_up_to

LEDGER = (np.array([2, 3, 7]), np.array([3, 0, 2]))  # three parts, one of them empty
ALL_REFS = [2 << 32, 2 << 32 | 1, 2 << 32 | 2, 7 << 32, 7 << 32 | 1]
few_pairs = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30)


def row_ids(rows: list[tuple[int, int]]) -> NDArray[np.uint64]:
    return np.array(rows, np.uint64).reshape(-1, 2)


def test_numbers_and_refs_are_each_others_inverse() -> None:
    numbering = number_documents(*LEDGER)
    pairs = row_ids([(ref, ALL_REFS[-1]) for ref in ALL_REFS[:-1]])

    assert number_pairs(pairs, numbering).tolist() == [[0, 4], [1, 4], [2, 4], [3, 4]]
    assert numbered_row_ids(np.arange(5), numbering).tolist() == ALL_REFS


@pytest.mark.parametrize(
    "pair",
    [(2 << 32, 2 << 32 | 3), (2 << 32, 3 << 32), (1 << 32, 2 << 32), (2 << 32, 8 << 32)],
    ids=["row", "empty part", "no such part", "behind the last part"],
)
def test_pair_of_other_documents_is_refused(pair: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="are no pair of two documents"):
        number_pairs(row_ids([(2 << 32, 7 << 32), pair]), number_documents(*LEDGER))


@pytest.mark.parametrize("pair", [(7 << 32, 2 << 32), (7 << 32, 7 << 32)])
def test_pair_out_of_order_is_refused(pair: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="part 7 row 0 and part"):
        number_pairs(row_ids([pair]), number_documents(*LEDGER))


def test_parts_must_ascend() -> None:
    with pytest.raises(ValueError, match="do not ascend"):
        number_documents(np.array([3, 2]), np.array([1, 1]))


def test_no_parts_number_nothing() -> None:
    numbering = number_documents(np.empty(0, np.int64), np.empty(0, np.int64))

    assert numbering.num_documents == 0
    assert number_pairs(row_ids([]), numbering).shape == (0, 2)


@given(st.lists(few_pairs, max_size=6))
def test_merged_runs_are_their_union_sorted(runs: list[list[tuple[int, int]]]) -> None:
    merged = merge_pairs([row_ids(sorted(set(run))) for run in runs])

    assert [tuple(pair) for pair in merged.tolist()] == sorted(
        {pair for run in runs for pair in run}
    )


@given(few_pairs, st.tuples(st.integers(0, 9), st.integers(0, 9)))
def test_rows_up_to_counts_pairs_not_after(
    pairs: list[tuple[int, int]], last: tuple[int, int]
) -> None:
    assert rows_up_to(row_ids(sorted(pairs)), row_ids([last])) == sum(
        pair <= last for pair in pairs
    )


def test_ends_below_the_range_are_passed_on() -> None:
    parents = np.arange(10, 15, dtype=np.uint32)

    passed = link_pairs(np.array([[3, 12], [12, 14], [7, 14], [1, 11], [7, 12]]), 10, parents)

    assert passed.tolist() == [[3, 7], [3, 7]]
    assert parents.tolist() == [10, 1, 3, 13, 3]


def test_parents_of_four_and_of_eight_bytes_link_alike() -> None:
    pairs = np.random.default_rng(1).integers(0, 500, (300, 2))
    four, eight = np.arange(500, dtype=np.uint32), np.arange(500, dtype=np.int64)

    link_pairs(pairs, 0, four)
    link_pairs(pairs, 0, eight)

    assert (four == eight).all() and (four != np.arange(500)).any()


def test_rows_of_a_group_stay_in_order() -> None:
    grouped, ends = group_rows(row_ids([(0, 1), (2, 3), (4, 5), (6, 7)]), np.array([2, 0, 2, 0]), 3)

    assert grouped.tolist() == [[2, 3], [6, 7], [0, 1], [4, 5]]
    assert ends.tolist() == [2, 2, 4]


def test_search_for_labels_goes_on_where_it_stopped() -> None:
    members, labels = np.array([1, 5, 9], np.uint64), np.array([1, 1, 9], np.uint64)

    found, position = find_labels(row_ids([(1, 9), (5, 9), (5, 10)]), members, labels, 0)

    assert (found.tolist(), position) == ([1, 1, 1], 1)
    with pytest.raises(ValueError, match="a pair is of no component"):
        find_labels(row_ids([(6, 9)]), members, labels, position)


def test_batches_are_of_nearly_equal_size_and_named_by_the_label_alone() -> None:
    labels = np.arange(100_000, dtype=np.uint64) << np.uint64(32)
    batches = batch_of(labels, 7)

    assert np.bincount(batches, minlength=7) == pytest.approx(100_000 / 7, rel=0.03)
    assert (batch_of(labels[::-1], 7)[::-1] == batches).all()
    assert not batch_of(labels, 1).any()
