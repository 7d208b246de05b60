"""Partitions: one per source for the stages up to `sharded`, one per phase for `mixed`."""

from collections.abc import Mapping

import dagster as dg

from resources.settings.pipeline import Settings
from resources.stage import Partitioning


def partitions_of(
    settings: Settings,
) -> Mapping[Partitioning, dg.PartitionsDefinition[str] | None]:
    """Return the partitions that stages ask for: by source, by phase, or none."""
    return {
        "source": dg.StaticPartitionsDefinition(settings.source_names()),
        "phase": dg.StaticPartitionsDefinition(settings.phase_names()),
        "none": None,
    }
