"""One fork server serves a run, its steps and their workers, and ends with the run."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import psutil
import pytest

from resources.engine.fork_server import (
    fork_server,
    is_served,
    server_of_process,
)
from tests.engine.engine_workers import compute_in_workers, run_for_ever

ROOT = Path(__file__).resolve().parents[2]
PRELOAD = ("tests.engine.engine_workers",)


@pytest.fixture
def step() -> Iterator[ProcessPoolExecutor]:
    """Runs functions as steps: in one process that is a fork of the run's server."""
    with fork_server(PRELOAD, {}):
        context = multiprocessing.get_context("forkserver")
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            yield pool


def test_a_step_and_its_workers_are_forks_of_one_server(
    step: ProcessPoolExecutor, tmp_path: Path
) -> None:
    parent, workers = step.submit(compute_in_workers, tmp_path).result()

    assert parent == server_of_process()._forkserver_pid
    assert {worker_parent for _, worker_parent in workers} == {parent}


def test_a_step_ends_with_its_server_and_the_next_one_has_another(tmp_path: Path) -> None:
    context = multiprocessing.get_context("forkserver")
    with fork_server(PRELOAD, {}):
        lost = context.Process(target=run_for_ever, args=(tmp_path,))
        lost.start()
        while len(pids := [int(path.stem) for path in tmp_path.glob("*.pid")]) < 3:
            time.sleep(0.02)
        family = [psutil.Process(pid) for pid in pids]

        os.kill(server_of_process()._forkserver_pid or 0, signal.SIGKILL)

        assert psutil.wait_procs(family, timeout=20)[1] == []
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            parent, _ = pool.submit(compute_in_workers, tmp_path).result()
        assert parent == server_of_process()._forkserver_pid


def test_a_server_is_held_once_and_ends_with_its_holder() -> None:
    with fork_server(PRELOAD, {"TOKENMILL_TEST": "1"}):
        fork = multiprocessing.get_context("forkserver").Process(target=os.getpid)
        fork.start()
        fork.join()
        first = server_of_process()._forkserver_pid
        with fork_server((), {}):
            assert server_of_process()._forkserver_pid == first
        assert is_served() and first is not None
        assert psutil.Process(first).environ()["TOKENMILL_TEST"] == "1"

    assert not is_served() and "TOKENMILL_TEST" not in os.environ
    assert not psutil.pid_exists(first)


def test_a_server_can_be_a_fork_of_its_holder(tmp_path: Path) -> None:
    context = multiprocessing.get_context("forkserver")
    with (
        fork_server(PRELOAD, {}, as_fork=True),
        ProcessPoolExecutor(1, mp_context=context) as pool,
    ):
        server = server_of_process()._forkserver_pid
        parent, workers = pool.submit(compute_in_workers, tmp_path).result()

    assert psutil.Process().pid != server == parent
    assert {worker_parent for _, worker_parent in workers} == {parent}
    assert not psutil.pid_exists(parent)


def test_a_server_imports_when_it_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    imported = tmp_path / "imported"
    (tmp_path / "marks_import.py").write_text(f"open({str(imported)!r}, 'w').close()")
    context = multiprocessing.get_context("forkserver")
    with fork_server(("marks_import",), {}, as_fork=True):
        time.sleep(0.2)
        assert not imported.exists()
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            assert pool.submit(os.getppid).result() == server_of_process()._forkserver_pid

    assert imported.exists()


def test_a_server_that_is_never_asked_ends_with_its_holder() -> None:
    with fork_server((), {}, as_fork=True):
        unasked = server_of_process()._forkserver_pid or 0

    assert not psutil.pid_exists(unasked)


def test_a_process_with_threads_is_not_forked() -> None:
    script = (
        "import threading, polars\n"
        "from resources.engine.fork_server import can_be_forked\n"
        "print(can_be_forked())\n"
        "end = threading.Event()\n"
        "thread = threading.Thread(target=end.wait)\n"
        "thread.start()\n"
        "print(can_be_forked())\n"
        "end.set()\n"
        "thread.join()\n"
        "print(can_be_forked())\n"
        "polars.LazyFrame({'a': [1, 2]}).group_by('a').len().collect()\n"
        "print(can_be_forked())\n"
    )
    printed = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True)

    assert printed.stdout.split() == [b"True", b"False", b"True", b"False"]


def test_nothing_survives_a_kill_of_the_runs_process(tmp_path: Path) -> None:
    module = "tests.engine.engine_workers"
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
    run = subprocess.Popen([sys.executable, "-m", module, tmp_path], cwd=ROOT, env=environment)
    while len(list(tmp_path.glob("*.pid"))) < 3:
        assert run.poll() is None
        time.sleep(0.02)
    family = psutil.Process(run.pid).children(recursive=True)

    run.send_signal(signal.SIGKILL)

    run.wait()
    assert {int(path.stem) for path in tmp_path.glob("*.pid")} <= {each.pid for each in family}
    assert psutil.wait_procs(family, timeout=20)[1] == []
