"""Bands and rows against datasketch's own solution, and what a config makes of them."""

import numpy as np
import pytest
from datasketch.lsh import _optimal_param
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from resources.settings.dedup import DedupConfig, candidate_probability, solve_bands


@pytest.mark.parametrize("num_perm", [2, 16, 64])
@pytest.mark.parametrize("weight", [0.05, 0.5, 0.9])
@pytest.mark.parametrize("threshold", [0.05, 0.3, 0.5, 0.7, 0.8, 0.95])
def test_solution_is_datasketchs(threshold: float, weight: float, num_perm: int) -> None:
    expected = _optimal_param(threshold, num_perm, 1 - weight, weight)

    assert solve_bands(threshold, weight, num_perm) == expected


@given(st.floats(0.02, 0.98), st.floats(0.02, 0.98))
@settings(max_examples=20)
def test_any_solution_is_datasketchs(threshold: float, weight: float) -> None:
    assert solve_bands(threshold, weight, 32) == _optimal_param(threshold, 32, 1 - weight, weight)


def test_probability_of_a_candidate() -> None:
    assert candidate_probability(0.5, 2, 1) == 0.75
    assert candidate_probability(np.array([0.0, 1.0]), 14, 8).tolist() == [0, 1]
    assert candidate_probability(0.8, 14, 8) == pytest.approx(0.924, abs=1e-3)


def test_config_has_the_solved_bands_and_rows() -> None:
    config = DedupConfig(near_threshold=0.8, preset="datatrove")

    assert (config.bands, config.rows, config.num_values) == (9, 13, 117)


def test_a_heavier_miss_lowers_the_bar() -> None:
    balanced = DedupConfig(near_threshold=0.8)
    careful = DedupConfig(near_threshold=0.8, false_negative_weight=0.9)

    probabilities = [candidate_probability(0.7, c.bands, c.rows) for c in (balanced, careful)]
    assert probabilities[0] < probabilities[1]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"near_threshold": 0.8, "bands": 14}, "9 bands of 13 rows.*bands 14.*remove one"),
        ({"near_threshold": 0.8, "rows": 8}, "rows 8"),
        ({"near_threshold": 0.99, "num_perm": 4096}, "num_perm 4096.*315 rows.*lower num_perm"),
        ({"near_threshold": 1.5}, "near_threshold"),
        ({"near_threshold": "high"}, "near_threshold"),
        ({"near_threshold": 0.8, "num_perm": 1}, "num_perm"),
        ({"near_threshold": 0.8, "false_negative_weight": 1}, "false_negative_weight"),
        ({"bands": 0}, "bands"),
        ({"rows": 65}, "rows"),
        ({"ngram": 0}, "ngram"),
        ({"seed": -1}, "seed"),
        ({"band": 3}, "band"),
        ({"shingle": "letters"}, "shingle"),
    ],
)
def test_config_refuses(wrong: dict[str, object], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        DedupConfig.model_validate(wrong)
