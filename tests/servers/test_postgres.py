"""Dagster's records in PostgreSQL: many writers at once, a queue, and a server that is killed."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from builders import Build, hashes, open_corpus, write_corpus
from command_line import LONGEST_SECONDS, ROOT, start, until
from many_runs import run_at_once
from postgres_server import PostgresServer

CORPUS = "pipeline_defs.commands.main"
LAUNCH = """mutation($wanted: ExecutionParams!) {
  launchPipelineExecution(executionParams: $wanted) { __typename ... on Error { message } }
}"""
WAITING = (dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.NOT_STARTED)
SUCCESS, FAILURE = dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE


@pytest.fixture(autouse=True)
def records(
    postgres: PostgresServer, dagster_home: Path, monkeypatch: pytest.MonkeyPatch
) -> PostgresServer:
    """The server that has the records, as deploy/dagster.yaml says."""
    shutil.copy(ROOT / "deploy/dagster.yaml", dagster_home)
    for name, value in postgres.environment().items():
        monkeypatch.setenv(name, value)
    return postgres


def test_twenty_runs_at_once_are_recorded_whole(tmp_path: Path) -> None:
    codes = run_at_once(tmp_path, 20)

    with dg.DagsterInstance.get() as instance:
        runs = instance.get_runs()
        written = [len(instance.get_records_for_run(run.run_id).records) for run in runs]
        kinds = (instance.run_storage, instance.event_log_storage, instance.schedule_storage)
        assert all(type(kind).__module__.startswith("dagster_postgres") for kind in kinds)
    assert codes == [0] * 20
    assert [run.status for run in runs] == [SUCCESS] * 20
    assert len(set(written)) == 1  # each ran the same steps over documents of its own


def test_a_killed_server_fails_the_run_and_the_same_command_finishes_it(
    tmp_path: Path, records: PostgresServer, build: Build
) -> None:
    config = write_corpus(tmp_path)
    run = start(config, CORPUS, "build", "--to", "filtered")
    until(lambda: list(tmp_path.glob("store/raw/*/_parts/*.json")), run)
    records.kill()
    failed = run.wait(LONGEST_SECONDS)
    log = (tmp_path / "out.log").read_text()
    records.start()
    finished = start(config, CORPUS, "build", "--to", "filtered").wait(LONGEST_SECONDS)

    assert failed == 1
    assert "Start the database again, then run the same command" in log.splitlines()[-1]
    assert finished == 0
    with dg.DagsterInstance.get() as instance:
        assert {each.status for each in instance.get_runs()} == {SUCCESS, FAILURE}
    assert re.search(r"raw, all 2: .* [1-9]\d* reused", (tmp_path / "out.log").read_text())
    undisturbed = open_corpus(config, tmp_path / "other")
    build(undisturbed, "raw", "filtered")
    assert files_of(tmp_path / "store") == files_of(tmp_path / "other")


def files_of(store: Path) -> dict[str, str]:
    """Hashes of what a store publishes."""
    return {name: value for name, value in hashes(store).items() if not name.startswith(".")}


def test_runs_on_one_store_wait_in_the_queue(tmp_path: Path) -> None:
    config = write_corpus(tmp_path, engine={"steps": "in_process"})
    with served(config) as address, dg.DagsterInstance.get() as instance:
        for _ in range(3):
            launch(address)

        def runs() -> list[dg.DagsterRun]:
            found = list(instance.get_runs())
            begun = [run for run in found if run.status not in WAITING and not run.is_finished]
            assert len(begun) <= 1
            return found

        until(lambda: [run.status for run in runs()].count(SUCCESS) == 3)
        starts = sorted(instance.get_run_records(), key=lambda each: each.start_time or 0)
    assert all(
        (after.start_time or 0) >= (before.end_time or 0)
        for before, after in itertools.pairwise(starts)
    )


@contextmanager
def served(config: Path) -> Iterator[str]:
    """The address of `corpus ui`."""
    process = start(config, CORPUS, "ui", "--port", "0", log="ui.log")
    log = config.parent / "ui.log"
    try:
        yield until(lambda: re.search(r"http://127\.0\.0\.1:\d+", log.read_text()), process)[0]
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def launch(address: str) -> None:
    """Ask for a run of the job with `raw` only, as a click in the UI does."""
    selector = {
        "repositoryName": "__repository__",
        "repositoryLocationName": "tokenmill",
        "pipelineName": "build_corpus",
        "assetSelection": [{"path": ["raw"]}],
    }
    wanted = {"selector": selector, "runConfigData": {}}
    body = json.dumps({"query": LAUNCH, "variables": {"wanted": wanted}}).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{address}/graphql", body, headers)
    try:
        with urllib.request.urlopen(request) as answer:
            got: Any = json.load(answer)
    except urllib.error.HTTPError as refused:
        raise AssertionError(refused.read()) from refused
    assert got["data"]["launchPipelineExecution"]["__typename"] == "LaunchRunSuccess", got
