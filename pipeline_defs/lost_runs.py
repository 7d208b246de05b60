"""Mark runs whose process is gone as failed, and tell of runs that failed.

Dagster finds the end of a process only if its own daemon has started it, and only while the server
that did so lives. A killed run of the command line would be STARTED for ever.
"""

import dagster as dg

from corpus_loader.places.url_secrets import redacted
from resources.corpus import Corpus
from resources.materialize.history_checks import drifts_of_run
from resources.runs.failure_hook import RunMessage, tell_once
from resources.runs.run_notes import (
    RUNNING,
    RunNote,
    State,
    StepFault,
    change_note,
    judging,
    read_notes,
)
from resources.source_faults import failures_of_run

FAILED = (dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)
ENDS: dict[dg.DagsterRunStatus, State] = {
    dg.DagsterRunStatus.SUCCESS: "success",
    dg.DagsterRunStatus.FAILURE: "failure",
    dg.DagsterRunStatus.CANCELED: "canceled",
}
LONGEST_LINE = 500


def mark_lost_runs(instance: dg.DagsterInstance, corpus: Corpus) -> list[str]:
    """Mark this store's runs whose process is provably gone; return a line for each."""
    lines = []
    for note in read_notes(corpus.store.root):
        with judging(corpus.store.root, note) as is_gone:
            run = instance.get_run_by_id(note.run_id) if is_gone else None
            if run is not None and not run.is_finished:
                lines.append(mark_lost(instance, run, note))
                change_note(corpus.store.root, note, state="lost")
                tell_of(instance, corpus, run)
            elif is_gone and note.state in RUNNING:  # killed before it could note its end
                change_note(corpus.store.root, note, state=ENDS[run.status] if run else "lost")
    return lines


def mark_lost(instance: dg.DagsterInstance, run: dg.DagsterRun, note: RunNote) -> str:
    """Mark one run as failed, or as canceled if that was asked for; return the reason."""
    reason = (
        f"The run's process {note.pid} on {note.host} is gone: it was killed, or the machine was "
        "restarted. What it published is kept; the same command continues from there."
    )
    if run.status is dg.DagsterRunStatus.CANCELING:
        instance.report_run_canceled(run, reason)
    else:
        instance.report_run_failed(run, reason)
    return f"run {note.run_id[:8]} of {note.job}: {reason}"


def tell_of(
    instance: dg.DagsterInstance,
    corpus: Corpus,
    run: dg.DagsterRun,
    status: dg.DagsterRunStatus | None = None,
    seconds: float | None = None,
) -> None:
    """Call the hook of pipeline.yaml for a run, and log how that went in the run's log.

    `status` is what the run ends with, if Dagster does not have it yet.
    """
    failed = step_faults(instance, run.run_id)
    message = RunMessage(
        corpus=str(corpus.config),
        store=str(corpus.store.root),
        job=run.job_name,
        run_id=run.run_id,
        status=str((status or status_of(instance, run)).value),
        error=failed[0].error if failed else last_error(instance, run.run_id),
        failed=failed,
        failed_sources={
            source: f"{stage}: {reason}"
            for stage, of_stage in reversed(source_faults(instance, run).items())
            for source, reason in of_stage.items()
        },
        drifts=tuple(map(redacted, drifts_of_run(instance, run.run_id))),
    )
    for line in tell_once(corpus, message, seconds):
        instance.report_engine_event(line, run)


def status_of(instance: dg.DagsterInstance, run: dg.DagsterRun) -> dg.DagsterRunStatus:
    """Return the status of a run as Dagster has it now."""
    newest = instance.get_run_by_id(run.run_id)
    return newest.status if newest else run.status


def step_faults(instance: dg.DagsterInstance, run_id: str) -> tuple[StepFault, ...]:
    """Return the failed steps of a run, each with the first line of its error."""
    found = instance.get_records_for_run(run_id, of_type=dg.DagsterEventType.STEP_FAILURE).records
    events = [record.event_log_entry.get_dagster_event() for record in found]
    return tuple(StepFault(event.step_key or "", fault_line(event)) for event in events)


def source_faults(instance: dg.DagsterInstance, run: dg.DagsterRun) -> dict[str, dict[str, str]]:
    """Return the sources that failed in a run, by stage; stages without one are not in it."""
    return {
        stage: {source: redacted(reason) for source, reason in failed.items()}
        for stage, failed in failures_of_run(instance, run).items()
        if failed
    }


def fault_line(event: dg.DagsterEvent) -> str:
    """Return the first line of a step's error: the text of a Failure, or the root cause's."""
    data = event.step_failure_data
    if data.user_failure_data and data.user_failure_data.description:
        return first_line(data.user_failure_data.description)
    error = data.error
    while error is not None and error.cause is not None:
        error = error.cause
    return first_line(error.message if error is not None else event.message or "")


def last_error(instance: dg.DagsterInstance, run_id: str) -> str:
    """Return the first line of the event that ended a run."""
    ends = {dg.DagsterEventType.RUN_FAILURE, dg.DagsterEventType.RUN_CANCELED}
    found = instance.get_records_for_run(run_id, of_type=ends).records
    entries = [record.event_log_entry for record in found]
    return first_line(entries[-1].user_message or entries[-1].message) if entries else ""


def first_line(text: str) -> str:
    """Return the first line of a text that has words, cut to a length that every hook takes.

    It goes to other machines. Secrets are replaced before the cut: half a URL is not recognised.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return redacted(lines[0])[:LONGEST_LINE] if lines else ""
