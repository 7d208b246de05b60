"""Candidates and equal hashes of documents against lists."""

from prelude import example, given, np, st

from assets.deduped.kernels.document_rows import first_equal, group_pairs

REPEATS_SEEN = 32  # candidates of a row among which a repeat is dropped


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


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2) | st.just(2**63)), max_size=40))
@example([(2**40 * i, 0) for i in range(9)] * 2)
def test_equal_columns_have_the_number_of_the_first(columns: list[tuple[int, int]]) -> None:
    hashes = np.ascontiguousarray(np.array(columns, np.uint64).reshape(-1, 2).T)

    assert first_equal(hashes).tolist() == [columns.index(column) for column in columns]
    assert first_equal(hashes[:1].copy()).tolist() == [
        [first for first, _ in columns].index(first) for first, _ in columns
    ]
