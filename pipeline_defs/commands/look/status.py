"""`corpus status`: running runs, last runs, and the state of every stage of every source.

It reads notes, reports and manifests, and imports neither Dagster nor Polars unless a run was lost:
those two take 2 s.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from cyclopts import Parameter

from corpus_loader.places.stage_names import GLOBAL_STAGES, PHASE_STAGES, SOURCE_STAGES
from pipeline_defs.commands.terminal import Json, Positive, Row, print_json, print_table, say
from resources.dagster_home import dagster_home, prepare_home, records_folder
from resources.engine.cost import Usage
from resources.runs.run_notes import RUNNING, RunNote, is_gone, read_notes
from resources.settings.pipeline import Settings, config_path, load_settings, store_root
from resources.store.medium import medium_of
from resources.store.named_states import read_rollbacks
from resources.store.scratch import place_of

GLOBAL = "all"
LONGEST_REASON = 200


class Running(msgspec.Struct, frozen=True):
    """A run that works, or waits for another."""

    run_id: str
    job: str
    pid: int
    host: str
    seconds: float
    steps: tuple[str, ...]
    num_steps: int
    waits_for: str
    progress: str


class Ended(msgspec.Struct, frozen=True):
    """A run that has ended, what it failed at in a line, the drifts it found, and what it used.

    `unchanged_at`: when a build last found that nothing was new since, 0 if none did.
    """

    run_id: str
    job: str
    partitions: tuple[str, ...]
    state: str
    ended: float
    seconds: float
    error: str
    drifts: tuple[str, ...] = ()
    used: Usage = msgspec.field(default_factory=Usage)
    unchanged_at: float = 0.0


class StageState(msgspec.Struct, frozen=True):
    """A stage of a source: what the last run on it came to, and what is in the corpus."""

    state: Literal["ok", "failed", "never"]
    rows: int | None
    materialized: float | None
    reason: str = ""


Stages = dict[str, StageState]


class Status(msgspec.Struct, frozen=True):
    """Runs of a corpus, and the states of its stages by source, over all sources and by phase.

    `held` are the sources that runs leave as they are, with the state and reason of the hold.
    """

    store: str
    running: tuple[Running, ...]
    ended: tuple[Ended, ...]
    sources: dict[str, Stages]
    all_sources: Stages
    phases: dict[str, Stages]
    held: dict[str, str]


def status(
    *,
    runs: Annotated[Positive, Parameter(help="Ended runs to show.")] = 5,
    json: Json = False,
) -> int:
    """Print running runs, the last ended ones, and every stage; return 1 if one has failed."""
    config = config_path()
    settings = load_settings(config)
    found = status_of(settings, store_root(settings, config), runs)
    if json:
        print_json(found)
    else:
        show(found)
    stages = [*found.sources.values(), found.all_sources, *found.phases.values()]
    return int(any(state.state == "failed" for of in stages for state in of.values()))


def status_of(settings: Settings, store: Path, num_ended: int) -> Status:
    """Collect the status of a corpus."""
    notes = read_notes(store)
    if any(note.state in RUNNING and is_gone(store, note) for note in notes):
        mark_lost()
        notes = read_notes(store)
    ended = [note for note in notes if note.state not in RUNNING]
    return Status(
        store=place_of(store),
        running=tuple(running(note) for note in notes if note.state in RUNNING),
        ended=tuple(ended_of(note) for note in ended[:num_ended]),
        sources=states_of(store, ended, settings.source_names(), SOURCE_STAGES),
        all_sources=states_of(store, ended, [GLOBAL], GLOBAL_STAGES)[GLOBAL],
        phases=states_of(store, ended, settings.phase_names(), PHASE_STAGES),
        held={source: str(hold) for source, hold in read_rollbacks(store).items()},
    )


def mark_lost() -> None:
    """Mark the runs whose process is gone, in Dagster's records too."""
    import dagster as dg  # takes 2 s: only when a run was lost

    from pipeline_defs.load_corpus import load_corpus
    from pipeline_defs.lost_runs import mark_lost_runs

    prepare_home()
    with dg.DagsterInstance.get() as instance:
        mark_lost_runs(instance, load_corpus())


def running(note: RunNote) -> Running:
    """Describe a run that has not ended."""
    return Running(
        run_id=note.run_id,
        job=note.job,
        pid=note.pid,
        host=note.host,
        seconds=round(time.time() - note.started, 1),
        steps=note.current,
        num_steps=len(note.steps),
        waits_for=note.waits_for,
        progress=newest_line(note.run_id),
    )


def newest_line(run_id: str) -> str:
    """Return the newest line of a run's log, "" if Dagster's records are elsewhere."""
    path = dagster_home().absolute() / "history" / "runs" / f"{run_id}.db"
    query = "select event from event_logs where dagster_event_type is null order by id desc limit 1"
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=0.2)) as log:
            rows = log.execute(query).fetchall()
        return str(msgspec.json.decode(rows[0][0])["user_message"]) if rows else ""
    except (sqlite3.Error, msgspec.MsgspecError, KeyError, TypeError):
        return ""


