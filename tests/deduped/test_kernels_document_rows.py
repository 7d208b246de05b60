"""Row numbers of documents against dictionaries and lists."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from assets.deduped.kernels.document_rows import first_of_equal, group_pairs, rows_of_pairs

REPEATS_SEEN = 32  # candidates of a row among which a repeat is dropped
row_ids = st.builds(
    lambda part, row: part << 32 | row,
    st.integers(0, 3) | st.just(2**32 - 1),
    st.integers(0, 9) | st.sampled_from([2**31, 2**32 - 1]),
)
words = st.integers(0, 2) | st.sampled_from([1 << 32, 2**64 - 1])


@settings(max_examples=300)
@given(st.sets(row_ids, min_size=1), st.data())
@example({7 << 32}, None)
@example({0, 3 << 32}, None)  # no row above 0: others would be read as parts
@example({0, 2**64 - 1}, None)
@example({part << 32 | row for part in range(3) for row in (0, 1, 2, 7)}, None)
def test_row_ids_of_pairs_become_rows(ids: set[int], data: st.DataObject | None) -> None:
    ordered = sorted(ids)
    others = [*ordered, *(i + 1 for i in ordered if i < 2**64 - 1), 0, 5, 2**64 - 1]
    pairs = [(a, b) for a in others for b in others][:400]
    if data is not None:
        pairs = data.draw(st.lists(st.tuples(row_ids, st.sampled_from(ordered)), max_size=20))
    row_of = {row_id: (row * 7 + 3) % 101 for row, row_id in enumerate(ordered)}

    rows = rows_of_pairs(
        np.array(ordered, np.uint64),
        np.array(list(row_of.values()), np.int32),
        np.array(pairs, np.uint64).reshape(-1, 2),
    )

    expected = [sorted((row_of.get(a, -1), row_of.get(b, -1))) for a, b in pairs]
    assert rows.tolist() == expected


@given(st.lists(st.tuples(st.tuples(words, words, words), st.booleans()), max_size=40))
def test_the_first_equal_row_is_that_of_a_dictionary(
    rows: list[tuple[tuple[int, int, int], bool]],
) -> None:
    seen: dict[tuple[int, int, int], int] = {}
    expected = [
        seen.setdefault(row, number) if is_set else number
        for number, (row, is_set) in enumerate(rows)
    ]

    firsts = first_of_equal(
        np.array([row for row, _ in rows], np.uint64).reshape(-1, 3),
        np.array([is_set for _, is_set in rows], np.bool_),
    )

    assert firsts.tolist() == expected


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 3)), max_size=120))
@example([(i % 32, 1) for i in range(64)])
@example([(i % 33, 1) for i in range(66)])
@example([(7, 0), (7, 1), (7, 1), (7, 0)])
def test_first_ends_are_grouped_and_close_repeats_dropped(pairs: list[tuple[int, int]]) -> None:
    groups: list[list[int]] = [[] for _ in range(4)]
    for first, second in pairs:
        if first not in groups[second][-REPEATS_SEEN:]:
            groups[second].append(first)

    offsets, firsts = group_pairs(np.array(pairs, np.int32).reshape(-1, 2), 4)

    assert [firsts[offsets[i] : offsets[i + 1]].tolist() for i in range(4)] == groups
    assert (offsets[0], offsets[4]) == (0, len(firsts))
