"""Components of pairs on disk: their numbering, blocks, labels and batches."""

import tempfile

from prelude import NDArray, Path, given, np, pytest, settings, st

from assets.deduped.clusters.component_files import (
    Components,
    find_components,
    live_pairs,
    new_array,
    number_documents,
    numbered_row_ids,
    pairs_between,
    range_borders,
    rows_up_to,
    undecided_pairs,
    unique_blocks,
)
from assets.deduped.kernels.union_find import link_pairs, number_components
from resources.store.published import as_it_is
from resources.store.store import StoreError

Pair = tuple[int, int]
ROWS = 8  # documents of a part
PARTS = (np.array([1, 2, 5, 6]), np.full(4, ROWS))
MANY, ONE = 1 << 20, 1  # pairs in a block
LEDGER = (np.array([2, 3, 7]), np.array([3, 0, 2]))  # three parts, one of them empty
ALL_REFS = [2 << 32, 2 << 32 | 1, 2 << 32 | 2, 7 << 32, 7 << 32 | 1]
MEMORY = st.sampled_from([1, 1000, 5000, 1 << 30])
HUGE = st.integers(0, 3) | st.integers(2**64 - 4, 2**64 - 1)


def ref(number: int) -> int:
    return int(PARTS[0][number // ROWS]) << 32 | number % ROWS


documents = st.integers(0, 4 * ROWS - 1).map(ref)
pairs_of_file = st.lists(
    st.tuples(documents, documents).filter(lambda pair: pair[0] != pair[1]), max_size=25
)


def write_pairs(path: Path, pairs: list[Pair]) -> Path:
    rows = sorted({(min(pair), max(pair)) for pair in pairs})
    np.array(rows, np.uint64).tofile(path)
    return path


def write_files(folder: Path, files: list[list[Pair]]) -> list[Path]:
    return [write_pairs(folder / f"{i}.pairs", pairs) for i, pairs in enumerate(files)]


def merge(
    paths: list[Path], memory_bytes: int = 1 << 40, block_rows: int = MANY
) -> list[NDArray[np.uint64]]:
    """The pairs of each range."""
    files = [as_it_is(path) for path in paths if path.stat().st_size]
    merged = []
    for first, stop in range_borders(files, memory_bytes):
        runs = [pairs_between(file, first, stop) for file in files]
        blocks = unique_blocks(runs, block_rows)
        merged.append(np.concatenate([as_pairs([]), *blocks]))
    return merged


def find(ranges: list[NDArray[np.uint64]], scratch: Path) -> Components:
    found = find_components(ranges, PARTS, scratch)
    assert (found.components[found.places] == found.labels).all()
    assert (np.diff(found.components.astype(np.int64)) > 0).all()
    return Components(found.row_ids, found.labels, np.zeros(len(found.row_ids), np.bool_))


def split(ranges: list[NDArray[np.uint64]], members: Components) -> dict[int, list[Pair]]:
    """The pairs of each hash."""
    found: dict[int, list[Pair]] = {}
    for pairs in ranges:
        table = undecided_pairs(pairs, members)
        assert table["hash"].is_sorted()
        for hashed, *pair in table.iter_rows():
            found.setdefault(hashed, []).append((pair[0], pair[1]))
    return found


def labels_of(members: Components) -> dict[int, int]:
    assert (np.diff(members.row_ids.astype(np.int64)) > 0).all()
    return dict(zip(members.row_ids.tolist(), members.labels.tolist(), strict=True))


def reference(pairs: list[Pair]) -> dict[int, int]:
    labels = {ref: ref for pair in pairs for ref in pair}
    for _ in labels:
        for one, other in pairs:
            labels[one] = labels[other] = min(labels[one], labels[other])
    return labels


def as_pairs(rows: list[Pair]) -> NDArray[np.uint64]:
    return np.array(rows, np.uint64).reshape(-1, 2)


def test_numbers_and_refs_are_each_others_inverse() -> None:
    edges = number_documents(*LEDGER)
    parents = np.arange(5)

    pairs = as_pairs([(ref, ALL_REFS[-1]) for ref in ALL_REFS[1:-1]])

    assert link_pairs(pairs, edges, parents) == len(pairs)
    assert numbered_row_ids(np.arange(5), edges).tolist() == ALL_REFS
    assert (parents == 0).tolist() == [True] + [False] * 4
    assert number_components(parents, np.zeros(5, np.bool_)) == 1


@pytest.mark.parametrize(
    "pair",
    [
        (2 << 32, 2 << 32 | 3),
        (2 << 32 | 3, 7 << 32),
        (7 << 32, 2 << 32),
        (7 << 32, 7 << 32),
    ],
    ids=["row", "first row", "order", "itself"],
)
def test_pair_of_other_documents_or_out_of_order_is_refused(pair: Pair, tmp_path: Path) -> None:
    with pytest.raises(
        StoreError, match=r"part . row . and part . row . are no pair.*index` again"
    ):
        find_components([as_pairs([(2 << 32, 7 << 32), pair])], LEDGER, tmp_path)


@given(st.lists(st.tuples(HUGE, HUGE), max_size=20), st.tuples(HUGE, HUGE))
def test_rows_up_to_counts_pairs_not_after(pairs: list[Pair], last: Pair) -> None:
    expected = sum(pair <= last for pair in pairs)

    assert rows_up_to(as_pairs(sorted(pairs)), np.array(last, np.uint64)) == expected


def test_parents_of_four_and_of_eight_bytes_link_alike() -> None:
    ends = np.random.default_rng(1).integers(0, 500, (300, 2)).astype(np.uint64)
    ends = np.unique(np.sort(ends), axis=0)
    ends, edges = ends[ends[:, 0] < ends[:, 1]], np.array([0, 500])
    four, eight = np.arange(500, dtype=np.uint32), np.arange(500, dtype=np.int64)

    for parents in (four, eight):
        link_pairs(ends, edges, parents)
    assert (four == eight).all() and (four != np.arange(500)).any()

    is_member = np.zeros((2, 500), np.bool_)
    assert number_components(four, is_member[0]) == number_components(eight, is_member[1])
    assert (four == eight).all() and (is_member[0] == is_member[1]).all()


@settings(max_examples=40)
@given(st.lists(pairs_of_file, max_size=4), MEMORY, st.sampled_from([1, 2, 5, MANY]))
def test_components_equal_the_reference_for_any_ranges_and_blocks(
    files: list[list[Pair]], memory_bytes: int, block_rows: int
) -> None:
    pairs = {(min(pair), max(pair)) for file in files for pair in file}
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        paths = write_files(scratch, files)

        ranges = merge(paths, memory_bytes, block_rows)
        assert [tuple(pair) for each in ranges for pair in each.tolist()] == sorted(pairs)
        assert labels_of(find(ranges, scratch)) == reference([*pairs])
        assert labels_of(find(ranges[::-1], scratch)) == reference([*pairs])


@settings(max_examples=25)
@given(st.lists(pairs_of_file, min_size=1, max_size=4), MEMORY)
def test_each_pair_is_under_the_hash_of_its_component(
    files: list[list[Pair]], memory_bytes: int
) -> None:
    pairs = {(min(pair), max(pair)) for file in files for pair in file}
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        ranges = merge(write_files(scratch, files), memory_bytes)
        found = split(ranges, find(ranges, scratch))

    assert sorted(pair for each in found.values() for pair in each) == sorted(pairs)
    labels = reference(list(pairs))
    homes = {hashed: {labels[one] for one, _ in each} for hashed, each in found.items()}
    assert all(len(home) == 1 for home in homes.values())
    assert len(homes) == len(set(labels.values()))


def test_ranges_hold_nearly_as_many_pairs(tmp_path: Path) -> None:
    firsts = np.sort(np.random.default_rng(2).integers(0, 1000, 2000) ** 2)
    np.column_stack([firsts, firsts + 1]).astype(np.uint64).tofile(tmp_path / "a")
    files = [as_it_is(tmp_path / "a")]

    borders = range_borders(files, 3200 * 16)

    counts = [stop - start for _, start, stop in (pairs_between(files[0], *b) for b in borders)]
    assert len(counts) == 10 and sum(counts) == 2000
    assert max(counts) < 210


def big_pairs(shape: str, size: int) -> NDArray[np.int64]:
    steps, order = np.arange(size), np.random.default_rng(3).permutation(size)
    ends = {
        "star": (np.zeros(size - 1, np.int64), steps[1:]),
        "star around the last": (steps[:-1], np.full(size - 1, size - 1)),
        "chain": (steps[:-1], steps[1:]),
        "path in any order": (order[:-1], order[1:]),
    }[shape]
    pairs = np.sort(np.column_stack(ends), axis=1)
    return np.unique(pairs, axis=0)


@pytest.mark.parametrize("shape", ["star", "star around the last", "chain", "path in any order"])
def test_one_giant_component_is_found(shape: str, tmp_path: Path) -> None:
    size = 200_000
    pairs = big_pairs(shape, size)
    of_part = pairs.astype(np.uint64) | np.uint64(4 << 32)

    found = find_components([of_part], (np.array([4]), np.array([size])), tmp_path)

    assert (found.row_ids == np.arange(size, dtype=np.uint64) + np.uint64(4 << 32)).all()
    assert (found.labels == np.uint64(4 << 32)).all() and len(found.components) == 1


def test_copies_of_a_pair_meet_in_one_block(tmp_path: Path) -> None:
    pairs = [(ref(i), ref(j)) for i in range(30) for j in range(i + 1, 30)]
    paths = write_files(tmp_path, [pairs, pairs[100:], pairs[:7], pairs[::3], []])
    runs = [(path, 0, path.stat().st_size // 16) for path in paths]

    blocks = [block.tolist() for block in unique_blocks(runs, 40)]

    assert [tuple(pair) for block in blocks for pair in block] == pairs
    assert len(blocks) > 10 and max(map(len, blocks)) <= 40


def test_an_array_takes_its_room_before_it_is_mapped(tmp_path: Path) -> None:
    assert not new_array(tmp_path / "parents", np.int64, 1 << 16).any()
    assert (tmp_path / "parents").stat().st_blocks * 512 >= 8 << 16


def test_no_pairs_have_no_components(tmp_path: Path) -> None:
    [nothing] = merge([])
    members = find([nothing], tmp_path)

    assert labels_of(members) == {}
    assert split([nothing], members) == {}


def test_pairs_of_parts_that_are_gone_are_passed_over(tmp_path: Path) -> None:
    gone = [(ref(0), 99 << 32), (ref(0), 3 << 32), (4 << 32, ref(ROWS * 2)), (0, ref(0))]
    path = write_pairs(tmp_path / "old.pairs", [*gone, (ref(0), ref(1))])

    [merged] = merge([path])

    assert labels_of(find([merged], tmp_path)) == {ref(0): ref(0), ref(1): ref(0)}
    assert live_pairs(merged, PARTS[0]).tolist() == [[ref(0), ref(1)]]


def test_pairs_of_other_components_are_refused(tmp_path: Path) -> None:
    members = find([as_pairs([(ref(0), ref(1))])], tmp_path)

    with pytest.raises(ValueError, match="pass the pairs that the components were made of"):
        split([as_pairs([(ref(2), ref(3))])], members)
