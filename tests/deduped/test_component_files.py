"""Components of pairs on disk: their numbering, blocks, labels and batches."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from assets.deduped.clusters.component_files import (
    Components,
    batch_of,
    find_components,
    number_documents,
    number_pairs,
    numbered_row_ids,
    rows_up_to,
    split_pairs,
    unique_blocks,
)
from assets.deduped.kernels.union_find import link_pairs
from resources.store.store import StoreError

Pair = tuple[int, int]
ROWS = 8  # documents of a part
PARTS = (np.array([1, 2, 5, 6]), np.full(4, ROWS))
MANY, ONE = 1 << 20, 1  # pairs in a block
LEDGER = (np.array([2, 3, 7]), np.array([3, 0, 2]))  # three parts, one of them empty
ALL_REFS = [2 << 32, 2 << 32 | 1, 2 << 32 | 2, 7 << 32, 7 << 32 | 1]
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


def find(paths: list[Path], scratch: Path, block_rows: int = MANY) -> Components:
    row_ids, labels = find_components(paths, PARTS, scratch, block_rows)
    return Components(row_ids, labels, np.zeros(len(row_ids), np.bool_))


def split(
    paths: list[Path], members: Components, batches: int, block_rows: int = MANY
) -> list[list[Pair]]:
    batch_paths = [paths[0].parent / f"batch-{batch}" for batch in range(batches)]
    split_pairs(paths, PARTS[0], members, batch_paths, block_rows)
    return [read_pairs(path) for path in batch_paths]


def labels_of(members: Components) -> dict[int, int]:
    assert (np.diff(members.row_ids.astype(np.int64)) > 0).all()
    return dict(zip(members.row_ids.tolist(), members.labels.tolist(), strict=True))


def reference(pairs: list[Pair]) -> dict[int, int]:
    labels = {ref: ref for pair in pairs for ref in pair}
    for _ in labels:
        for one, other in pairs:
            labels[one] = labels[other] = min(labels[one], labels[other])
    return labels


def read_pairs(path: Path) -> list[Pair]:
    return [(a, b) for a, b in np.fromfile(path, np.uint64).reshape(-1, 2).tolist()]


def as_pairs(rows: list[Pair]) -> NDArray[np.uint64]:
    return np.array(rows, np.uint64).reshape(-1, 2)


def test_numbers_and_refs_are_each_others_inverse() -> None:
    edges = number_documents(*LEDGER)
    pairs = as_pairs([(ref, ALL_REFS[-1]) for ref in ALL_REFS[:-1]])

    assert number_pairs(pairs, edges).tolist() == [[0, 4], [1, 4], [2, 4], [3, 4]]
    assert numbered_row_ids(np.arange(5), edges).tolist() == ALL_REFS


@pytest.mark.parametrize(
    "pair",
    [
        (2 << 32, 2 << 32 | 3),
        (2 << 32, 3 << 32),
        (1 << 32, 2 << 32),
        (7 << 32, 2 << 32),
        (7 << 32, 7 << 32),
    ],
    ids=["row", "empty part", "no such part", "order", "itself"],
)
def test_pair_of_other_documents_or_out_of_order_is_refused(pair: Pair) -> None:
    with pytest.raises(ValueError, match=r"part . row . and part . row . are no pair of two"):
        number_pairs(as_pairs([(2 << 32, 7 << 32), pair]), number_documents(*LEDGER))


@given(st.lists(st.tuples(HUGE, HUGE), max_size=20), st.tuples(HUGE, HUGE))
def test_rows_up_to_counts_pairs_not_after(pairs: list[Pair], last: Pair) -> None:
    expected = sum(pair <= last for pair in pairs)

    assert rows_up_to(as_pairs(sorted(pairs)), np.array(last, np.uint64)) == expected


def test_parents_of_four_and_of_eight_bytes_link_alike() -> None:
    pairs = np.random.default_rng(1).integers(0, 500, (300, 2))
    four, eight = np.arange(500, dtype=np.uint32), np.arange(500, dtype=np.int64)

    link_pairs(pairs, four)
    link_pairs(pairs, eight)

    assert (four == eight).all() and (four != np.arange(500)).any()


def test_batches_are_of_nearly_equal_size_and_named_by_the_label_alone() -> None:
    labels = np.arange(100_000, dtype=np.uint64) << np.uint64(32)
    batches = batch_of(labels, 7)

    assert np.bincount(batches, minlength=7) == pytest.approx(100_000 / 7, rel=0.03)
    assert (batch_of(labels[::-1], 7)[::-1] == batches).all()
    assert not batch_of(labels, 1).any()


@settings(max_examples=40)
@given(st.lists(pairs_of_file, max_size=4), st.sampled_from([1, 2, 5, MANY]))
def test_components_equal_the_reference_for_any_blocks(
    files: list[list[Pair]], block_rows: int
) -> None:
    expected = reference([pair for pairs in files for pair in pairs])
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        paths = write_files(scratch, files)

        assert labels_of(find(paths, scratch, block_rows)) == expected
        assert labels_of(find(paths[::-1], scratch, block_rows)) == expected

        names = {path.name for path in scratch.iterdir()} - {path.name for path in paths}
        assert names == {"members.refs", "members.labels"}


@settings(max_examples=25)
@given(
    st.lists(pairs_of_file, min_size=1, max_size=4),
    st.integers(1, 5),
    st.sampled_from([1, 4, MANY]),
)
def test_batches_hold_every_pair_once_and_whole_components(
    files: list[list[Pair]], batches: int, block_rows: int
) -> None:
    pairs = {(min(pair), max(pair)) for file in files for pair in file}
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        paths = write_files(scratch, files)
        members = find(paths, scratch)

        for _ in range(2):  # a second time replaces the files
            found = split(paths, members, batches, block_rows)

    assert sorted(pair for batch in found for pair in batch) == sorted(pairs)
    assert all(batch == sorted(batch) for batch in found)
    labels, homes = reference(list(pairs)), dict[int, int]()
    for number, batch in enumerate(found):
        for one, _ in batch:
            assert homes.setdefault(labels[one], number) == number


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
    (pairs.astype(np.uint64) | np.uint64(4 << 32)).tofile(tmp_path / "pairs")
    parts = np.array([4]), np.array([size])

    row_ids, labels = find_components([tmp_path / "pairs"], parts, tmp_path, MANY)

    assert (row_ids == np.arange(size, dtype=np.uint64) + np.uint64(4 << 32)).all()
    assert (labels == np.uint64(4 << 32)).all()


def test_copies_of_a_pair_meet_in_one_block(tmp_path: Path) -> None:
    pairs = [(ref(i), ref(j)) for i in range(30) for j in range(i + 1, 30)]
    paths = write_files(tmp_path, [pairs, pairs[100:], pairs[:7], pairs[::3], []])

    blocks = [block.tolist() for block in unique_blocks(paths, PARTS[0], 40)]

    assert [tuple(pair) for block in blocks for pair in block] == pairs
    assert len(blocks) > 10 and max(map(len, blocks)) <= 40


def test_no_pairs_have_no_components(tmp_path: Path) -> None:
    empty = write_pairs(tmp_path / "empty", [])

    assert labels_of(find([], tmp_path)) == {}
    members = find([empty], tmp_path)
    assert labels_of(members) == {}
    assert split([empty], members, 2) == [[], []]


def test_truncated_file_is_named(tmp_path: Path) -> None:
    path = write_pairs(tmp_path / "cut.pairs", [(ref(0), ref(1))])
    path.write_bytes(path.read_bytes()[:-8])

    with pytest.raises(StoreError, match=r"cut\.pairs is truncated: 8 bytes.*`band_index` again"):
        find([path], tmp_path)


def test_pair_of_a_row_that_no_part_has_says_what_to_do(tmp_path: Path) -> None:
    wrong = int(PARTS[0][-1]) << 32 | 999
    path = write_pairs(tmp_path / "old.pairs", [(ref(0), wrong)])

    with pytest.raises(StoreError, match=r"row 999.*old\.pairs.*`band_index` again"):
        find([path], tmp_path)
    assert not list(tmp_path.glob("*members*")) and not list(tmp_path.glob("components*"))


def test_pairs_of_parts_that_are_gone_are_passed_over(tmp_path: Path) -> None:
    path = write_pairs(tmp_path / "old.pairs", [(ref(0), 99 << 32), (ref(0), ref(1))])

    members = find([path], tmp_path)

    assert labels_of(members) == {ref(0): ref(0), ref(1): ref(0)}
    assert split([path], members, 1) == [[(ref(0), ref(1))]]


def test_pairs_of_other_components_are_refused(tmp_path: Path) -> None:
    made_of = write_pairs(tmp_path / "one", [(ref(0), ref(1))])
    other = write_pairs(tmp_path / "other", [(ref(2), ref(3))])
    members = find([made_of], tmp_path)

    with pytest.raises(ValueError, match="pass the pairs that the components were made of"):
        split([other], members, 2)
