"""Tests against real servers, which `make servers` runs."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from postgres_server import PostgresServer, postgres_server


@pytest.fixture(autouse=True, scope="session")
def asked_for() -> None:
    """Skip where the servers were not asked for; with the variable a missing one fails."""
    if os.environ.get("TOKENMILL_SERVERS") != "1":
        pytest.skip("needs real servers: make servers")


@pytest.fixture
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server of this test, with an empty database."""
    with postgres_server() as server:
        yield server
