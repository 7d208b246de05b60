"""Runs of the command line: one waits for another, is interrupted, is killed, fails."""

import signal
import subprocess

import dagster as dg
from builders import open_corpus, sentence, write_corpus, write_jsonl
from command_line import KEEPS, LONGEST_SECONDS, start, start_raw, told, until
from lock_holder import holder_process
from prelude import Any, Iterator, Path, json, pytest, time

from resources.runs.run_notes import read_notes

pytestmark = pytest.mark.slow


@pytest.fixture
def config(tmp_path: Path, dagster_home: Path) -> Path:
    """A corpus whose hook keeps what it gets, at the DAGSTER_HOME of the test."""
    return write_corpus(tmp_path, notify=KEEPS)


@pytest.fixture
def waiting(config: Path) -> Iterator[subprocess.Popen[str]]:
    """A run that waits for the process in `holder`."""
    store = open_corpus(config).store.root
    with holder_process(store) as holder:
        run = start_raw(config)
        until(lambda: any(note.waits_for for note in read_notes(store)), run)
        run.holder = holder  # type: ignore[attr-defined]
        yield run
        run.kill()
        run.wait()


def only_run(config: Path) -> dg.DagsterRun:
    with dg.DagsterInstance.get() as instance:
        [run] = instance.get_runs()
        return run


def test_a_run_waits_in_its_log_and_terminal_until_the_other_is_gone(
    config: Path, waiting: Any
) -> None:
    status = start(config, "pipeline_defs.commands.main", "status", log="status.log")
    assert status.wait(LONGEST_SECONDS) == 0
    out = (config.parent / "status.log").read_text()
    assert f"process {waiting.pid} on " in out and "Waiting for run 01234567" in out
    assert only_run(config).status is dg.DagsterRunStatus.STARTED  # it lives: it is not marked
    assert not (config.parent / "store/raw").exists()
    waiting.holder.kill()
    assert waiting.wait(LONGEST_SECONDS) == 0
    line = f"Waiting for run 01234567 of build_corpus (process {waiting.holder.pid} on "
    assert line in (config.parent / "out.log").read_text()
    with dg.DagsterInstance.get() as instance:
        logged = [entry.user_message for entry in instance.all_logs(only_run(config).run_id)]
    assert any(line in message for message in logged)
    [note] = read_notes(config.parent / "store")
    assert (note.state, note.partitions, note.steps) == ("success", ("prose",), ("raw",))
    assert told(config) == []


def test_an_interrupt_ends_the_wait(config: Path, waiting: Any) -> None:
    start_seconds = time.monotonic()
    waiting.send_signal(signal.SIGINT)
    assert waiting.wait(LONGEST_SECONDS) != 0
    assert time.monotonic() - start_seconds < 20  # 2 s where there is nothing else to do
    assert only_run(config).is_finished
    assert not (config.parent / "store/raw").exists()
    [note] = read_notes(config.parent / "store")
    assert note.state == "canceled"
    assert [message["run_id"] for message in told(config)] == [note.run_id]


def test_a_killed_run_is_marked_by_the_next_command_and_told_once(
    config: Path, waiting: Any
) -> None:
    waiting.kill()
    waiting.wait()
    waiting.holder.kill()
    assert only_run(config).status is dg.DagsterRunStatus.STARTED

    for _ in range(2):
        status = start(config, "pipeline_defs.commands.main", "status")
        assert status.wait(LONGEST_SECONDS) == 0
    assert "lost" in (config.parent / "out.log").read_text()

    run = only_run(config)
    assert run.status is dg.DagsterRunStatus.FAILURE
    with dg.DagsterInstance.get() as instance:
        logged = [entry.message for entry in instance.all_logs(run.run_id)]
    assert any(f"process {waiting.pid} on " in line and "is gone" in line for line in logged)
    [message] = told(config)
    assert message["run_id"] == run.run_id and f"process {waiting.pid}" in message["error"]


def test_a_failed_run_is_told_with_its_step_and_error(config: Path) -> None:
    for path in (config.parent / "input/prose").iterdir():
        path.unlink()

    assert start_raw(config).wait(LONGEST_SECONDS) == 1

    [message] = told(config)
    assert message["status"] == "FAILURE" and message["job"] == "__ASSET_JOB"
    [fault] = message["failed"]
    assert fault["step"] == "raw" and "prose" in fault["error"]
    assert "\n" not in fault["error"]
    status = start(config, "pipeline_defs.commands.main", "status", "--json")
    assert status.wait(LONGEST_SECONDS) == 1
    found = json.loads((config.parent / "out.log").read_text())
    assert found["sources"]["prose"]["raw"]["state"] == "failed"
    assert found["sources"]["prose"]["raw"]["reason"].startswith(fault["error"])
    assert found["ended"][0]["error"] == fault["error"]


def test_a_failed_source_is_told_and_shown_alone(config: Path) -> None:
    for path in (config.parent / "input/prose").iterdir():
        path.unlink()

    assert start_raw(config, "--partition-range", "prose...notes").wait(LONGEST_SECONDS) == 1

    [message] = told(config)
    assert list(message["failed_sources"]) == ["prose"]
    reason = message["failed_sources"]["prose"].removeprefix("raw: ")
    assert "input/prose" in reason
    status = start(config, "pipeline_defs.commands.main", "status", "--json", log="status.log")
    assert status.wait(LONGEST_SECONDS) == 1
    sources = json.loads((config.parent / "status.log").read_text())["sources"]
    assert (sources["prose"]["raw"]["state"], sources["prose"]["raw"]["reason"]) == (
        "failed",
        reason,
    )
    assert (sources["notes"]["raw"]["state"], sources["notes"]["raw"]["rows"]) == ("ok", 41)


def test_a_drift_is_logged_told_and_shown(config: Path) -> None:
    documents = [{"text": sentence(i), "url": f"http://example.org/{i}"} for i in range(40)]
    for path in (config.parent / "input/prose").iterdir():
        path.unlink()
    write_jsonl(config.parent / "input/prose/a.jsonl", documents)
    assert start_raw(config).wait(LONGEST_SECONDS) == 0
    lost = [{"text": each["text"]} for each in documents]
    write_jsonl(config.parent / "input/prose/a.jsonl", lost)

    assert start_raw(config).wait(LONGEST_SECONDS) == 0

    drift = "raw, prose: has url: 0.0% of the documents, 100.0% before"
    assert f"drift of {drift}" in (config.parent / "out.log").read_text()
    [message] = told(config)
    assert message["status"] == "SUCCESS" and message["error"] == ""
    assert message["drifts"][0].startswith(drift)
    status = start(config, "pipeline_defs.commands.main", "status", log="status.log")
    assert status.wait(LONGEST_SECONDS) == 0
    assert drift in (config.parent / "status.log").read_text()
