"""Check that a phase is feasible with its shards: one verdict, for `mixed` and `corpus plan`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from assets.mixed.budgets import MixError
from assets.mixed.continued_data_files import continued_source, differences
from assets.mixed.phase_class_files import check_classes, class_tokens, drawn_source
from assets.mixed.phase_source_files import check_flat, one_tokenizer, source_rows
from assets.mixed.phase_start import PhaseStart
from assets.mixed.plan import PhasePlan, plan_phase
from resources.settings.phases import PhaseConfig
from resources.store.records import Manifest


def plan_from_shards(
    root: Path, config: PhaseConfig, manifests: Sequence[Manifest[Any, Any]], start: PhaseStart
) -> PhasePlan:
    """Plan a phase from the `sharded` manifests of all its sources; the plan carries its faults."""
    try:
        whole = [drawn_source(config, manifest) for manifest in manifests]
        sources = [continued_source(root, config, source, start) for source in whole]
        one_tokenizer(config.name, manifests)
        check_classes(config, {source.name: source.classes for source in sources})
        if config.formats:
            check_flat(config.name, sources)
        units = [unit for source in sources for unit in source.units]
        rows = {unit.name: source_rows(root, config, unit, start) for unit in units}
    except MixError as error:
        return PhasePlan(config.name, (), faults=(str(error),))
    available = {source.name: source.tokens for source in sources}
    plan = plan_phase(config, available, rows, class_tokens(sources), start.tokens)
    return replace(plan, warnings=(*plan.warnings, *differences(whole, sources)))
