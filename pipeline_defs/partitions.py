"""Partitions: one per source for the stages up to `sharded`, one per phase for `mixed`."""

from collections.abc import Mapping

import dagster as dg

from resources.corpus import Corpus
from resources.dagster_home import STORE_TAG
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


def run_tags(corpus: Corpus, keys: list[str]) -> dict[str, str]:
    """Return the tags of a job: its runs cover every partition, and name their store."""
    return {
        "dagster/asset_partition_range_start": keys[0],
        "dagster/asset_partition_range_end": keys[-1],
        STORE_TAG: str(corpus.store.root),
    }
