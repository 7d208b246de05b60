"""Records of the stage `mixed`, for the store."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from assets.tokenized.tokenized_records import TokenFacts
from corpus_loader.places import stage_names
from resources.store.records import StageRecords


class SourceMix(msgspec.Struct, frozen=True):
    """Share of a source in a phase: see `corpus_loader.mixture.MixtureSource`.

    weights_at: `weight` at the knots of a phase whose weights change.
    """

    weight: float
    planned_tokens: int
    realised_tokens: int
    available_tokens: int
    epochs: float
    samples: int
    weights_at: tuple[float, ...] | UnsetType = UNSET


class MixNumbers(msgspec.Struct, frozen=True):
    """Numbers of the stage `mixed`: the share of each source, and the warnings of the plan.

    The first part of a phase has them; totals and the parts of written shards have neither.
    """

    mix: dict[str, SourceMix] = {}
    warnings: list[str] = []


class MixProvenance(TokenFacts, frozen=True, kw_only=True):
    """The tokenizer of a phase, and the number of takedowns that it obeys: all there were."""

    takedowns: int | UnsetType = UNSET


MIXED = StageRecords(stage_names.MIXED, "3", MixProvenance, MixNumbers)
