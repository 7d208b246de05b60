"""Guard a run: one at a time on a store, with a note on its process, and a hook if it fails.

The executor of every job passes its events through here, in the run's own process: runs of the
command line, of the UI, of the schedule and of `corpus build` are guarded alike.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Protocol

import dagster as dg
from msgspec.structs import asdict

from assets.stages import BY_NAME
from pipeline_defs.lost_runs import mark_lost_runs, source_faults, step_faults, tell_of
from pipeline_defs.old_runs import remove_old_runs
from resources.corpus import Corpus
from resources.dagster_home import STORE_TAG, note_store
from resources.engine.cost import USED
from resources.materialize.history_checks import drifts_of_run
from resources.runs.run_lock import run_lock, this_holder
from resources.runs.run_notes import OpenNote, State, digest_of, new_note
from resources.settings.pipeline import Settings

CANCEL_SECONDS = 2.0  # a canceled run ends within 5 s, the call of the hook included
ENDS = (
    dg.DagsterEventType.STEP_SUCCESS,
    dg.DagsterEventType.STEP_FAILURE,
    dg.DagsterEventType.STEP_SKIPPED,
)


class RunContext(Protocol):
    """The context of a run, as its executor has it."""

    dagster_run: dg.DagsterRun
    instance: dg.DagsterInstance
    log: logging.Logger


def guarded(
    corpus: Corpus,
    context: RunContext,
    steps: Sequence[str],
    events: Callable[[int | None], Iterator[dg.DagsterEvent]],
) -> Iterator[dg.DagsterEvent]:
    """Yield the events of a run as soon as the store is free for it; they get its lock."""
    run, instance, root = context.dagster_run, context.instance, corpus.store.root
    note_store(root)
    instance.add_run_tags(run.run_id, {STORE_TAG: str(root)})
    for line in mark_lost_runs(instance, corpus):
        context.log.warning(line)
    partitions = partitions_of_run(corpus.settings, run.tags)
    note = OpenNote(root, new_note(run.run_id, run.job_name, tuple(steps), partitions))
    stages = (BY_NAME[name] for name in steps if name in BY_NAME)
    versions = {stage.name: stage.version_under(corpus.settings) for stage in stages}

    def tell(line: str) -> None:
        note.change(state="waiting", waits_for=line)
        context.log.info(line)

    holder = this_holder(run.run_id, run.job_name)
    with (
        noted_end(corpus, context, note),
        run_lock(root, holder, tell, pause) as lock,
    ):
        settings = digest_of(corpus.settings)
        note.change(state="running", waits_for="", versions=versions, settings=settings)
        USED.core_hours = USED.read_bytes = USED.written_bytes = 0
        for event in events(lock):
            follow(note, event)
            yield event
        try:
            if removed := remove_old_runs(instance, corpus, datetime.now(UTC)):
                context.log.info(f"{removed} old runs were removed from Dagster's records")
        except Exception as error:  # noqa: BLE001 - the run has done what it was for
            context.log.warning(f"Old runs were not removed: {error!r}")


def pause(seconds: float) -> None:
    """Sleep; raise if the run is or has been interrupted, by Terminate or Ctrl-C."""
    with dg.raise_execution_interrupts():
        time.sleep(seconds)


def follow(note: OpenNote, event: dg.DagsterEvent) -> None:
    """Note the steps that are running."""
    step = event.step_key or ""
    if event.event_type is dg.DagsterEventType.STEP_START:
        note.change(current=(*note.note.current, step))
    elif event.event_type in ENDS and step in note.note.current:
        others = tuple(other for other in note.note.current if other != step)
        note.change(current=others, used=USED)


@contextmanager
def noted_end(corpus: Corpus, context: RunContext, note: OpenNote) -> Iterator[None]:
    """Note how a run ends, and call the hook if it fails or is canceled."""
    run, instance = context.dagster_run, context.instance
    state: State = "failure"
    try:
        yield
        state = "failure" if step_faults(instance, run.run_id) else "success"
    except (KeyboardInterrupt, GeneratorExit, dg.DagsterExecutionInterruptedError):
        state = "canceled"
        raise
    finally:
        drifts = drifts_of_run(instance, run.run_id)
        note.change(
            state=state,
            current=(),
            waits_for="",
            ended=time.time(),
            faults=step_faults(instance, run.run_id),
            failed_sources=source_faults(instance, run),
            drifts=drifts,
            used=USED,
        )
        used = asdict(USED) | {"core_hours": f"{USED.core_hours:.6f}"}
        instance.add_run_tags(run.run_id, {f"tokenmill/{k}": str(v) for k, v in used.items()})
        if state != "success" or drifts:
            limit = CANCEL_SECONDS if state == "canceled" else None
            tell_of(instance, corpus, run, dg.DagsterRunStatus(state.upper()), limit)


def partitions_of_run(settings: Settings, tags: Mapping[str, str]) -> tuple[str, ...]:
    """Return the sources or phases that a run covers, by its tags."""
    if key := tags.get("dagster/partition"):
        return (key,)
    first, last = (tags.get(f"dagster/asset_partition_range_{end}") for end in ("start", "end"))
    for names in (settings.source_names(), settings.phase_names()):
        if first in names and last in names:
            return tuple(names[names.index(first) : names.index(last) + 1])
    return ()
