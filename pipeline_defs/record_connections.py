"""Dagster's SQLite records with connections that stay open.

Dagster opens a database for every event, and closes it again: an engine, a connection, a flush to
disk at the commit and one more at the close, which merges the write-ahead log as the last
connection goes. A build with nothing to do opens 1,000 connections. Here each process keeps one per
database, and leaves flushing to the write-ahead log (`synchronous=NORMAL`, which SQLite recommends
with it): a power cut may lose the last events of a run, but damages nothing, and the store does not
depend on these records. New databases are made so, too: their 79 tables and indexes were flushed
one by one, 270 times in all; now that is 24 times. Nor does it have alembic read its 90 scripts
again for each database that it opens for the first time, which takes 0.13 s of CPU.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any
from weakref import WeakSet

import alembic.script
from alembic.config import Config
from dagster._core.storage.event_log.sqlite import sqlite_event_log
from dagster._core.storage.event_log.sqlite.sqlite_event_log import (
    INDEX_SHARD_NAME,
    SqliteEventLogStorage,
)
from dagster._core.storage.runs.sqlite import sqlite_run_storage
from dagster._core.storage.runs.sqlite.sqlite_run_storage import SqliteRunStorage
from dagster._core.storage.schedules.sqlite import sqlite_schedule_storage
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
from sqlalchemy import Connection, Engine, QueuePool, create_engine, event

MOST_DATABASES = 64  # each run has one of its own


def keep_connections_open() -> None:
    """Let this process, and its forks, write to Dagster's SQLite records as said above."""
    SqliteEventLogStorage._connect = connect_to_shard  # type: ignore[method-assign,assignment]
    SqliteEventLogStorage.has_table = has_table  # type: ignore[method-assign]
    SqliteRunStorage.connect = connect_to_runs  # type: ignore[method-assign,assignment]
    alembic.script.ScriptDirectory.from_config = scripts_of  # type: ignore[method-assign]
    for storage in (sqlite_event_log, sqlite_run_storage, sqlite_schedule_storage):
        vars(storage)["create_engine"] = lambda address, **_: engine_of(address)


@contextmanager
def connect_to_shard(storage: SqliteEventLogStorage, shard: str) -> Iterator[Connection]:
    """Yield a connection to the events of a run, or to the index of all, in a transaction."""
    with storage._db_lock:
        engine = engine_of(storage.conn_string_for_shard(shard))
        if shard not in storage._initialized_dbs:
            storage._initdb(engine)
            storage._initialized_dbs.add(shard)
        with engine.begin() as connection:
            yield connection


def has_table(self: SqliteEventLogStorage, table_name: str) -> bool:
    """Return whether the index of all events has a table; one that is there stays.

    Dagster asks for every materialization, on an engine and a connection made to ask.
    """
    address = self.conn_string_for_shard(INDEX_SHARD_NAME)
    if (address, table_name) not in _tables:
        with engine_of(address).connect() as connection:
            if not connection.dialect.has_table(connection, table_name):
                return False
        _tables.add((address, table_name))
    return True


_tables: set[tuple[str, str]] = set()


@contextmanager
def connect_to_runs(storage: SqliteRunStorage) -> Iterator[Connection]:
    """Yield a connection to the list of runs, in a transaction."""
    with engine_of(storage._conn_string).begin() as connection:
        yield connection


def scripts_of(config: Config) -> alembic.script.ScriptDirectory:
    """Return the scripts that bring a kind of database up to date, read once."""
    place = config.get_main_option("script_location")
    if place not in _scripts:
        _scripts[place] = _read_scripts(config)
    return _scripts[place]


_scripts: dict[str | None, alembic.script.ScriptDirectory] = {}
_read_scripts = alembic.script.ScriptDirectory.from_config


@lru_cache(MOST_DATABASES)
def engine_of(address: str) -> Engine:
    """Return the engine of a database, which keeps one connection."""
    engine = create_engine(
        address,
        poolclass=QueuePool,
        pool_size=1,
        max_overflow=-1,
        connect_args={"timeout": SQLITE_BUSY_TIMEOUT_SECONDS, "check_same_thread": False},
    )
    event.listen(engine, "connect", relax)
    _engines.add(engine)
    return engine


def relax(connection: sqlite3.Connection, _record: Any) -> None:
    """Leave flushing to the write-ahead log; tables of a new run go there too, in 12 of 33 ms."""
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")


def close_connections() -> None:
    """Close the connections of this process; each is opened again when it is asked for."""
    for engine in list(_engines):
        engine.dispose()
    engine_of.cache_clear()


_engines: WeakSet[Engine] = WeakSet()
os.register_at_fork(before=close_connections)  # SQLite's do not survive a fork, even to be closed
