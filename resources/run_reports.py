"""Report of the last run of each partition: the numbers that depend on a clock.

The store's files depend on input, config and code alone. Times, and how many parts a run computed
or reused, are kept under DAGSTER_HOME: one small JSON file per store, stage and partition, for the
last run. The same numbers go to Dagster as metadata, which keeps their history.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import UNSET, UnsetType

from resources.dagster_home import records_folder, write_record
from resources.engine.cost import add_wall_seconds
from resources.store.records import add_stats, to_json
from resources.tasks import Outcome

SHORTEST = 0.001  # seconds; a speed over less measures the clock


class RunReport(msgspec.Struct, frozen=True):
    """The last run of one partition of one stage, or of a whole step.

    seconds       wall seconds in which at least one of its parts was computed
    cpu_seconds   CPU seconds of all threads and processes that computed them
    peak_bytes    largest resident memory of a process that computed them
    the speeds    rows and MB of text that the computed parts read, per wall second; unset where
                  there is nothing to divide, or less than a millisecond to divide by
    """

    parts_computed: int = 0
    parts_reused: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_bytes: int = 0
    docs_per_second: float | UnsetType = UNSET
    mb_per_second: float | UnsetType = UNSET


def report_path(store: Path, stage: str, partition: str) -> Path:
    """Return the path of a partition's report."""
    return records_folder(store) / stage / f"{partition}.json"


def report_of(outcomes: Sequence[Outcome]) -> RunReport:
    """Sum up tasks of one step."""
    computed = [outcome for outcome in outcomes if not outcome.is_reused]
    costs = [cost for outcome in computed for cost in outcome.costs]
    seconds = add_wall_seconds(costs)
    stats = add_stats(record.stats for outcome in computed for record in outcome.records)
    return RunReport(
        parts_computed=sum(len(outcome.records) for outcome in computed),
        parts_reused=sum(len(outcome.records) for outcome in outcomes if outcome.is_reused),
        seconds=round(seconds, 3),
        cpu_seconds=round(sum(cost.cpu_seconds for cost in costs), 3),
        peak_bytes=max((cost.peak_bytes for cost in costs), default=0),
        docs_per_second=speed(stats.rows_in, seconds),
        mb_per_second=speed(stats.text_bytes / 1e6, seconds),
    )


def speed(amount: float, seconds: float) -> float | UnsetType:
    """Return the amount per second to four digits; unset if there is none to speak of."""
    if not amount or seconds < SHORTEST:
        return UNSET
    return float(f"{amount / seconds:.4g}")


def write_report(store: Path, stage: str, partition: str, report: RunReport) -> None:
    """Write the report of the last run."""
    write_record(report_path(store, stage, partition), to_json(report))


def all_reused(report: RunReport) -> RunReport:
    """Return the report of a build that made no run since: it has found all parts there."""
    return RunReport(parts_reused=report.parts_computed + report.parts_reused)


def read_report(store: Path, stage: str, partition: str) -> RunReport:
    """Read the report of the last run; zeros if it ran under another DAGSTER_HOME."""
    path = report_path(store, stage, partition)
    if not path.exists():
        return RunReport()
    return msgspec.json.decode(path.read_bytes(), type=RunReport)
