"""The share of each source that is held out, of a share or a number of tokens."""

from typing import Any

import pytest

from assets.bucketed.held_out import shares_of
from resources.settings.pipeline import Settings

TOKENS = {"web": 800, "books": 200}


def holding_out(holdout: dict[str, Any] | None, books: dict[str, Any] | None = None) -> Settings:
    """Settings of two sources, the second with a `holdout` of its own if it is given."""
    sources = [{"name": name, "where": "*"} for name in TOKENS]
    if books:
        sources[1]["holdout"] = books  # type: ignore[assignment]
    return Settings.model_validate(
        {
            "store": "store",
            "sources": sources,
            "holdout": holdout,
            "phases": [{"name": "all", "weights": {name: 1 for name in TOKENS}}],
        }
    )


def tokens_of(sources: Any) -> int:
    return sum(TOKENS[source] for source in sources)


@pytest.mark.parametrize(
    ("settings", "before", "shares", "kept"),
    [
        (holding_out({"share": 0.1}), {}, {"web": 0.1, "books": 0.1}, {}),
        (holding_out(None, {"share": 0.2}), {}, {"web": 0.0, "books": 0.2}, {}),
        (holding_out({"tokens": 100}), {}, {"web": 0.1, "books": 0.1}, {"": [100, 0.1]}),
        (
            holding_out({"tokens": 100}, {"tokens": 50}),
            {"": [100, 0.3], "books": [40, 0.3]},  # another number was asked for
            {"web": 0.3, "books": 0.25},
            {"": [100, 0.3], "books": [50, 0.25]},
        ),
    ],
    ids=["a share of all", "a share of one", "tokens of all", "kept unless changed"],
)
def test_a_number_of_tokens_becomes_a_share_once(
    settings: Settings,
    before: dict[str, list[float]],
    shares: dict[str, float],
    kept: dict[str, list[float]],
) -> None:
    found = shares_of(settings, before, tokens_of)
    assert found == {"shares": shares, "tokens": kept}


def test_sources_without_tokens_have_no_share_yet() -> None:
    found = shares_of(holding_out({"tokens": 100}), {}, lambda _: 0)
    assert found == {"shares": {}, "tokens": {}}
