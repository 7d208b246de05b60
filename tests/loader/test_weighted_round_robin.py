"""Turns: exact counts, and every prefix near the shares, whatever the counts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus_loader.weighted_round_robin import LARGEST_ERROR, Turns

FIBONACCI = [1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89]
COUNTS = st.lists(st.integers(0, 300), min_size=1, max_size=12).filter(any)
SKEWED = st.lists(st.sampled_from([1, 2, 3, 7, 50, 1000, 3000]), min_size=2, max_size=8)


def largest_error(counts: list[int]) -> float:
    """The largest distance of a member's turns from its share, over all prefixes."""
    total = sum(counts)
    member, _ = Turns(counts).lookup(np.arange(total))
    had = np.cumsum(np.eye(len(counts))[member], axis=0)
    shares = np.arange(1, total + 1)[:, None] * np.array(counts) / total
    return float(np.abs(had - shares).max())


@settings(max_examples=150)
@given(COUNTS | SKEWED)
def test_every_prefix_is_near_the_shares(counts: list[int]) -> None:
    assert largest_error(counts) < LARGEST_ERROR


@pytest.mark.parametrize(("counts", "error"), [([7], 0), ([100] * 8, 1), (FIBONACCI, 1.2)])
def test_equal_and_worst_counts_are_near_too(counts: list[int], error: float) -> None:
    assert largest_error(counts) <= error


@settings(max_examples=100)
@given(COUNTS | SKEWED, st.data())
def test_turns_are_numbered_and_counted_exactly(counts: list[int], data: st.DataObject) -> None:
    turns, total = Turns(counts), sum(counts)
    member, number = turns.lookup(np.arange(total))

    for each, count in enumerate(counts):
        assert number[member == each].tolist() == list(range(count))
    some = data.draw(st.integers(0, total))
    assert turns.before(some) == np.bincount(member[:some], minlength=len(counts)).tolist()
    assert turns.before(total) == counts


def test_turns_are_found_by_themselves_beyond_int64() -> None:
    counts = [10**12, 3 * 10**11, 7, 0]
    turns = Turns(counts)
    places = np.array([10**12, 0, 5 * 10**11, turns.total - 1])

    member, number = turns.lookup(places)

    for place, each, index in zip(*map(np.ndarray.tolist, (places, member, number)), strict=True):
        assert turns.before(place)[each] == index
        assert turns.before(place + 1)[each] == index + 1
    assert turns.before(turns.total) == counts


def test_members_without_turns_are_passed_over() -> None:
    member, number = Turns([0, 2, 0, 1]).lookup(np.arange(3))
    assert (member.tolist(), number.tolist()) == ([1, 3, 1], [0, 0, 1])
    assert Turns([0, 0]).total == 0
