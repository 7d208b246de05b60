"""Tell a run that failed only since sources failed in it, each alone, from one that broke off."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path


def failed_sources_since(start: datetime, home: Path) -> bool:
    """Return whether the newest run of Dagster since `start` failed for failed sources only.

    Such a run has built all that could be built. Dagster is imported here: only a command that
    failed needs to know.
    """
    import dagster as dg

    from resources.source_faults import has_failed_sources_only

    with dg.DagsterInstance.from_config(str(home)) as instance:
        runs = instance.get_runs(filters=dg.RunsFilter(created_after=start), limit=1)
        return any(has_failed_sources_only(run) for run in runs)
