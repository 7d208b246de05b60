"""One fork server serves a run and its workers, and ends with the run."""

import multiprocessing
import signal
import subprocess
from concurrent.futures import ProcessPoolExecutor

import psutil
from prelude import Path, os, pytest, sys, time

from resources.engine.fork_server import SERVER, fork_server, is_served
from resources.engine.workers import IDLE_SECONDS, end_workers
from tests.engine.engine_workers import compute_in_workers

ROOT = Path(__file__).resolve().parents[2]
PRELOAD = ("tests.engine.engine_workers",)


def test_workers_are_forks_of_the_server_and_end_with_it(tmp_path: Path) -> None:
    with fork_server(PRELOAD, {}):
        first = compute_in_workers(tmp_path)
        assert {parent for _, parent in first} == {SERVER._forkserver_pid}
        family = [psutil.Process(pid) for pid, _ in first]

        os.kill(SERVER._forkserver_pid, signal.SIGKILL)

        assert psutil.wait_procs(family, timeout=IDLE_SECONDS / 2)[1] == []
        assert {parent for _, parent in compute_in_workers(tmp_path)} == {SERVER._forkserver_pid}
        end_workers()


def test_a_server_is_held_once_and_ends_with_its_holder() -> None:
    with fork_server(PRELOAD, {"TOKENMILL_TEST": "1"}):
        fork = multiprocessing.get_context("forkserver").Process(target=os.getpid)
        fork.start()
        fork.join()
        first = SERVER._forkserver_pid
        with fork_server((), {}):
            assert SERVER._forkserver_pid == first
        assert is_served() and first is not None
        assert psutil.Process(first).environ()["TOKENMILL_TEST"] == "1"

    assert not is_served() and "TOKENMILL_TEST" not in os.environ
    assert not psutil.pid_exists(first)


def test_a_server_can_be_a_fork_of_its_holder(tmp_path: Path) -> None:
    with fork_server(PRELOAD, {}, as_fork=True):
        server = SERVER._forkserver_pid
        assert {parent for _, parent in compute_in_workers(tmp_path)} == {server}
        assert psutil.Process().pid == psutil.Process(server).ppid()
        end_workers()
    with fork_server((), {}, as_fork=True):
        unasked = SERVER._forkserver_pid

    assert not psutil.pid_exists(server) and not psutil.pid_exists(unasked)


@pytest.mark.parametrize("as_fork", [True, False])
def test_a_server_imports_when_it_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_fork: bool
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))  # of a new process
    imported = tmp_path / "imported"
    (tmp_path / "marks_import.py").write_text(f"open({str(imported)!r}, 'w').close()")
    context = multiprocessing.get_context("forkserver")
    with fork_server(("marks_import",), {}, as_fork=as_fork):
        time.sleep(0.2)
        assert not imported.exists()
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            assert pool.submit(os.getppid).result() == SERVER._forkserver_pid

    assert imported.exists()


THREADS = """
import threading, polars
from resources.engine.fork_server import can_be_forked
end = threading.Event()
thread = threading.Thread(target=end.wait)
for step in (int, thread.start, lambda: (end.set(), thread.join())):
    step()
    print(can_be_forked())
polars.LazyFrame({"a": [1, 2]}).group_by("a").len().collect()
print(can_be_forked())
"""


def test_a_process_with_threads_is_not_forked() -> None:
    printed = subprocess.run([sys.executable, "-c", THREADS], cwd=ROOT, capture_output=True)

    assert printed.stdout.split() == [b"True", b"False", b"True", b"False"]


def test_nothing_survives_a_kill_of_the_runs_process(tmp_path: Path) -> None:
    module = "tests.engine.engine_workers"
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
    run = subprocess.Popen([sys.executable, "-m", module, tmp_path], cwd=ROOT, env=environment)
    while len(list(tmp_path.glob("*.pid"))) < 2:
        assert run.poll() is None
        time.sleep(0.02)
    family = psutil.Process(run.pid).children(recursive=True)

    run.send_signal(signal.SIGKILL)

    run.wait()
    assert {int(path.stem) for path in tmp_path.glob("*.pid")} <= {each.pid for each in family}
    assert psutil.wait_procs(family, timeout=20)[1] == []
