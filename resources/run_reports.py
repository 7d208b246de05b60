"""Report of the last run of each partition: the numbers that depend on a clock.

The store's files depend on input, config and code alone. Times, and how many parts a run computed
or reused, are kept under DAGSTER_HOME: one small JSON file per store, stage and partition, for the
last run. The same numbers go to Dagster as metadata, which keeps their history.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from resources.dagster_home import records_folder
from resources.store.records import add_stats, to_json
from resources.tasks import Outcome


class RunReport(msgspec.Struct, frozen=True):
    """The last run of one partition of one stage; seconds are summed over its parts."""

    parts_computed: int = 0
    parts_reused: int = 0
    seconds: float = 0.0
    mb_per_second: float = 0.0


def report_path(store: Path, stage: str, partition: str) -> Path:
    """Return the path of a partition's report."""
    return records_folder(store) / stage / f"{partition}.json"


def report_of(outcomes: Sequence[Outcome]) -> RunReport:
    """Sum up a partition's tasks; the speed counts computed parts, in MB of text read."""
    computed = [outcome for outcome in outcomes if not outcome.is_reused]
    seconds = sum(outcome.seconds for outcome in computed)
    stats = add_stats(record.stats for outcome in computed for record in outcome.records)
    return RunReport(
        parts_computed=sum(len(outcome.records) for outcome in computed),
        parts_reused=sum(len(outcome.records) for outcome in outcomes if outcome.is_reused),
        seconds=round(seconds, 3),
        mb_per_second=round(stats.text_bytes / 1e6 / seconds, 3) if seconds > 0 else 0.0,
    )


def write_report(store: Path, stage: str, partition: str, report: RunReport) -> None:
    """Write the report of the last run."""
    path = report_path(store, stage, partition)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(to_json(report))
    temporary.replace(path)


def read_report(store: Path, stage: str, partition: str) -> RunReport:
    """Read the report of the last run; zeros if it ran under another DAGSTER_HOME."""
    path = report_path(store, stage, partition)
    if not path.exists():
        return RunReport()
    return msgspec.json.decode(path.read_bytes(), type=RunReport)
