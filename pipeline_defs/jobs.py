"""Two jobs, the nightly schedule, and the sensors that watch their runs.

A job cannot have assets of two partitions definitions, hence two. Their tags name the whole range
of partitions, so that `dagster job execute` without config or tags runs every source, every phase.
"""

import dagster as dg

from assets.mixed.mixed_records import MIXED
from assets.stages import used_stages
from pipeline_defs.executor import executor_for
from pipeline_defs.partitions import run_tags
from pipeline_defs.watch_runs import BUILD, MIX, mix_sensor, run_watcher
from resources.corpus import Corpus
from resources.settings.pipeline import SettingsError


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
        selection=dg.AssetSelection.assets(MIXED.name),
        description="the mix of every phase",
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
    try:
        return dg.ScheduleDefinition(
            name="nightly",
            job_name=BUILD,
            cron_schedule=wanted.cron,
            execution_timezone=wanted.timezone,
            default_status=status.RUNNING if wanted.enabled else status.STOPPED,
        )
    except dg.DagsterInvalidDefinitionError as error:
        raise SettingsError(
            f"{corpus.config}: schedule: cron {wanted.cron!r}, timezone {wanted.timezone!r}: "
            f"{error}"
        ) from error
