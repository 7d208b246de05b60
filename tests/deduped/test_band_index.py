"""The index of keys: sorted runs, and pairs that do not depend on how the runs came about."""

import resource
from collections.abc import Sequence

from prelude import NDArray, Path, example, given, np, pytest, settings, st

from assets.deduped.index.band_index import (
    Entries,
    candidate_pairs,
    merge_runs,
    overlapping,
    row_ids_of,
    sorted_pairs,
    unpaired_rows,
)
from assets.deduped.index.index_files import KeyFile, live_rows, part_entries, slice_of_prefix
from resources.absorbed_runs import absorbed_from
from resources.exchange import ENTRY_BYTES, prefix_bits_for
from resources.store.published import as_it_is

SPREAD = 0x9E3779B97F4A7C15
parts_of_keys = st.lists(st.lists(st.integers(0, 7), max_size=6), max_size=7)
Pairs = list[tuple[int, int]]


def entries(part: int, keys: Sequence[int]) -> Entries:
    """A part whose row i has the key keys[i], spread over all 64 bits; sorted."""
    spread = np.array([key * SPREAD % 2**64 for key in keys], np.uint64)
    order = np.argsort(spread, kind="stable")
    return spread[order], row_ids_of(part, order.astype(np.uint32))


def as_pairs(found: NDArray[np.uint64]) -> Pairs:
    return [(int(a), int(b)) for a, b in found]


def reference(parts: dict[int, list[int]]) -> Pairs:
    """Each document with the first and the previous one of its key, parts in order."""
    members: dict[int, list[int]] = {}
    found: set[tuple[int, int]] = set()
    for part, keys in sorted(parts.items()):
        for row, key in enumerate(keys):
            ref = part << 32 | row
            if known := members.setdefault(key, []):
                found |= {(known[0], ref), (known[-1], ref)}
            known.append(ref)
    return sorted(found)


def flags(parts: dict[int, list[int]], size: int) -> NDArray[np.bool_]:
    return np.array([number in parts for number in range(size)], np.bool_)


@given(parts_of_keys)
@settings(max_examples=60)
def test_pairs_of_a_build_from_nothing_equal_the_reference(parts: list[list[int]]) -> None:
    run = merge_runs((entries(i, keys) for i, keys in enumerate(parts)), 0)

    found = candidate_pairs(run, [run], np.ones(len(parts), np.bool_))

    assert as_pairs(found) == reference(dict(enumerate(parts)))


@given(parts_of_keys, st.sets(st.integers(0, 6)), st.integers(1, 3))
@example([[1], [1], [1, 1]], {0}, 2)
@settings(max_examples=150)
def test_nights_of_adding_and_removing_give_the_pairs_of_a_build_from_nothing(
    parts: list[list[int]], gone: set[int], width: int
) -> None:
    size = len(parts)
    segments: list[Entries] = []
    pairs = np.empty((0, 2), np.uint64)
    everything = np.ones(size, np.bool_)
    for start in range(0, size, width):
        night = range(start, min(start + width, size))
        new = merge_runs((entries(i, parts[i]) for i in night), 0)
        segments.append(new)
        pairs = sorted_pairs(np.concatenate([pairs, candidate_pairs(new, segments, everything)]))
    left = {i: keys for i, keys in enumerate(parts) if i not in gone}
    is_live = flags(left, size)

    lonely = unpaired_rows(pairs, is_live)
    runs = (entries(i, keys) for i, keys in left.items())
    keys, row_ids = merge_runs(runs, 0)
    wanted = keys[np.isin(row_ids, lonely)], row_ids[np.isin(row_ids, lonely)]
    found = candidate_pairs(wanted, segments, is_live)
    kept = live_rows(pairs, is_live)

    assert as_pairs(sorted_pairs(np.concatenate([kept, found]))) == reference(left)


@given(st.lists(st.integers(0, 2**64 - 1), max_size=80), st.integers(1, 6))
@settings(max_examples=60)
def test_merging_sorts_by_key_and_keeps_the_order_of_equal_ones(keys: list[int], runs: int) -> None:
    keys = [key // 2**60 * 2**60 if key % 2 else key for key in keys]
    all_keys, row_ids = np.array(keys, np.uint64), np.arange(len(keys), dtype=np.uint64)
    pieces = zip(np.array_split(all_keys, runs), np.array_split(row_ids, runs), strict=True)

    merged = merge_runs(pieces, 0)

    expected = sorted(zip(keys, range(len(keys)), strict=True))
    assert list(zip(*(column.tolist() for column in merged), strict=True)) == expected


def test_a_million_equal_keys_among_others_take_linear_time() -> None:
    keys = np.full(1_000_000, 7, np.uint64)
    keys[::3] = np.arange(333_334, dtype=np.uint64)
    run = merge_runs([(keys, np.arange(1_000_000, dtype=np.uint64))], 0)

    found = candidate_pairs(run, [run], np.ones(1, np.bool_))

    assert bool((np.diff(run[0].astype(np.int64)) >= 0).all())
    assert 666_000 < len(found) < 1_400_000


@pytest.mark.parametrize("bits", [0, 1, 3])
def test_prefixes_cut_a_run_without_loss(bits: int) -> None:
    keys = np.sort(np.random.default_rng(1).integers(0, 2**64 - 1, 1000, np.uint64))
    keys[-1] = 2**64 - 1

    pieces = [keys[slice_of_prefix(keys, prefix, bits)] for prefix in range(1 << bits)]

    assert np.concatenate(pieces).tolist() == keys.tolist()
    assert all(
        (piece >> np.uint64(63)).max() == (p >> (bits - 1))
        for p, piece in enumerate(pieces)
        if bits
    )


@pytest.mark.parametrize(
    ("prefix", "bits", "other", "files"),
    [(0, 0, 0, [0]), (2, 2, 0, [0]), (2, 2, 1, [1]), (1, 1, 3, [4, 5, 6, 7])],
)
def test_files_that_hold_a_prefix(prefix: int, bits: int, other: int, files: list[int]) -> None:
    assert list(overlapping(prefix, bits, other)) == files


@pytest.mark.parametrize(
    ("sizes", "new", "staying"),
    [([], 5, 0), ([100], 10, 1), ([100], 50, 0), ([100, 30, 5], 3, 2), ([100, 0], 0, 1)],
)
def test_a_new_segment_absorbs_what_is_not_much_larger(
    sizes: list[int], new: int, staying: int
) -> None:
    assert absorbed_from(sizes, new) == staying


def test_memory_decides_how_many_files_a_segment_has() -> None:
    assert prefix_bits_for(0, 2 << 30) == 0
    assert prefix_bits_for(150_000_000 * ENTRY_BYTES, 2 << 30) == 6
    assert prefix_bits_for(10**13, 2 << 30) == 12


def test_more_parts_than_files_that_may_be_open_are_merged(tmp_path: Path) -> None:
    parts = []
    for number in range(100):
        keys = np.arange(3, dtype=np.uint64) + np.uint64(number)
        path = tmp_path / f"{number}.bin"
        path.write_bytes(keys.tobytes() + np.arange(3, dtype=np.uint32).tobytes())
        parts.append(KeyFile(number, as_it_is(path), len(keys)))
    open_files = len(list(Path("/proc/self/fd").iterdir()))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    resource.setrlimit(resource.RLIMIT_NOFILE, (open_files + 50, hard))
    try:
        keys, _ = merge_runs((part_entries(part, 0, 0) for part in parts), 0)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert keys.tolist() == sorted(number + row for number in range(100) for row in range(3))
