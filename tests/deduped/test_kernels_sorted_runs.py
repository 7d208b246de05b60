"""Kernels of the key index against sorted lists and loops over all rows."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from many_examples import many_examples
from numpy.typing import NDArray

from assets.deduped.kernels.sorted_runs import NO_ROW_ID, find_earlier, sort_by_key

Row = tuple[int, int]
few_keys = st.integers(0, 5) | st.integers(2**64 - 3, 2**64 - 1)
row_ids = st.builds(lambda part, row: part << 32 | row, st.integers(0, 3), st.integers(0, 9))
runs = st.lists(st.tuples(few_keys, row_ids), max_size=25, unique=True)


def columns(rows: list[Row]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    keys, ids = (np.array([row[i] for row in rows], np.uint64) for i in range(2))
    return keys, ids


@given(
    st.lists(st.integers(0, 2**64 - 1) | few_keys, max_size=40),
    st.sampled_from([1, 10, 30]),
    st.integers(0, 60),
)
@example([2**64 - 1, 0], 1, 63)
@example(list(range(16, 0, -1)), 16, 1)  # 256 rows in a bucket, and more
@example([*range(16, 0, -1), 0], 16, 1)
def test_rows_are_sorted_by_key_and_stay_in_order(
    keys: list[int], times: int, prefix_bits: int
) -> None:
    keys = [5 << 61 | key >> prefix_bits for key in keys] if prefix_bits > 2 else keys
    shared = prefix_bits if prefix_bits > 2 and len({key >> 61 for key in keys}) == 1 else 0
    repeated = np.array(keys * times, np.uint64)

    by_key, ids = sort_by_key(repeated, np.arange(len(repeated), dtype=np.uint64), min(shared, 3))

    order = sorted(range(len(repeated)), key=lambda i: int(repeated[i]))
    assert ids.tolist() == order
    assert by_key.tolist() == repeated[order].tolist()


@pytest.mark.slow
@many_examples(300)
@given(st.lists(runs, min_size=1, max_size=2), runs, st.sets(st.integers(0, 3)))
@example([[(1, 0), (1, 1), (1, 2)]], [(1, 1), (1, 3), (2, 0)], {0})
@example([[(1, row) for row in range(9)] + [(2, 0)]], [(2, 1)], {0})
def test_first_and_last_earlier_rows_of_a_key_are_found(
    parts: list[list[Row]], wanted: list[Row], live: set[int]
) -> None:
    rows = sorted({row for part in parts for row in part}, key=lambda row: row[1])
    cut = len(parts[0]) if len(parts) > 1 else len(rows)
    while 0 < cut < len(rows) and rows[cut - 1][1] == rows[cut][1]:
        cut += 1  # row ids ascend from run to run
    wanted = sorted(wanted)
    first = np.full(len(wanted), NO_ROW_ID, np.uint64)
    last = first.copy()

    for run in (rows[:cut], rows[cut:]):
        is_live = np.array([part in live for part in range(4)], np.bool_)
        find_earlier(columns(wanted), columns(sorted(run)), is_live, first, last)

    earlier = [
        [other for key, other in rows if key == of and other < row_id and other >> 32 in live]
        for of, row_id in wanted
    ]
    assert first.tolist() == [min(found, default=int(NO_ROW_ID)) for found in earlier]
    assert last.tolist() == [max(found, default=int(NO_ROW_ID)) for found in earlier]
