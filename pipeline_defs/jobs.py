"""Two jobs, the nightly schedule, and the sensor that starts mixing after a build.

A job cannot have assets of two partitions definitions, hence two. Their tags name the whole range
of partitions, so that `dagster job execute` without config or tags runs every source, every phase.
"""

import dagster as dg

from assets.mixed.asset import MIXED
from assets.stages import used_stages
from pipeline_defs.executor import executor_for
from resources.corpus import Corpus
from resources.settings.pipeline import SettingsError


def whole_range(keys: list[str]) -> dict[str, str]:
    """Return the tags that make a run cover every partition."""
    return {
        "dagster/asset_partition_range_start": keys[0],
        "dagster/asset_partition_range_end": keys[-1],
    }


def automation(corpus: Corpus) -> dg.Definitions:
    """Return the jobs `build_corpus` and `mix_corpus`, the schedule and the sensor."""
    build = dg.define_asset_job(
        "build_corpus",
        selection=dg.AssetSelection.assets(*(set(used_stages(corpus.settings)) - {MIXED.name})),
        description="raw to sharded for every source; published parts are not computed again",
        tags=whole_range(corpus.settings.source_names()),
        executor_def=executor_for(corpus),
    )
    mix = dg.define_asset_job(
        "mix_corpus",
        selection=dg.AssetSelection.assets(MIXED.name),
        description="the mix of every phase",
        tags=whole_range(corpus.settings.phase_names()),
        executor_def=executor_for(corpus),
    )

    @dg.run_status_sensor(
        run_status=dg.DagsterRunStatus.SUCCESS,
        monitored_jobs=[build],
        request_job=mix,
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def mix_after_build(context: dg.RunStatusSensorContext) -> dg.RunRequest:
        """Mix as soon as the corpus has been built."""
        return dg.RunRequest(run_key=context.dagster_run.run_id)

    return dg.Definitions(
        jobs=[build, mix], schedules=[nightly_schedule(corpus)], sensors=[mix_after_build]
    )


def nightly_schedule(corpus: Corpus) -> dg.ScheduleDefinition:
    """Return the schedule that pipeline.yaml asks for; SettingsError if Dagster refuses it."""
    wanted = corpus.settings.schedule
    status = dg.DefaultScheduleStatus
    try:
        return dg.ScheduleDefinition(
            name="nightly",
            job_name="build_corpus",
            cron_schedule=wanted.cron,
            execution_timezone=wanted.timezone,
            default_status=status.RUNNING if wanted.enabled else status.STOPPED,
        )
    except dg.DagsterInvalidDefinitionError as error:
        raise SettingsError(
            f"{corpus.config}: schedule: cron {wanted.cron!r}, timezone {wanted.timezone!r}: "
            f"{error}"
        ) from error
