"""Tell a run that failed only since sources failed in it, each alone, from one that broke off."""

from __future__ import annotations

from pathlib import Path

from resources.runs.run_notes import own_note


def failed_sources_only(store: Path, start: float) -> bool:
    """Return whether the run of this process since `start` failed for failed sources only.

    Such a run has built all that could be built. Dagster is imported here: only a command that
    failed needs to know.
    """
    import dagster as dg

    from resources.source_faults import has_failed_sources_only

    note = own_note(store, start)
    if note is None:  # it broke off before its first step
        return False
    with dg.DagsterInstance.get() as instance:
        run = instance.get_run_by_id(note.run_id)
    return run is not None and has_failed_sources_only(run)
