"""Thresholds and weights that losses speak for."""

from __future__ import annotations

import numpy as np
import pytest

from assets.filtered.rules.loss_proposals import propose_threshold, propose_weights, welch
from assets.filtered.rules.rules import Rule

RNG = np.random.default_rng(0)
SCORES = RNG.random(2000)
SIZES = np.full(2000, 1000.0)
ABOVE = Rule("page.boilerplate", "boilerplate", 1.0, "above", "max_boilerplate")
BELOW = Rule("length.too_short", "num_chars", 0.0, "below", "min_chars")


def test_a_threshold_is_drawn_where_losses_rise() -> None:
    losses = np.where(SCORES > 0.96, 4.0, 2.0) + RNG.normal(0, 0.1, 2000)

    found = propose_threshold(ABOVE, SCORES, losses, SIZES, 0.10)

    assert found is not None and found.key == "page.max_boilerplate"
    assert found.proposed == pytest.approx(0.95, abs=0.03)
    assert found.loss_then < found.loss_now < found.loss_of_dropped


def test_a_lower_limit_is_raised() -> None:
    losses = np.where(SCORES < 0.04, 4.0, 2.0) + RNG.normal(0, 0.1, 2000)

    found = propose_threshold(BELOW, SCORES, losses, SIZES, 0.10)

    assert found is not None and 0.02 < found.proposed < 0.08


def test_no_more_text_is_given_up_than_asked() -> None:
    losses = SCORES * 4

    found = propose_threshold(ABOVE, SCORES, losses, SIZES, 0.05)

    assert found is not None and found.text_share <= 0.05


def test_losses_without_a_relation_propose_nothing() -> None:
    losses = RNG.normal(2, 0.5, 2000)

    assert propose_threshold(ABOVE, SCORES, losses, SIZES, 0.05) is None


def test_a_limit_by_language_stays() -> None:
    by_language = Rule("page.repeated", "repeated", {"*": 0.3}, "above", "max_repeated")  # type: ignore[arg-type]

    assert propose_threshold(by_language, SCORES, SCORES, SIZES, 0.05) is None


def test_weights_follow_the_excess_loss_and_are_bounded() -> None:
    shares = {"a": 0.5, "b": 0.4, "c": 0.1}

    same = propose_weights(dict.fromkeys(shares, 2.0), shares)
    raised = propose_weights({"a": 2.0, "b": 2.5, "c": 9.0}, shares)

    assert same == shares
    assert raised["b"] / raised["a"] > 0.8
    assert raised["c"] / raised["a"] <= 4 * 0.1 / 0.5 + 1e-3
    assert sum(raised.values()) == pytest.approx(1, abs=1e-3)


def test_welch_is_that_of_its_definition() -> None:
    assert welch(np.array([3.0, 5.0]), np.array([1.0, 1.0, 1.0])) == pytest.approx(3.0)
