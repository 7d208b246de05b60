"""Counts of samples are the nearest to the budget, in the order of the draws."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assets.mixed import samples as mix_samples
from assets.mixed.samples import nearest_count, nearest_equal_samples, nearest_samples
from corpus_loader.order import SourceOrder, SourceShape

LENGTHS = st.lists(st.integers(1, 50), min_size=1, max_size=40)


def count(lengths: list[int], planned: int) -> tuple[int, int]:
    """Count the samples of a source of one shard, in the order of its epochs."""
    order = SourceOrder(1, None, SourceShape("web", 1, (len(lengths),)))
    return nearest_samples(planned, np.array(lengths, np.uint32), lambda j: order.rows(j)[0])


def slow_count(lengths: list[int], planned: int) -> tuple[int, int]:
    """Count the samples one by one."""
    order = SourceOrder(1, None, SourceShape("web", 1, (len(lengths),)))
    samples, tokens = 0, 0
    while True:
        longer = tokens + lengths[order.rows([samples])[0][0]]
        if abs(longer - planned) >= abs(tokens - planned):
            return samples, tokens
        samples, tokens = samples + 1, longer


@settings(max_examples=40)
@given(LENGTHS, st.integers(0, 2000), st.sampled_from([3, 1 << 20]))
def test_samples_are_counted_as_if_one_by_one(lengths: list[int], planned: int, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mix_samples, "BLOCK", block)
        found = count(lengths, planned)
    assert found == slow_count(lengths, planned)
    assert abs(found[1] - planned) <= max(lengths) / 2


@settings(max_examples=40)
@given(st.integers(1, 50), st.integers(1, 9), st.integers(0, 2000))
def test_samples_of_one_length_are_a_division(length: int, rows: int, planned: int) -> None:
    assert nearest_equal_samples(planned, length) == count([length] * rows, planned)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [(0, 0), (1, 0), (2, 0), (3, 1), (4, 1), (6, 1), (7, 2), (8, 2), (99, 2)],
)
def test_fewer_are_taken_on_a_tie(wanted: int, expected: int) -> None:
    assert nearest_count(np.array([4, 8]), wanted) == expected


def test_lengths_of_more_than_32_bits_together_do_not_wrap() -> None:
    assert count([3_000_000_000, 3_000_000_000], 9_000_000_000) == (3, 9_000_000_000)


def test_a_thousand_epochs_are_counted_without_going_through_them() -> None:
    assert count([2, 3], 5000) == (2000, 5000)
