"""Dagster's SQLite records: every event is there for others, with few flushes to disk."""

import multiprocessing
import sqlite3

import dagster as dg
from prelude import Path, os, pytest
from sqlalchemy import create_engine

from pipeline_defs.sqlite_records import hold

NORMAL = 1  # of SQLite's `synchronous`


@pytest.fixture
def instance(dagster_home: Path) -> dg.DagsterInstance:
    hold.cache_clear()
    return dg.DagsterInstance.get()


def run_asset(instance: dg.DagsterInstance) -> str:
    @dg.asset
    def counted() -> dg.MaterializeResult[None]:
        return dg.MaterializeResult(metadata={"rows": 3})

    return dg.materialize([counted], instance=instance).run_id


def test_events_are_there_for_others_and_wait_in_the_log_for_a_checkpoint(
    instance: dg.DagsterInstance, dagster_home: Path
) -> None:
    path = dagster_home / f"history/runs/{run_asset(instance)}.db"
    with sqlite3.connect(path) as connection:
        found = {row[0] for row in connection.execute("SELECT dagster_event_type FROM event_logs")}

    assert {"PIPELINE_START", "ASSET_MATERIALIZATION", "PIPELINE_SUCCESS"} <= found
    assert path.with_name(f"{path.name}-wal").stat().st_size
    with create_engine(f"sqlite:///{path}").connect() as opened:
        assert opened.exec_driver_sql("PRAGMA synchronous").scalar() == NORMAL


def test_a_fork_holds_no_connection(instance: dg.DagsterInstance) -> None:
    run_asset(instance)
    held = hold.cache_info().currsize
    pid = os.fork()
    if pid == 0:
        os._exit(hold.cache_info().currsize)

    assert held == 4  # runs, schedules, the index of events, the run's own
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert run_asset(instance) != run_asset(instance)


def test_processes_write_to_one_index(instance: dg.DagsterInstance, dagster_home: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=run_in_home, args=(str(dagster_home),)) for _ in range(2)]
    for writer in writers:
        writer.start()
    run_asset(instance)
    for writer in writers:
        writer.join()

    key = dg.AssetKey("counted")
    assert len(instance.fetch_materializations(key, limit=9).records) == 3


def run_in_home(home: str) -> None:
    os.environ["DAGSTER_HOME"] = home
    run_asset(dg.DagsterInstance.get())
