"""The two jobs, the nightly schedule, and the sensor that lets mixing follow building.

A job cannot hold assets of two partitions definitions, hence two. Their tags name the whole range
of partitions, so that `dagster job execute` without config or tags runs every source, every phase.
"""

import dagster as dg

from pipeline_defs.partitions import CORPUS, PHASES, SOURCES
from resources.settings.pipeline import SettingsError

# A fork server that has imported everything gives a step process in 0.6 s; spawn takes 4 s. The
# last four are what stages import when they need it: here once, not once a step.
PRELOAD = [
    "dagster",
    "dagster._core.storage.runs.sqlite.sqlite_run_storage",
    "dagster._core.storage.event_log.sqlite.sqlite_event_log",
    "pipeline_defs.definitions",
    "assets.deduped.kernels.minhash_sketch",
    "assets.filtered.kernels.text_scores",
    "pyarrow.parquet",
    "tokenizers",
]
EXECUTORS = {
    "in_process": dg.in_process_executor,
    "multiprocess": dg.multiprocess_executor.configured(
        {"start_method": {"forkserver": {"preload_modules": PRELOAD}}}
    ),
}


def whole_range(partitions: dg.PartitionsDefinition[str]) -> dict[str, str]:
    """Tags that make a run cover every partition."""
    keys = partitions.get_partition_keys()
    return {
        "dagster/asset_partition_range_start": keys[0],
        "dagster/asset_partition_range_end": keys[-1],
    }


build_corpus = dg.define_asset_job(
    "build_corpus",
    selection=dg.AssetSelection.groups("corpus") - dg.AssetSelection.assets("mixed"),
    description="raw to sharded for every source; what is published already is not computed again",
    tags=whole_range(SOURCES),
    executor_def=EXECUTORS[CORPUS.settings.engine.steps],
)

mix_corpus = dg.define_asset_job(
    "mix_corpus",
    selection=dg.AssetSelection.assets("mixed"),
    description="the mix of every phase",
    tags=whole_range(PHASES),
    executor_def=dg.in_process_executor,  # one step: its own process would cost 3 s for nothing
)


def nightly_schedule() -> dg.ScheduleDefinition:
    """The schedule that pipeline.yaml asks for; SettingsError if Dagster refuses it."""
    wanted = CORPUS.settings.schedule
    status = dg.DefaultScheduleStatus
    try:
        return dg.ScheduleDefinition(
            name="nightly",
            job=build_corpus,
            cron_schedule=wanted.cron,
            execution_timezone=wanted.timezone,
            default_status=status.RUNNING if wanted.enabled else status.STOPPED,
        )
    except dg.DagsterInvalidDefinitionError as error:
        raise SettingsError(
            f"{CORPUS.config}: schedule: cron {wanted.cron!r}, timezone {wanted.timezone!r}: "
            f"{error}"
        ) from error


nightly = nightly_schedule()


@dg.run_status_sensor(
    run_status=dg.DagsterRunStatus.SUCCESS,
    monitored_jobs=[build_corpus],
    request_job=mix_corpus,
    default_status=dg.DefaultSensorStatus.RUNNING,
)
def mix_after_build(context: dg.RunStatusSensorContext) -> dg.RunRequest:
    """Mix as soon as the corpus has been built."""
    return dg.RunRequest(run_key=context.dagster_run.run_id)
