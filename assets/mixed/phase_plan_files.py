"""Check that a phase is feasible with its shards: one verdict, for `mixed` and `corpus plan`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from assets.mixed.budgets import MixError
from assets.mixed.phase_source_files import check_flat, one_tokenizer, phase_source, source_rows
from assets.mixed.plan import PhasePlan, plan_phase
from resources.settings.phases import PhaseConfig
from resources.store.records import Manifest


def plan_from_shards(
    root: Path, config: PhaseConfig, manifests: Sequence[Manifest[Any, Any]]
) -> PhasePlan:
    """Plan a phase from the `sharded` manifests of all its sources; the plan carries its faults."""
    sources = [phase_source(manifest, config.buckets) for manifest in manifests]
    try:
        one_tokenizer(config.name, manifests)
        if config.formats:
            check_flat(config.name, sources)
        rows = {source.name: source_rows(root, config, source) for source in sources}
    except MixError as error:
        return PhasePlan(config.name, (), faults=(str(error),))
    return plan_phase(config, {source.name: source.tokens for source in sources}, rows)
