"""What a phase may ask for, and what is said of what it may not."""

import math

import pytest
from pydantic import ValidationError

from resources.settings.phases import PhaseConfig


def phase(**config: object) -> PhaseConfig:
    return PhaseConfig.model_validate({"name": "general"} | config)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({}, "give either `weights`, `weighting` or `budgets`"),
        ({"weights": {"a": 1}, "budgets": {"a": 1}}, "give either `weights`, `weighting`"),
        ({"weights": {"a": 1}, "weighting": "natural"}, "give either `weights`, `weighting`"),
        ({"weighting": "equal"}, "'natural', 'temperature' or 'unimax'"),
        ({"budgets": {"a": 1}, "tokens": 5}, "`tokens` goes with `weights` or `weighting`"),
        ({"budgets": {"a": 1}, "one_epoch_of": "a"}, "`one_epoch_of` goes with `weights`"),
        ({"weights": {"a": 1}, "tokens": 5, "one_epoch_of": "a"}, "`tokens` or `one_epoch_of`"),
        ({"weights": {"a": 1}, "one_epoch_of": "b"}, "names 'b', which has no share here"),
        ({"weights": {"a": 1, "b": 0}, "one_epoch_of": "b"}, "names 'b', which has no share"),
        ({"weighting": "natural", "sources": ["a"], "one_epoch_of": "b"}, "which has no share"),
        ({"weights": {"a": 1}, "sources": ["a"]}, "`sources` goes with `weighting`"),
        ({"weighting": "natural", "sources": []}, "`sources` is empty"),
        (
            {"weighting": "natural", "exponent": 0.5},
            "`exponent` goes with `weighting: temperature`",
        ),
        ({"weighting": "temperature", "exponent": 1.5}, "less than or equal to 1"),
        ({"weights": {"a": 2, "b": -1}}, "weight of 'b' is -1.0; it must be 0 or more"),
        ({"weights": {"a": math.nan}}, "weight of 'a' is nan"),
        ({"weights": {"a": math.inf}}, "weight of 'a' is inf"),
        ({"weights": {"a": 0}}, "the weights sum to 0"),
        ({"weights": {}}, "the weights sum to 0"),
        ({"budgets": {"a": 1.5}}, "valid integer"),
        ({"weights": {"a": 1}, "tokens": 0}, "greater than or equal to 1"),
        ({"weights": {"a": 1}, "epochs": {"a": 0}}, "epochs of 'a' is 0.0; it must be more than 0"),
        ({"weights": {"a": 1}, "epochs": {"a": math.inf}}, "epochs of 'a' is inf"),
        ({"weights": {"a": 1}, "batch_samples": 4097}, "less than or equal to 4096"),
        ({"weights": {"a": 1}, "max_epochs": math.inf}, "finite number"),
        ({"weights": {"a": 1}, "target_bytes": 1 << 40}, "less than or equal to 2147483648"),
        ({"weights": {"a": 1}, "buckets": ["64", "64"]}, "`buckets` names one twice"),
        ({"weights": {"a": 1}, "formats": ["json"]}, "'parquet', 'megatron'"),
        ({"weights": {"a": 1}, "wieghts": {}}, "Extra inputs"),
    ],
)
def test_bad_phases_are_refused(config: dict[str, object], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        phase(**config)


def test_sources_are_those_with_a_share() -> None:
    every = ("a", "b", "c")
    assert phase(weights={"b": 1, "a": 0}).sources_of(every) == ("b",)
    assert phase(budgets={"a": 0, "c": 3}).sources_of(every) == ("c",)
    assert phase(weighting="unimax").sources_of(every) == every
    assert phase(weighting="unimax", sources=["c", "a", "c"]).sources_of(every) == ("c", "a")


def test_every_name_of_a_source_is_found_with_its_place() -> None:
    config = phase(weighting="natural", sources=["a", "b"], epochs={"c": 2}, one_epoch_of="b")
    assert list(config.references()) == [
        (("epochs", "c"), "c"),
        (("sources", 0), "a"),
        (("sources", 1), "b"),
        (("one_epoch_of",), "b"),
    ]
    assert list(phase(budgets={"d": 1}).references()) == [(("budgets", "d"), "d")]
