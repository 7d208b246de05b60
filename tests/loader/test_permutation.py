"""A permutation named by a key: every index once, well mixed, the same in every process."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus_loader.permutation import derive_key, mix64, permute

LARGE = [4095, 4096, 4097, 5000, 65_536, 100_003]


def is_permutation(size: int, key: int) -> bool:
    permuted = permute(np.arange(size), size=size, key=key)
    return bool(np.array_equal(np.sort(permuted), np.arange(size, dtype=np.uint64)))


def test_every_size_up_to_300_is_a_bijection() -> None:
    assert all(is_permutation(size, key) for size in range(1, 301) for key in (0, 2**64 - 1))


@pytest.mark.parametrize("size", LARGE)
def test_large_sizes_are_bijections(size: int) -> None:
    assert is_permutation(size, key=7)


@settings(max_examples=30)
@given(st.integers(4097, 20_000), st.integers(0, 2**64 - 1))
def test_feistel_sizes_are_bijections_for_every_key(size: int, key: int) -> None:
    assert is_permutation(size, key)


@pytest.mark.parametrize("size", [300, 5000])
def test_another_key_gives_another_order(size: int) -> None:
    first, second = (permute(np.arange(size), size=size, key=key) for key in (1, 2))
    assert (first == second).sum() < 20


@pytest.mark.parametrize("size", [300, 5000])
@settings(max_examples=20)
@given(cuts=st.lists(st.integers(0, 300), max_size=5).map(sorted))
def test_order_does_not_depend_on_how_indices_are_batched(size: int, cuts: list[int]) -> None:
    indices = np.arange(300)[::-1]
    batches = [permute(batch, size=size, key=3) for batch in np.split(indices, cuts)]
    assert np.array_equal(np.concatenate(batches), permute(indices, size=size, key=3))


def test_one_index_and_none() -> None:
    assert permute([0], size=1, key=9).tolist() == [0]
    assert permute([], size=1, key=9).tolist() == permute([], size=0, key=9).tolist() == []


@pytest.mark.parametrize(("index", "size"), [(5, 5), (0, 0), (5000, 5000), (-1, 10)])
def test_index_outside_the_range_is_refused(index: int, size: int) -> None:
    with pytest.raises(ValueError, match=f"outside a permutation of size={size}"):
        permute(np.array([index]), size=size, key=0)


def test_four_billion_indices_cost_no_memory() -> None:
    size = 4_000_000_007
    permuted = permute([0, 1, size - 1], size=size, key=5)
    assert len(set(permuted.tolist())) == 3
    assert int(permuted.max()) < size


@pytest.mark.parametrize("key", [0, 1, 2**63])
def test_batches_mix_the_blocks_of_stored_data_as_chance_would(key: int) -> None:
    blocks, batch = 8, 1000
    order = permute(np.arange(blocks * 50_000), size=blocks * 50_000, key=key) // 50_000

    counts = np.stack([np.bincount(row, minlength=blocks) for row in order.reshape(-1, batch)])

    expected = batch / blocks
    chi_square = float(((counts - expected) ** 2 / expected).sum(axis=1).mean()) / (blocks - 1)
    assert chi_square == pytest.approx(1.0, abs=0.15)


def test_neighbours_land_a_third_of_the_range_apart() -> None:
    permuted = permute(np.arange(100_000), size=100_000, key=11).astype(np.int64)
    assert np.abs(np.diff(permuted)).mean() / 100_000 == pytest.approx(1 / 3, abs=0.01)


def test_key_depends_on_every_part_and_its_type() -> None:
    keys = {derive_key(), derive_key(1), derive_key("1"), derive_key(1, "a"), derive_key("a", 1)}
    assert len(keys) == 5
    assert all(0 <= key < 2**64 for key in keys)


def test_mix64_flips_half_the_bits() -> None:
    values = np.arange(1000, dtype=np.uint64)
    changed = mix64(values) ^ mix64(values ^ np.uint64(1))
    assert np.bitwise_count(changed).mean() == pytest.approx(32, abs=0.5)
