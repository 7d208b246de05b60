"""Components and batches of pairs on disk, in memory and out of core."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from assets.deduped.clusters.component_files import (
    Components,
    Membership,
    find_components,
    split_pairs,
)
from assets.deduped.clusters.pair_files import unique_blocks
from resources.store.store import StoreError

Pair = tuple[int, int]
ROWS = 8  # documents of a part
PARTS = (np.array([1, 2, 5, 6]), np.full(4, ROWS))
MUCH, LITTLE = 1 << 20, 3 * 16  # all documents in one range; three in each, one pair a block


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


def unknown(membership: Membership) -> Components:
    row_ids, labels = membership.open()
    return Components(row_ids, labels, np.zeros(len(row_ids), np.bool_))


def labels_of(membership: Membership) -> dict[int, int]:
    row_ids, labels = membership.open()
    assert (np.diff(row_ids.astype(np.int64)) > 0).all()
    return dict(zip(row_ids.tolist(), labels.tolist(), strict=True))


def reference(pairs: list[Pair]) -> dict[int, int]:
    labels = {ref: ref for pair in pairs for ref in pair}
    for _ in labels:
        for one, other in pairs:
            labels[one] = labels[other] = min(labels[one], labels[other])
    return labels


def read_pairs(path: Path) -> list[Pair]:
    return [(a, b) for a, b in np.fromfile(path, np.uint64).reshape(-1, 2).tolist()]


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(pairs_of_file, max_size=4), st.integers(1, 9))
def test_components_equal_the_reference_in_and_out_of_memory(
    files: list[list[Pair]], documents_in_memory: int
) -> None:
    expected = reference([pair for pairs in files for pair in pairs])
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        paths = write_files(scratch, files)

        for memory_bytes in (MUCH, 16 * documents_in_memory):
            assert labels_of(find_components(paths, PARTS, scratch, memory_bytes)) == expected
        assert labels_of(find_components(paths[::-1], PARTS, scratch, LITTLE)) == expected

        names = {path.name for path in scratch.iterdir()} - {path.name for path in paths}
        assert names == {"members.refs", "members.labels"}


@settings(max_examples=25)
@given(st.lists(pairs_of_file, max_size=4), st.integers(1, 5), st.sampled_from([256, 1024, MUCH]))
def test_batches_hold_every_pair_once_and_whole_components(
    files: list[list[Pair]], batches: int, memory_bytes: int
) -> None:
    pairs = {(min(pair), max(pair)) for file in files for pair in file}
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        paths = write_files(scratch, files)
        membership = find_components(paths, PARTS, scratch, MUCH)

        for _ in range(2):  # a second time replaces the files
            split = split_pairs(
                paths, PARTS[0], unknown(membership), batches, scratch, memory_bytes
            )
        found = [read_pairs(path) for path in split]

    assert len(found) == batches
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
@pytest.mark.parametrize("ranges", [1, 2, 9])
def test_one_giant_component_is_found(shape: str, ranges: int, tmp_path: Path) -> None:
    size = 200_000
    pairs = big_pairs(shape, size)
    (pairs.astype(np.uint64) | np.uint64(4 << 32)).tofile(tmp_path / "pairs")
    parts = np.array([4]), np.array([size])

    membership = find_components([tmp_path / "pairs"], parts, tmp_path, 16 * -(-size // ranges))

    row_ids, labels = membership.open()
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

    for paths in ([], [empty]):
        membership = find_components(paths, PARTS, tmp_path, LITTLE)
        row_ids, labels = membership.open()
        assert len(row_ids) == len(labels) == 0
        split = split_pairs(paths, PARTS[0], unknown(membership), 2, tmp_path, LITTLE)
        assert [path.stat().st_size for path in split] == [0, 0]


def test_truncated_file_is_named(tmp_path: Path) -> None:
    path = write_pairs(tmp_path / "cut.pairs", [(ref(0), ref(1))])
    path.write_bytes(path.read_bytes()[:-8])

    with pytest.raises(StoreError, match=r"cut\.pairs is truncated: 8 bytes.*`band_index` again"):
        find_components([path], PARTS, tmp_path, MUCH)


def test_pair_of_a_row_that_no_part_has_says_what_to_do(tmp_path: Path) -> None:
    wrong = int(PARTS[0][-1]) << 32 | 999
    path = write_pairs(tmp_path / "old.pairs", [(ref(0), wrong)])

    with pytest.raises(StoreError, match=r"row 999.*old\.pairs.*`band_index` again"):
        find_components([path], PARTS, tmp_path, MUCH)
    assert not list(tmp_path.glob("*members*")) and not list(tmp_path.glob("components*"))


def test_pairs_of_parts_that_are_gone_are_passed_over(tmp_path: Path) -> None:
    path = write_pairs(tmp_path / "old.pairs", [(ref(0), 99 << 32), (ref(0), ref(1))])

    membership = find_components([path], PARTS, tmp_path, MUCH)

    assert labels_of(membership) == {ref(0): ref(0), ref(1): ref(0)}
    split = split_pairs([path], PARTS[0], unknown(membership), 1, tmp_path, MUCH)
    assert read_pairs(split[0]) == [(ref(0), ref(1))]


def test_pairs_of_other_components_are_refused(tmp_path: Path) -> None:
    made_of = write_pairs(tmp_path / "one", [(ref(0), ref(1))])
    other = write_pairs(tmp_path / "other", [(ref(2), ref(3))])
    membership = find_components([made_of], PARTS, tmp_path, MUCH)

    with pytest.raises(ValueError, match="pass the pairs that the components were made of"):
        split_pairs([other], PARTS[0], unknown(membership), 2, tmp_path, MUCH)
