"""A phase follows its weights at every point, and repeats a source only in whole epochs."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from assets.transforms.mixed import (
    MixError,
    PhaseConfig,
    draw_samples,
    interleave,
    largest_remainder,
    nearest_count,
    normalized_weights,
    plan_tokens,
)

LENGTHS = st.lists(st.integers(1, 50), min_size=1, max_size=40)


def phase(**config: object) -> PhaseConfig:
    return PhaseConfig.model_validate({"name": "general"} | config)


def samples(*lengths: int) -> pl.DataFrame:
    schema = {"index": pl.UInt32, "epoch": pl.UInt16, "num_tokens": pl.UInt32}
    rows = [(index, 0, length) for index, length in enumerate(lengths)]
    return pl.DataFrame(rows, schema=schema, orient="row")


def draw(lengths: list[int], planned: int, seed: int = 0) -> pl.DataFrame:
    return draw_samples(np.array(lengths, np.uint32), planned, seed, "mix", "general", "web")


def test_weights_are_normalised_and_zeros_left_out() -> None:
    assert normalized_weights(phase(weights={"a": 3, "b": 0, "c": 1})) == {"a": 0.75, "c": 0.25}


def test_budgets_are_planned_as_they_are() -> None:
    config = phase(budgets={"a": 30, "b": 0, "c": 10})
    assert plan_tokens(config, {"a": 15, "b": 0, "c": 100}) == {"a": 30, "c": 10}
    assert normalized_weights(config) == {"a": 0.75, "c": 0.25}


def test_default_total_ends_with_the_first_source_that_runs_out() -> None:
    config = phase(weights={"a": 0.5, "b": 0.5})
    assert plan_tokens(config, {"a": 100, "b": 7}) == {"a": 7, "b": 7}


@settings(deadline=None, max_examples=50)
@given(st.dictionaries(st.sampled_from("abcd"), st.floats(0.01, 10), min_size=1), st.data())
def test_default_total_needs_no_second_epoch(
    weights: dict[str, float], data: st.DataObject
) -> None:
    available = {source: data.draw(st.integers(1, 10**12)) for source in weights}
    planned = plan_tokens(phase(weights=weights), available)
    assert all(planned[source] <= available[source] for source in weights)
    assert max(planned[source] / available[source] for source in weights) > 0


@settings(deadline=None, max_examples=50)
@given(
    st.dictionaries(st.sampled_from("abcdef"), st.floats(0.001, 1000), min_size=1),
    st.integers(1, 10**13),
)
def test_planned_tokens_sum_to_the_total(weights: dict[str, float], total: int) -> None:
    config = phase(weights=weights, tokens=total)
    planned = plan_tokens(config, dict.fromkeys(weights, 10**13))
    assert sum(planned.values()) == total
    shares = normalized_weights(config)
    assert all(abs(planned[name] - total * share) <= 1 for name, share in shares.items())


def test_remainders_go_to_the_largest_and_ties_to_the_first_name() -> None:
    assert largest_remainder({"b": 0.5, "a": 0.5, "c": 1.9}, 3) == {"b": 0, "a": 1, "c": 2}


def test_source_without_tokens_is_named() -> None:
    with pytest.raises(MixError, match=r"'general'.*\['b'\].*corpus summary"):
        plan_tokens(phase(weights={"a": 1, "b": 1}), {"a": 10, "b": 0})


def test_source_of_weight_zero_may_be_empty() -> None:
    assert plan_tokens(phase(weights={"a": 1, "b": 0}), {"a": 10, "b": 0}) == {"a": 10}


@pytest.mark.parametrize(
    "config", [{"weights": {"a": 1}, "tokens": 5001}, {"budgets": {"a": 5001}}]
)
def test_more_than_a_thousand_epochs_are_refused(config: dict[str, object]) -> None:
    with pytest.raises(MixError, match=r"5,001 tokens of 'a', which has 5: over 1000 epochs"):
        plan_tokens(phase(**config), {"a": 5})


def test_a_thousand_epochs_are_drawn() -> None:
    assert plan_tokens(phase(budgets={"a": 5000}), {"a": 5}) == {"a": 5000}
    assert draw([2, 3], 5000)["epoch"].to_list() == [epoch for epoch in range(1000) for _ in "ab"]


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({}, "give either `weights` or `budgets`"),
        ({"weights": {"a": 1}, "budgets": {"a": 1}}, "give either `weights` or `budgets`"),
        ({"budgets": {"a": 1}, "tokens": 5}, "`tokens` goes with `weights`"),
        ({"weights": {"a": 2, "b": -1}}, "weight of 'b' is -1.0; it must be 0 or more"),
        ({"weights": {"a": math.nan}}, "weight of 'a' is nan"),
        ({"weights": {"a": math.inf}}, "weight of 'a' is inf"),
        ({"weights": {"a": 0}}, "the weights sum to 0"),
        ({"weights": {}}, "the weights sum to 0"),
        ({"budgets": {"a": 1.5}}, "valid integer"),
        ({"weights": {"a": 1}, "tokens": 0}, "greater than or equal to 1"),
        ({"weights": {"a": 1}, "wieghts": {}}, "Extra inputs"),
    ],
)
def test_bad_phases_are_refused(config: dict[str, object], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        phase(**config)


@settings(deadline=None, max_examples=50)
@given(LENGTHS, st.integers(0, 2000))
def test_epochs_are_whole_permutations_one_after_the_other(
    lengths: list[int], planned: int
) -> None:
    drawn = draw(lengths, planned)

    assert drawn["epoch"].is_sorted()
    epochs = [
        epoch["index"].to_list() for epoch in drawn.partition_by("epoch", maintain_order=True)
    ]
    assert all(sorted(epoch) == list(range(len(lengths))) for epoch in epochs[:-1])
    assert all(len(set(epoch)) == len(epoch) for epoch in epochs)
    assert drawn["num_tokens"].to_list() == [lengths[index] for index in drawn["index"]]


@settings(deadline=None, max_examples=50)
@given(LENGTHS, st.integers(0, 2000))
def test_realised_tokens_are_within_half_a_sample_of_planned(
    lengths: list[int], planned: int
) -> None:
    realised = int(draw(lengths, planned)["num_tokens"].sum())
    assert abs(realised - planned) <= max(lengths) / 2


def test_epochs_and_seeds_have_orders_of_their_own() -> None:
    twice = draw([1] * 50, 100)
    orders = [epoch["index"].to_list() for epoch in twice.partition_by("epoch")]
    orders.append(draw([1] * 50, 50, seed=1)["index"].to_list())
    orders.append(list(range(50)))
    assert len({tuple(order) for order in orders}) == 4


def test_nothing_planned_draws_nothing() -> None:
    assert draw([5, 5], 0).schema == draw([5, 5], 10).schema
    assert draw([5, 5], 0).height == draw([5, 5], 2).height == 0


@pytest.mark.parametrize(
    ("wanted", "count"), [(0, 0), (1, 0), (2, 0), (3, 1), (4, 1), (6, 1), (7, 2), (8, 2), (99, 2)]
)
def test_nearest_count_takes_fewer_on_a_tie(wanted: int, count: int) -> None:
    assert nearest_count(np.array([4, 8]), wanted) == count


def test_order_alternates_at_the_planned_mix() -> None:
    order = interleave({"a": samples(5, 5, 5, 5), "b": samples(10, 10)})
    assert order.rows() == [
        (0, 0, 0, 5),
        (1, 0, 0, 10),
        (0, 1, 0, 5),
        (0, 2, 0, 5),
        (1, 1, 0, 10),
        (0, 3, 0, 5),
    ]
    assert order.schema["source"] == pl.UInt16


def test_a_source_without_samples_leaves_the_others() -> None:
    order = interleave({"none": samples(), "some": samples(3, 4)})
    assert order.select("source", "index").rows() == [(1, 0), (1, 1)]
    assert interleave({"none": samples()}).height == 0


def test_sources_of_more_than_32_bits_of_tokens_keep_their_place() -> None:
    order = interleave({"large": samples(3_000_000_000, 3_000_000_000), "small": samples(10, 10)})
    assert order["source"].to_list() == [0, 1, 0, 1]


@settings(deadline=None, max_examples=50)
@given(st.lists(LENGTHS, min_size=1, max_size=4))
def test_every_prefix_holds_the_planned_mix(sources: list[list[int]]) -> None:
    """A source is off by half a sample of its own, and by its share of the others' halves."""
    order = interleave({str(name): samples(*lengths) for name, lengths in enumerate(sources)})

    taken = np.zeros((order.height + 1, len(sources)))
    taken[np.arange(1, order.height + 1), order["source"].to_numpy()] = order["num_tokens"]
    taken = taken.cumsum(axis=0)
    shares = taken[-1] / taken[-1].sum()
    halves = np.array([max(lengths) for lengths in sources]) / 2
    drift = np.abs(taken - shares * taken.sum(axis=1, keepdims=True))
    assert np.all(drift <= halves + shares * halves.sum() + 1e-6)


@settings(deadline=None, max_examples=30)
@given(st.lists(LENGTHS, min_size=1, max_size=4))
def test_order_holds_every_sample_once_and_each_source_in_its_order(
    sources: list[list[int]],
) -> None:
    order = interleave({str(name): samples(*lengths) for name, lengths in enumerate(sources)})
    for name, lengths in enumerate(sources):
        mine = order.filter(pl.col("source") == name)
        assert mine["num_tokens"].to_list() == lengths
        assert mine["index"].to_list() == list(range(len(lengths)))
