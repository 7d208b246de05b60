"""Dagster's SQLite records: all events are there for others, through connections that stay open."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.storage.event_log.sqlite import sqlite_event_log
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from dagster._core.storage.runs.sqlite import sqlite_run_storage
from dagster._core.storage.schedules.sqlite import sqlite_schedule_storage

from pipeline_defs.record_connections import close_connections, engine_of, keep_connections_open

NORMAL = 1  # of SQLite's `synchronous`: tables of a new database are not flushed one by one


@pytest.fixture
def instance(dagster_home: Path, monkeypatch: pytest.MonkeyPatch) -> dg.DagsterInstance:
    monkeypatch.setattr(SqliteEventLogStorage, "_connect", SqliteEventLogStorage._connect)
    monkeypatch.setattr(SqliteEventLogStorage, "has_table", SqliteEventLogStorage.has_table)
    for module in (sqlite_event_log, sqlite_run_storage, sqlite_schedule_storage):
        monkeypatch.setattr(module, "create_engine", vars(module)["create_engine"])
    keep_connections_open()
    close_connections()
    return dg.DagsterInstance.get()


def run_asset(instance: dg.DagsterInstance) -> str:
    @dg.asset
    def counted() -> dg.MaterializeResult[None]:
        return dg.MaterializeResult(metadata={"rows": 3})

    return dg.materialize([counted], instance=instance).run_id


def events_on_disk(home: Path, run: str) -> set[str]:
    with sqlite3.connect(home / f"history/runs/{run}.db") as connection:
        return {row[0] for row in connection.execute("SELECT dagster_event_type FROM event_logs")}


def test_another_process_reads_every_event_while_the_connection_is_open(
    instance: dg.DagsterInstance, dagster_home: Path
) -> None:
    run = run_asset(instance)

    expected = {"PIPELINE_START", "ASSET_MATERIALIZATION", "PIPELINE_SUCCESS"}
    assert expected <= events_on_disk(dagster_home, run)


def test_a_database_is_opened_once(instance: dg.DagsterInstance) -> None:
    run_asset(instance)
    opened = engine_of.cache_info().misses
    instance.fetch_materializations(dg.AssetKey("counted"), limit=9)

    # Runs, schedules, the index of events, the run's own.
    assert engine_of.cache_info().misses == opened == 4


def test_new_databases_are_made_through_the_connections_that_stay(
    instance: dg.DagsterInstance, dagster_home: Path
) -> None:
    places = ("history/runs.db", "history/runs/index.db", "schedules/schedules.db")

    assert {str(dagster_home / place) for place in places} <= set(open_databases(dagster_home))
    for place in places:
        with engine_of(f"sqlite:///{dagster_home / place}").connect() as connection:
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == NORMAL
    assert instance.schedule_storage is not None


def test_a_table_that_was_found_is_not_asked_for_again(
    instance: dg.DagsterInstance, dagster_home: Path
) -> None:
    storage = instance.event_log_storage
    assert isinstance(storage, SqliteEventLogStorage)
    assert storage.has_table("asset_event_tags") and not storage.has_table("later")
    with sqlite3.connect(dagster_home / "history/runs/index.db") as connection:
        connection.execute("CREATE TABLE later (number INTEGER)")
    assert storage.has_table("later")

    with sqlite3.connect(dagster_home / "history/runs/index.db") as connection:
        connection.execute("DROP TABLE later")
    assert storage.has_table("later")


def test_a_fork_has_connections_of_its_own(
    instance: dg.DagsterInstance, dagster_home: Path
) -> None:
    run_asset(instance)
    before = engine_of.cache_info().currsize
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.write(
            writer, bytes([engine_of.cache_info().currsize, len(open_databases(dagster_home))])
        )
        os._exit(0)
    os.wait()

    assert before == 4 and os.read(reader, 2) == bytes([0, 0])
    assert run_asset(instance) != run_asset(instance)
    assert len(open_databases(dagster_home)) > 0


def open_databases(home: Path) -> list[str]:
    opened = [os.path.realpath(link) for link in Path("/proc/self/fd").iterdir()]
    return [path for path in opened if path.startswith(str(home)) and path.endswith(".db")]


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
    keep_connections_open()
    run_asset(dg.DagsterInstance.get())
