"""Two jobs, the nightly schedule, and the sensors that watch their runs.

A job cannot have assets of two partitions definitions, hence two. Their tags name the whole range
of partitions, so that `dagster job execute` without config or tags runs every source, every phase.

Dagster's run status sensors see only runs that were launched from a code location, not those of
`dagster job execute` and `corpus build`. The sensors here read the records of all runs: they mix
after a build, find lost runs, and tell of failed ones.
"""

import os
import subprocess
import sys
import time
from datetime import UTC, datetime

import dagster as dg

from assets.mixed.mixed_records import MIXED
from assets.stages import used_stages
from pipeline_defs.corpus_report import disclosed
from pipeline_defs.executor import executor_for
from pipeline_defs.lost_runs import FAILED, mark_lost_runs, tell_of
from pipeline_defs.partitions import run_tags
from resources.corpus import Corpus
from resources.dagster_home import STORE_TAG
from resources.runs.run_notes import BUILD, MIX, read_notes
from resources.settings.pipeline import CONFIG_VARIABLE, SettingsError
from resources.source_faults import CORPUS_REPORT, has_failed_sources_only

LOOK = (sys.executable, "-m", "pipeline_defs.forecast.nothing_new")
LOOK_SECONDS = 45.0  # the tick of a schedule has 60
NEWEST = 20  # runs to look at: the newest that ended need not be the newest that began
# `corpus build` starts its own mix within seconds; a second would find nothing to do, in 5 s.
GRACE_SECONDS = 20.0
OVERLAP_SECONDS = 60.0  # clocks of run records and of the sensor may differ


def automation(corpus: Corpus) -> dg.Definitions:
    """Return the jobs `build_corpus` and `mix_corpus`, the schedule and the sensors."""
    build = dg.define_asset_job(
        BUILD,
        selection=dg.AssetSelection.assets(*(set(used_stages(corpus.settings)) - {MIXED.name})),
        description="raw to sharded for every source; published parts are not computed again",
        tags=run_tags(corpus, corpus.settings.source_names()),
        executor_def=executor_for(corpus),
    )
    mix = dg.define_asset_job(
        MIX,
        selection=dg.AssetSelection.assets(MIXED.name, CORPUS_REPORT, *disclosed(corpus.settings)),
        description="the mix of every phase, and the report",
        tags=run_tags(corpus, corpus.settings.phase_names()),
        executor_def=executor_for(corpus),
    )
    return dg.Definitions(
        jobs=[build, mix],
        schedules=[nightly_schedule(corpus)],
        sensors=[mix_sensor(corpus), run_watcher(corpus)],
    )


def nightly_schedule(corpus: Corpus) -> dg.ScheduleDefinition:
    """Return the schedule that pipeline.yaml asks for; SettingsError if Dagster refuses it."""
    wanted = corpus.settings.schedule
    status = dg.DefaultScheduleStatus

    def request() -> dg.RunRequest | dg.SkipReason:
        return dg.SkipReason("Nothing is new.") if is_nothing_new(corpus) else dg.RunRequest()

    try:
        return dg.schedule(
            name="nightly",
            job_name=BUILD,
            description="Builds every source, unless nothing is new; `schedule` in pipeline.yaml "
            "says when.",
            cron_schedule=wanted.cron,
            execution_timezone=wanted.timezone,
            default_status=status.RUNNING if wanted.enabled else status.STOPPED,
        )(request)
    except dg.DagsterInvalidDefinitionError as error:
        raise SettingsError(
            f"{corpus.config}: schedule: cron {wanted.cron!r}, timezone {wanted.timezone!r}: "
            f"{error}"
        ) from error


def is_nothing_new(corpus: Corpus) -> bool:
    """Return whether a process says in time that a build would find nothing to do."""
    environment = os.environ | {CONFIG_VARIABLE: str(corpus.config)}
    try:
        return not subprocess.run(LOOK, env=environment, timeout=LOOK_SECONDS).returncode
    except subprocess.TimeoutExpired:
        return False


def mix_sensor(corpus: Corpus) -> dg.SensorDefinition:
    """Return the sensor that mixes after every build, however it was started."""

    @dg.sensor(
        name="mix_after_build",
        job_name=MIX,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Mixes every phase after a build of the corpus, however it was started.",
    )
    def mix_after_build(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        """Mix as soon as the corpus has been built, unless it was mixed since."""
        build = newest_build(context.instance, corpus)
        if build is None or build.end_time is None:
            return dg.SkipReason("nothing was built yet")
        if time.time() - build.end_time < GRACE_SECONDS:
            return dg.SkipReason(f"waiting {GRACE_SECONDS:.0f} s for a mix by `corpus build`")
        if is_mixed_since(context.instance, corpus, build.end_time):
            return dg.SkipReason("mixed since the last build")
        return dg.RunRequest(run_key=build.dagster_run.run_id)

    return mix_after_build


def newest_build(instance: dg.DagsterInstance, corpus: Corpus) -> dg.RunRecord | None:
    """Return the build of this store that ended last, None if there was none."""
    wanted = dg.RunsFilter(
        job_name=BUILD,
        tags={STORE_TAG: str(corpus.store.root)},
        statuses=[dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE],
    )
    ended = [each for each in instance.get_run_records(wanted, NEWEST) if is_built(each)]
    return max(ended, key=lambda each: each.end_time or 0.0, default=None)


def is_built(record: dg.RunRecord) -> bool:
    """Return whether mixing follows a run: it built the corpus, if need be without some sources."""
    run = record.dagster_run
    return run.status is dg.DagsterRunStatus.SUCCESS or has_failed_sources_only(run)


def is_mixed_since(instance: dg.DagsterInstance, corpus: Corpus, moment: float) -> bool:
    """Return whether a mix of all phases began after a moment."""
    tags = run_tags(corpus, corpus.settings.phase_names())
    begun = instance.get_run_records(dg.RunsFilter(job_name=MIX, tags=tags), NEWEST)
    return any(each.create_timestamp.timestamp() >= moment for each in begun)


def unchanged_since(corpus: Corpus, moment: float) -> list[dg.AssetObservation]:
    """Return the event of a build that needed no run since a moment; none if there was none."""
    return [
        dg.AssetObservation(
            CORPUS_REPORT,
            description=f"Nothing is new since run {note.run_id}.",
            metadata={"looked_at": dg.MetadataValue.timestamp(note.unchanged_at)},
        )
        for note in read_notes(corpus.store.root)[:1]
        if note.unchanged_at > moment
    ]


def run_watcher(corpus: Corpus) -> dg.SensorDefinition:
    """Return the sensor that marks lost runs, and tells of runs that failed unseen."""

    @dg.sensor(
        name="watch_runs",
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Marks runs whose process is gone as failed, and tells `notify` of failures.",
    )
    def watch_runs(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        """Mark runs whose process is gone as failed; call the hook for runs that never started."""
        now = time.time()
        lines = mark_lost_runs(context.instance, corpus)
        since = datetime.fromtimestamp(float(context.cursor or now) - OVERLAP_SECONDS, UTC)
        wanted = dg.RunsFilter(
            tags={STORE_TAG: str(corpus.store.root)}, statuses=list(FAILED), updated_after=since
        )
        for run in context.instance.get_runs(wanted):
            tell_of(context.instance, corpus, run)
        reason = dg.SkipReason("\n".join(lines) or "no run was lost")
        unchanged = unchanged_since(corpus, float(context.cursor or 0.0))
        return dg.SensorResult(skip_reason=reason, cursor=str(now), asset_events=unchanged)

    return watch_runs
