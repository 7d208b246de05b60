"""Where a phase begins in the order of its sources: at their start, or where another stopped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from corpus_loader.mixture import Mixture
from corpus_loader.order import order_seed
from resources.settings.phases import PhaseConfig


@dataclass(frozen=True)
class PhaseStart:
    """Seed of the order of a phase, and what was drawn of it before.

    phase: the one whose name and `seed` give the order's seed; samples, tokens: of earlier phases
    that this one continues, by what is drawn by itself; mixture: the older one that `data` names,
    whose shards are drawn of its sources.
    """

    phase: str
    seed: int
    samples: Mapping[str, int] = field(default_factory=dict)
    tokens: Mapping[str, int] = field(default_factory=dict)
    mixture: Mixture | None = None


def own_start(config: PhaseConfig) -> PhaseStart:
    """Return the start of a phase with an order of its own."""
    return PhaseStart(config.name, order_seed(config.seed, config.name))
