"""Dagster's records in PostgreSQL: many writers at once, and a server that is killed."""

from __future__ import annotations

import re
from pathlib import Path

import dagster as dg
from builders import Build, hashes, open_corpus, write_corpus
from command_line import LONGEST_SECONDS, start, until
from many_runs import run_at_once
from postgres_server import PostgresServer

CORPUS = "pipeline_defs.commands.main"
SUCCESS, FAILURE = dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE


def test_twenty_runs_at_once_are_recorded_whole(tmp_path: Path, records: PostgresServer) -> None:
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
