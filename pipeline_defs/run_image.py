"""What the process of a run and its steps need of Dagster, beside the definitions.

`corpus build` makes it before it forks the run's server, so that it is made once, not in both.
"""

from __future__ import annotations

from importlib import import_module

from dagster._core.storage.sql import get_alembic_config

from pipeline_defs.record_connections import scripts_of

STORAGES = (
    "dagster._core.storage.runs.sqlite.sqlite_run_storage",
    "dagster._core.storage.event_log.sqlite.sqlite_event_log",
    "dagster._core.storage.schedules.sqlite.sqlite_schedule_storage",
)
IMPORTED = (
    "dagster._core.executor.multiprocess",
    "dagster._core.instance.factory",
    "dagster._core.storage.local_compute_log_manager",
    "dagster._core.storage.root",
    "dagster._core.storage.sqlite_storage",
    "dagster._core.system_config.composite_descent",
    "dagster._core.workspace.autodiscovery",
    "upath.implementations.local",
)


def load_run() -> None:
    """Import it, and make the jobs, their plans and the list of Dagster's migrations."""
    definitions = import_module("pipeline_defs.definitions").defs
    for module in IMPORTED:
        import_module(module)
    for job in definitions.get_repository_def().get_all_jobs():
        import_module("dagster._core.execution.api").create_execution_plan(job)
    for storage in STORAGES:
        config = get_alembic_config(import_module(storage).__file__)
        scripts_of(config).as_revision_number("head")
