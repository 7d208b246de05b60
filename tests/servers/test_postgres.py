"""Dagster's records in PostgreSQL: many writers at once, and a server that is killed."""

from __future__ import annotations

import shutil
from pathlib import Path

import dagster as dg
import pytest
from command_line import ROOT
from postgres_server import PostgresServer


@pytest.fixture
def records(
    postgres: PostgresServer, dagster_home: Path, monkeypatch: pytest.MonkeyPatch
) -> PostgresServer:
    """The server that has the records, as deploy/dagster.yaml says."""
    shutil.copy(ROOT / "deploy/dagster.yaml", dagster_home)
    for name, value in postgres.environment().items():
        monkeypatch.setenv(name, value)
    return postgres


def test_all_records_are_in_postgresql(records: PostgresServer) -> None:
    with dg.DagsterInstance.get() as instance:
        kinds = (instance.run_storage, instance.event_log_storage, instance.schedule_storage)
        assert all(type(kind).__module__.startswith("dagster_postgres") for kind in kinds)
        assert instance.get_runs() == []
