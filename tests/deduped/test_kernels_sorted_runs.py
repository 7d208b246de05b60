"""Sorting of the keys of an index against sorted lists."""

from prelude import example, given, np, st

from assets.deduped.kernels.sorted_runs import sort_by_key

few_keys = st.integers(0, 5) | st.integers(2**64 - 3, 2**64 - 1)


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
