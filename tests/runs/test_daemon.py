"""Dagster's daemon finds a lost run, mixes after a build of the command line, builds at night."""

import shutil
import signal

import dagster as dg
from builders import write_corpus
from command_line import KEEPS, LONGEST_SECONDS, ROOT, start, start_raw, told, until
from lock_holder import holder_process
from prelude import Path, os, pytest

from resources.dagster_home import STORE_TAG
from resources.runs.run_notes import read_notes

pytestmark = pytest.mark.slow

BUILD = ("dagster", "job", "execute", "-m", "pipeline_defs.definitions", "-j", "build_corpus")


@pytest.fixture
def config(tmp_path: Path, dagster_home: Path) -> Path:
    """A corpus that is built every minute, with the dagster.yaml that we ship."""
    shutil.copy(ROOT / ".dagster/dagster.yaml", dagster_home)
    nightly = {"enabled": True, "cron": "* * * * *"}
    return write_corpus(tmp_path, notify=KEEPS, schedule=nightly)


def kill_a_run(config: Path) -> None:
    """Start a run of the command line, and kill it while it waits."""
    store = config.parent / "store"
    with holder_process(store):
        run = start_raw(config)
        until(lambda: any(note.pid == run.pid for note in read_notes(store)), run)
        run.kill()
        run.wait()


def test_the_daemon_marks_mixes_and_builds(config: Path) -> None:
    assert start(config, *BUILD).wait(LONGEST_SECONDS) == 0
    kill_a_run(config)
    with dg.DagsterInstance.get() as instance:
        [lost] = instance.get_runs(dg.RunsFilter(job_name="__ASSET_JOB"))
    assert lost.status is dg.DagsterRunStatus.STARTED

    workspace = ("-w", str(ROOT / "workspace.yaml"))
    process = start(config, "dagster._daemon", "run", *workspace, log="daemon.log")
    try:
        with dg.DagsterInstance.get() as instance:

            def runs(**wanted: object) -> list[dg.DagsterRun]:
                return list(instance.get_runs(dg.RunsFilter(**wanted)))  # type: ignore[arg-type]

            success = [dg.DagsterRunStatus.SUCCESS]
            until(lambda: runs(run_ids=[lost.run_id], statuses=[dg.DagsterRunStatus.FAILURE]))
            until(lambda: runs(job_name="mix_corpus", statuses=success), process)
            nightly = {"dagster/schedule_name": "nightly", STORE_TAG: str(config.parent / "store")}
            until(lambda: runs(tags=nightly), process)
            mixes = runs(job_name="mix_corpus", tags={"dagster/sensor_name": "mix_after_build"})
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert mixes
    assert [message["run_id"] for message in told(config)] == [lost.run_id]
