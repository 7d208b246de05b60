"""A phase of training as pipeline.yaml asks for it: which sources, how much of each, which order.

    budgets        tokens per source                        (transforms/mix_budgets.py)
    samples        how many samples come nearest to them    (transforms/mix_samples.py)
    order          which sample stands where                (corpus_loader/order.py)

Shares are given as weights or budgets, or follow from the sizes of the sources: `natural` (as they
are), `temperature` (sizes to the power of `exponent`; mT5 and XLM-R take 0.3), `unimax` (equal
shares, no source beyond its cap of epochs; Chung et al. 2023, arXiv 2304.09151).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from resources.settings.shards import FormatName

Weighting = Literal["natural", "temperature", "unimax"]
SHARES = ("weights", "weighting", "budgets")


class PhaseConfig(BaseModel):
    """One phase of training: shares of the sources, a length, caps on epochs, an order."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(description="the phase's name, and its partition in the UI")
    weights: dict[str, float] | None = Field(
        default=None, description="share of tokens per source; normalised to sum to 1"
    )
    weighting: Weighting | None = Field(
        default=None,
        description="shares from the sizes of the sources, instead of weights: natural, "
        "temperature or unimax",
    )
    budgets: dict[str, int] | None = Field(
        default=None, description="tokens per source, instead of weights"
    )
    sources: tuple[str, ...] | None = Field(
        default=None, description="with weighting: the sources of the phase (default: all)"
    )
    exponent: float = Field(
        default=0.3,
        ge=0,
        le=1,
        description="with weighting temperature: share ~ tokens^exponent (0: equal, 1: natural)",
    )
    tokens: int | None = Field(
        default=None,
        ge=1,
        description="tokens of the phase; default: as many as need no second epoch of any source",
    )
    one_epoch_of: str | None = Field(
        default=None,
        description="instead of tokens: as long as one epoch of this source takes at its share",
    )
    warn_epochs: float = Field(
        default=4.0,
        gt=0,
        allow_inf_nan=False,
        description="a source repeated more often is warned of (and unimax stops there): up to 4 "
        "epochs are nearly as good as new data (Muennighoff et al. 2023, arXiv 2305.16264)",
    )
    max_epochs: float = Field(
        default=16.0,
        gt=0,
        allow_inf_nan=False,
        description="a source repeated more often is refused: beyond 16 epochs nearly nothing is "
        "learned (the same paper)",
    )
    epochs: dict[str, float] = Field(
        default_factory=dict,
        description="a source's own cap, instead of max_epochs (with unimax: of warn_epochs)",
    )
    buckets: tuple[str, ...] | None = Field(
        default=None, min_length=1, description="draw from these buckets only (default: all)"
    )
    batch_samples: int = Field(
        default=512,
        ge=1,
        le=4096,
        description="samples of a block: every aligned block holds the phase's mix to within two "
        "samples per source; the global batch, or a multiple or a part of it",
    )
    window_shards: int | None = Field(
        default=None,
        ge=1,
        description="shuffle within windows of so many shards of a source, for remote reading; "
        "default: over the whole source",
    )
    formats: tuple[FormatName, ...] = Field(
        default=(), description="also write the phase as shards in its order, in these formats"
    )
    target_bytes: int = Field(
        default=64 << 20,
        ge=1024,
        le=2 << 30,  # as of `shards`: MDS and litdata have 32-bit offsets
        description="bytes of token ids in such a shard",
    )
    seed: int = Field(default=0, ge=0, description="names the order of the phase")

    @model_validator(mode="after")
    def check_shares(self) -> Self:
        """One way to give shares; none negative, the sum positive and finite."""
        if sum(getattr(self, key) is not None for key in SHARES) != 1:
            raise ValueError("give either `weights`, `weighting` or `budgets`")
        shares = self.weights or self.budgets or {}
        for source, share in shares.items():
            if not math.isfinite(share) or share < 0:
                raise ValueError(f"weight of {source!r} is {share}; it must be 0 or more")
        if self.weighting is None and sum(shares.values()) <= 0:
            raise ValueError("the weights sum to 0; give at least one source a positive weight")
        for source, cap in self.epochs.items():
            if not math.isfinite(cap) or cap <= 0:
                raise ValueError(f"epochs of {source!r} is {cap}; it must be more than 0")
        return self

    @model_validator(mode="after")
    def check_companions(self) -> Self:
        """Keys that go with others only."""
        lengths = [key for key in ("tokens", "one_epoch_of") if getattr(self, key) is not None]
        if self.budgets is not None and lengths:
            raise ValueError(
                f"`{lengths[0]}` goes with `weights` or `weighting`; `budgets` already say how many"
            )
        if len(lengths) == 2:
            raise ValueError("give either `tokens` or `one_epoch_of`")
        if self.sources is not None and self.weighting is None:
            raise ValueError("`sources` goes with `weighting`; `weights` and `budgets` name theirs")
        if self.buckets is not None and len(set(self.buckets)) < len(self.buckets):
            raise ValueError(f"`buckets` names one twice: {list(self.buckets)}")
        if self.sources is not None and not self.sources:
            raise ValueError("`sources` is empty; name some, or leave it out for all")
        if "exponent" in self.model_fields_set and self.weighting != "temperature":
            raise ValueError("`exponent` goes with `weighting: temperature`")
        named = self.sources_of(())
        if self.one_epoch_of is not None and named and self.one_epoch_of not in named:
            raise ValueError(f"`one_epoch_of` names {self.one_epoch_of!r}, which has no share here")
        return self

    def sources_of(self, every_source: tuple[str, ...]) -> tuple[str, ...]:
        """The phase's sources; those of weight or budget 0 are left out."""
        shares = self.weights if self.weights is not None else self.budgets
        if shares is not None:
            return tuple(source for source, share in shares.items() if share > 0)
        return every_source if self.sources is None else tuple(dict.fromkeys(self.sources))

    def named_sources(self, every_source: tuple[str, ...]) -> tuple[str, ...]:
        """The phase's sources, with those of weight or budget 0."""
        shares = self.weights if self.weights is not None else self.budgets
        return self.sources_of(every_source) if shares is None else tuple(shares)

    def references(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """(key path, name) of every source that the phase names."""
        for key in ("weights", "budgets", "epochs"):
            yield from (((key, name), name) for name in getattr(self, key) or {})
        yield from ((("sources", i), name) for i, name in enumerate(self.sources or ()))
        if self.one_epoch_of is not None:
            yield ("one_epoch_of",), self.one_epoch_of
