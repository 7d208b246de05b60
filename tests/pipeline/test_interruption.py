"""A run that is stopped ends soon, as canceled; nothing of it stays, and the next one continues."""

import signal
import subprocess

import dagster as dg
import psutil
from builders import hashes, write_corpus
from prelude import Path, os, pytest, time

from tests.pipeline.slow_corpus import BUILD, JOB, start, wait_for, write_slow_corpus

pytestmark = pytest.mark.slow

LONGEST_SECONDS = 5


def stop(process: subprocess.Popen[bytes], signal_number: int) -> tuple[int, float]:
    """Send a signal to one process; return its exit code and the seconds that it took."""
    family = psutil.Process(process.pid).children(recursive=True)
    before = time.monotonic()
    os.kill(process.pid, signal_number)
    code = process.wait(60)
    seconds = time.monotonic() - before
    _, alive = psutil.wait_procs(family, timeout=10)
    assert not alive
    return code, seconds


def last_status() -> dg.DagsterRunStatus:
    with dg.DagsterInstance.get() as instance:
        return instance.get_runs(limit=1)[0].status


def temporaries(store: Path) -> list[Path]:
    return list(store.rglob(".tmp-*"))


@pytest.mark.parametrize(
    ("kind", "steps", "signal_number"),
    [
        ("in_process", "in_process", signal.SIGINT),
        ("processes", "in_process", signal.SIGTERM),
        ("in_process", "multiprocess", signal.SIGTERM),
        ("processes", "multiprocess", signal.SIGINT),
    ],
)
def test_a_signal_cancels_a_run_in_the_middle_of_a_part(
    tmp_path: Path, kind: str, steps: str, signal_number: int
) -> None:
    config = write_slow_corpus(tmp_path, kind, steps)
    process = start(config, JOB)
    wait_for(tmp_path / "reached", process)

    code, seconds = stop(process, signal_number)

    assert code != 0 and seconds < LONGEST_SECONDS, (code, seconds)
    assert last_status() == dg.DagsterRunStatus.CANCELED
    assert temporaries(tmp_path / "store") == []


def test_a_service_that_stops_while_kernels_are_compiled_prints_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signal comes to all processes of the build at once."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))
    config = write_corpus(tmp_path, engine={"workers": 2})
    process = start(config, [*BUILD, "--to", "filtered"])
    output, until = tmp_path / "output", time.monotonic() + 60
    while "Compiling kernels" not in output.read_text() and time.monotonic() < until:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGTERM)

    assert process.wait(30) != 0
    assert "Compiling kernels" in output.read_text()
    assert "Traceback" not in output.read_text() and "Stack Trace" not in output.read_text()


def test_a_stopped_build_does_not_mix_and_the_next_one_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = write_slow_corpus(tmp_path, "in_process")
    process = start(config, BUILD)
    wait_for(tmp_path / "reached", process)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "store/raw").rglob("*.parquet")}

    assert stop(process, signal.SIGINT)[0] != 0
    assert "mix_corpus" not in (tmp_path / "output").read_text()

    (tmp_path / "slow").unlink()
    assert start(config, BUILD).wait() == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before
    whole = write_slow_corpus(tmp_path / "whole", "in_process")
    (tmp_path / "whole/slow").unlink()
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "whole/.dagster"))
    assert start(whole, BUILD).wait() == 0
    assert hashes(tmp_path / "store") == hashes(tmp_path / "whole/store")
