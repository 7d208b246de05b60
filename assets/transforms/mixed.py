"""Phases: how many tokens of each source, which samples, and one order over all of them.

A sample is a sequence of a shard. Each epoch of a source takes its samples in a permutation of its
own; a source that is asked for more tokens than it has starts another epoch. The order interleaves
the sources so that at every point each has advanced by the same share of its plan (to within a
sample). Everything follows from the seed, the weights and the lengths: nothing depends on time.
"""

from __future__ import annotations

import math
from typing import Self

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import BaseModel, ConfigDict, Field, model_validator

from corpus_loader.permutation import derive_key, permute

MANY_EPOCHS = 4.0  # repeating beyond it loses value (Muennighoff et al. 2023, arXiv 2305.16264)
MAX_EPOCHS = 1000


class MixError(ValueError):
    """A phase that cannot be mixed as asked; the message says what would work."""


class PhaseConfig(BaseModel):
    """One phase of training: either weights (and a total), or a token budget for each source."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(description="the phase's name, and its partition in the UI")
    weights: dict[str, float] | None = Field(
        default=None, description="share of tokens per source; normalised to sum to 1"
    )
    tokens: int | None = Field(
        default=None,
        ge=1,
        description="tokens of the phase, with weights; default: as many as need no second epoch",
    )
    budgets: dict[str, int] | None = Field(
        default=None, description="tokens per source, instead of weights"
    )
    seed: int = Field(default=0, ge=0, description="names the order of the phase")

    @model_validator(mode="after")
    def check_weights(self) -> Self:
        """Exactly one of weights and budgets; none negative, the sum positive and finite."""
        if (self.weights is None) == (self.budgets is None):
            raise ValueError("give either `weights` or `budgets`")
        if self.budgets is not None and self.tokens is not None:
            raise ValueError("`tokens` goes with `weights`; `budgets` already say how many")
        shares = self.shares()
        for source, share in shares.items():
            if not math.isfinite(share) or share < 0:
                raise ValueError(f"weight of {source!r} is {share}; it must be 0 or more")
        if sum(shares.values()) <= 0:
            raise ValueError("the weights sum to 0; give at least one source a positive weight")
        return self

    def shares(self) -> dict[str, float]:
        """Weights or budgets, as they were given."""
        given = self.weights if self.weights is not None else self.budgets
        return {source: float(share) for source, share in (given or {}).items()}


def normalized_weights(config: PhaseConfig) -> dict[str, float]:
    """Share of the phase's tokens per source, sources of weight 0 left out; sums to 1."""
    shares = {source: share for source, share in config.shares().items() if share > 0}
    total = sum(shares.values())
    return {source: share / total for source, share in shares.items()}


def plan_tokens(config: PhaseConfig, available: dict[str, int]) -> dict[str, int]:
    """Tokens to draw from each source; whole numbers that sum to the phase's total.

    Raises MixError if a source with a weight has no tokens.
    """
    weights = normalized_weights(config)
    empty = [source for source in weights if available[source] == 0]
    if empty:
        raise MixError(
            f"phase {config.name!r} asks for tokens of {empty}, which have none after filtering "
            "and deduplication. Set their weight to 0, or look at `corpus summary` for why."
        )
    if config.budgets is not None:
        planned = {source: config.budgets[source] for source in weights}
    else:
        one_epoch = min(available[source] / weight for source, weight in weights.items())
        total = config.tokens or int(one_epoch)
        planned = largest_remainder({name: total * share for name, share in weights.items()}, total)
    for source, tokens in planned.items():
        if tokens > available[source] * MAX_EPOCHS:
            raise MixError(
                f"phase {config.name!r} asks for {tokens:,} tokens of {source!r}, which has "
                f"{available[source]:,}: over {MAX_EPOCHS} epochs. Lower its weight or `tokens`."
            )
    return planned


def largest_remainder(shares: dict[str, float], total: int) -> dict[str, int]:
    """Round shares to whole numbers that sum to `total` (Hamilton's method; ties by name)."""
    floors = {key: int(share) for key, share in shares.items()}
    by_remainder = sorted(shares, key=lambda key: (floors[key] - shares[key], key))
    for key in by_remainder[: total - sum(floors.values())]:
        floors[key] += 1
    return floors


def draw_samples(num_tokens: npt.NDArray[np.uint32], planned: int, *key: str | int) -> pl.DataFrame:
    """Samples of one source until their tokens come nearest to `planned`.

    `num_tokens` holds the length of each of the source's samples, `key` names the draw. Out: index
    UInt32 (into num_tokens), epoch UInt16, num_tokens UInt32.
    """
    epochs: list[pl.DataFrame] = []
    missing = planned
    while missing > 0:
        order = permute(
            np.arange(num_tokens.size), size=num_tokens.size, key=derive_key(*key, len(epochs))
        )
        reached = np.cumsum(num_tokens[order], dtype=np.int64)
        count = nearest_count(reached, missing)
        if count == 0:
            break
        order = order[:count]
        epoch = pl.Series([len(epochs)], dtype=pl.UInt16).new_from_index(0, count)
        columns = {
            "index": order.astype(np.uint32),
            "epoch": epoch,
            "num_tokens": num_tokens[order],
        }
        epochs.append(pl.DataFrame(columns))
        missing = missing - int(reached[-1]) if count == reached.size else 0
    empty = {"index": pl.UInt32, "epoch": pl.UInt16, "num_tokens": pl.UInt32}
    return pl.concat(epochs) if epochs else pl.DataFrame(schema=empty)


def nearest_count(reached: npt.NDArray[np.int64], wanted: int) -> int:
    """How many samples bring the running total nearest to `wanted` (fewer, on a tie)."""
    above = int(np.searchsorted(reached, wanted))
    if above == reached.size:
        return above
    below_total = int(reached[above - 1]) if above else 0
    return above + 1 if int(reached[above]) - wanted < wanted - below_total else above


def interleave(samples: dict[str, pl.DataFrame]) -> pl.DataFrame:
    """One order over the samples of all sources.

    A sample stands at the middle of its tokens, as a share of its source's total; sorting by that
    keeps every prefix at the planned mix. Adds source UInt16: the index in `samples`.
    """
    lengths = pl.col("num_tokens").cast(pl.Int64)  # a sum of UInt32 wraps at 4.3 billion tokens
    placed = [
        frame.select(
            pl.lit(index, pl.UInt16).alias("source"),
            pl.all(),
            progress=(lengths.cum_sum() - lengths / 2) / lengths.sum(),
        )
        for index, frame in enumerate(samples.values())
    ]
    return pl.concat(placed).sort("progress", "source", maintain_order=True).drop("progress")