def ended_of(note: RunNote) -> Ended:
    """Describe a run that has ended."""
    ended = note.ended or note.started
    return Ended(
        run_id=note.run_id,
        job=note.job,
        partitions=note.partitions,
        state=note.state,
        ended=ended,
        seconds=round(ended - note.started, 1),
        error=note.faults[0].error if note.faults else "",
        drifts=note.drifts,
        used=note.used,
        unchanged_at=note.unchanged_at,
    )


def states_of(
    store: Path, ended: Sequence[RunNote], partitions: Sequence[str], stages: Sequence[str]
) -> dict[str, Stages]:
    """Return the states of stages by partition, without the stages that no partition has."""
    states = {
        partition: {stage: state_of(store, ended, stage, partition) for stage in stages}
        for partition in partitions
    }
    used = {stage for of in states.values() for stage in of if of[stage].state != "never"}
    return {
        partition: {stage: state for stage, state in of.items() if stage in used}
        for partition, of in states.items()
    }


def state_of(store: Path, ended: Sequence[RunNote], stage: str, partition: str) -> StageState:
    """Return the state of a stage of a partition: failed if a run has failed at it since it ran."""
    rows = rows_of(store / stage / partition / "_manifests")
    report = records_folder(store) / stage / f"{partition}.json"
    materialized = report.stat().st_mtime if report.exists() and rows is not None else None
    for note in ended:
        if (note.ended or 0.0) < (materialized or 0.0):
            break
        if reason := reason_of(note, stage, partition):
            return StageState("failed", rows, materialized, reason)
    return StageState("never" if rows is None else "ok", rows, materialized)


def reason_of(note: RunNote, stage: str, partition: str) -> str:
    """Return why a run failed at a stage of a partition, "" if it did not."""
    if note.failed_sources:  # the last step failed, too, to say so
        return note.failed_sources.get(stage, {}).get(partition, "")
    if partition != GLOBAL and partition not in note.partitions:
        return ""
    return next((fault.error for fault in note.faults if fault.step == stage), "")


def rows_of(manifests: Path) -> int | None:
    """Return the rows of the newest manifest of a folder, None if there is none."""
    medium = medium_of(manifests)
    numbers = [name for name in medium.names(manifests) if name.removesuffix(".json").isdecimal()]
    if not numbers:
        return None
    newest = manifests / max(numbers, key=lambda name: int(name.removesuffix(".json")))
    try:  # the parts, of which there may be 100,000, are not decoded
        fields = msgspec.json.decode(medium.read(newest), type=dict[str, msgspec.Raw])
        return int(msgspec.json.decode(fields["stats"])["rows_kept"])
    except (OSError, msgspec.MsgspecError, KeyError):
        return None


def show(found: Status) -> None:
    """Print a status for people."""
    for run in found.running:
        steps = ", ".join(run.steps) or "between steps"
        say(
            f"{run.job}, run {run.run_id[:8]}, process {run.pid} on {run.host}, for "
            f"{duration(run.seconds)}: {steps} (of {run.num_steps} steps)"
        )
        if line := run.waits_for or run.progress:
            say(f"  {line}")
    if not found.running:
        say("No run is working.")
    ended = (
        (
            *(run.run_id[:8], run.job, run.state, run.error[:LONGEST_REASON]),
            *(ago(run.ended), duration(run.seconds), f"{run.used.core_hours:,.2f}"),
            *(f"{num / 1e6:,.0f}" for num in (run.used.read_bytes, run.used.written_bytes)),
        )
        for run in found.ended
    )
    numbers = ("ended", "took", "core hours", "MB read", "MB written")
    print_table("last runs", ("run", "job", "state", "error"), numbers, ended)
    if found.ended and (moment := found.ended[0].unchanged_at):
        say(f"Nothing was new {ago(moment)}: no run was needed.")
    texts = ("source and stage", "state", "reason")
    print_table("stages", texts, ("rows", "last run"), stage_rows(found))
    say(*(f"drift in run {run.run_id[:8]}: {drift}" for run in found.ended for drift in run.drifts))
    for source, hold in found.held.items():
        say(f"{hold}: `corpus states rollback {source} --release` ends it.")
    if not (found.running or found.ended):
        say(f"Nothing has run yet on {found.store}. Run: corpus build")


def stage_rows(found: Status) -> Iterator[Row]:
    """Yield the stages of each source, then those of all sources, then the phases."""
    groups = [*found.sources.items(), ("all sources", found.all_sources), *found.phases.items()]
    for name, stages in groups:
        if stages:
            yield name
        for stage, state in stages.items():
            reason, age = state.reason[:LONGEST_REASON], state.materialized
            yield stage, state.state, reason, state.rows, ago(age) if age else ""
        yield None


def ago(moment: float) -> str:
    """Write how long ago a moment was."""
    return f"{duration(time.time() - moment)} ago"


def duration(seconds: float) -> str:
    """Write seconds as the largest unit that suits them: 50 s, 12 min, 5 h, 3 d."""
    for unit, size, limit in (("s", 1, 120), ("min", 60, 7200), ("h", 3600, 172_800)):
        if seconds < limit:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86_400:.0f} d"
