"""Tests against real servers, which `make servers` runs."""

import itertools
import shutil

import dagster as dg
from command_line import ROOT
from postgres_server import PostgresServer, postgres_server
from prelude import Iterator, Path, os, pytest
from rados_gateway import Gateway

NUMBERS = itertools.count(1)


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


@pytest.fixture
def records(
    postgres: PostgresServer, dagster_home: Path, monkeypatch: pytest.MonkeyPatch
) -> PostgresServer:
    """The server that has Dagster's records, as deploy/dagster.yaml says."""
    shutil.copy(ROOT / "deploy/dagster.yaml", dagster_home)
    for name, value in postgres.environment().items():
        monkeypatch.setenv(name, value)
    dg.DagsterInstance.get().dispose()  # makes the tables, which processes must not do at once
    return postgres


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A Ceph RADOS gateway, which takes 13 s to start."""
    running = Gateway(tmp_path_factory.mktemp("ceph"))
    yield running
    running.stop()


@pytest.fixture
def bucket(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of an empty bucket of this test, for which the environment has the credentials."""
    name = f"bucket-{next(NUMBERS)}"
    gateway.make_bucket(name)
    for variable, value in gateway.environment().items():
        monkeypatch.setenv(variable, value)
    return f"s3://{name}"
