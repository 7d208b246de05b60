"""With a process for each step, a killed one is tried again, and none outlives its run."""

import dagster as dg
import psutil
from builders import hashes, write_corpus
from prelude import Path, pytest

from resources.runs.run_lock import LOCK_NAME, try_take
from tests.pipeline.slow_corpus import BUILD, JOB, start, wait_for, write_slow_corpus

pytestmark = pytest.mark.slow

# A rule whose process the system kills when it is first called on many texts.
RULES = """
import os
import signal
from pathlib import Path
import polars as pl
from assets.filtered.rules.custom import CustomRule

HERE = Path(__file__).parent

def killed_once(texts):
    if len(texts) > 5 and not (HERE / "killed").exists():
        (HERE / "killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return texts.str.len_chars()

RULES = [CustomRule("killed", pl.col("text").map_batches(killed_once, pl.UInt32), minimum=1)]
"""
TO_FILTERED = [*BUILD, "--to", "filtered"]
FILTERS = {"rules": {"length": {"min_chars": 20}}, "custom": "rules.py"}


def write_killed_corpus(folder: Path, steps: str) -> Path:
    """A corpus of which a step is killed once if `killed` is not there."""
    config = write_corpus(
        folder, engine={"kind": "in_process", "steps": steps, "workers": 2}, filters=FILTERS
    )
    (folder / "rules.py").write_text(RULES)
    return config


def last_run() -> tuple[dg.DagsterRun, list[dg.DagsterEventType]]:
    """The newest run, and the types of its events."""
    with dg.DagsterInstance.get() as instance:
        [run] = instance.get_runs(limit=1)
        logged = instance.all_logs(run.run_id)
        return run, [entry.dagster_event_type for entry in logged if entry.is_dagster_event]


def used(run: dg.DagsterRun) -> tuple[str, str]:
    """The bytes that a run has read and written, by its tags."""
    return run.tags["tokenmill/read_bytes"], run.tags["tokenmill/written_bytes"]


@pytest.mark.parametrize("command", [JOB, TO_FILTERED], ids=["dagster", "corpus"])
def test_a_step_that_is_killed_is_tried_again_and_the_run_goes_on(
    tmp_path: Path, command: list[str]
) -> None:
    config = write_killed_corpus(tmp_path, "multiprocess")

    assert start(config, command).wait() == 0, (tmp_path / "output").read_text()[-3000:]

    run, events = last_run()
    assert (tmp_path / "killed").exists() and run.status is dg.DagsterRunStatus.SUCCESS
    assert events.count(dg.DagsterEventType.STEP_UP_FOR_RETRY) == 1


def test_a_run_with_a_killed_step_gives_the_bytes_and_tags_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = write_killed_corpus(tmp_path / "killed", "multiprocess")
    assert start(killed, TO_FILTERED).wait() == 0
    used_by_killed = used(last_run()[0])
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "whole/.dagster"))
    whole = write_killed_corpus(tmp_path / "whole", "in_process")
    (tmp_path / "whole/killed").touch()
    assert start(whole, TO_FILTERED).wait() == 0

    assert hashes(tmp_path / "killed/store") == hashes(tmp_path / "whole/store")
    assert used_by_killed == used(last_run()[0])


def step_of(run: psutil.Process) -> psutil.Process:
    """The process of the step that a run is in, which has no workers."""
    [step] = [each for server in run.children() for each in server.children()]
    return step


def test_no_step_outlives_its_run_nor_works_without_its_lock(tmp_path: Path) -> None:
    config = write_slow_corpus(tmp_path, "in_process", steps="multiprocess")
    process = start(config, JOB)
    wait_for(tmp_path / "reached", process)
    step = step_of(psutil.Process(process.pid))
    step.suspend()  # it can do nothing about it, whatever it is
    manifests = [*(tmp_path / "store").rglob("_manifests/*.json")]

    process.kill()
    process.wait()

    lock = tmp_path / "store" / LOCK_NAME
    assert try_take(lock) is None
    step.resume()
    assert psutil.wait_procs([step], timeout=10)[1] == []
    assert try_take(lock) is not None
    assert [*(tmp_path / "store").rglob("_manifests/*.json")] == manifests != []
