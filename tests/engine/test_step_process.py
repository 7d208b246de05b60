"""A step in a process of its own has what its run holds, and the run knows what it has used."""

import multiprocessing
import signal
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

import psutil
from prelude import Any, Callable, Iterator, Path, os, pytest, time

from corpus_loader.places.traffic import REQUESTS, SENT
from resources.engine.cost import USED
from resources.engine.fork_server import SERVER, fork_server
from resources.engine.step_process import TELL_SECONDS, steps_served
from resources.engine.workers import end_workers
from resources.runs.run_lock import close, try_take
from tests.engine.step_functions import be_a_run, name_worker, use_and_end, use_and_wait

LEASE = "_writers/one"


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[int]:
    """A run that has a lock, a server, and serves steps."""
    descriptor = try_take(tmp_path / "lock")
    assert descriptor is not None
    with fork_server(("tests.engine.step_functions",), {}), steps_served(descriptor, LEASE):
        yield descriptor
        end_workers()


def start(
    step: Callable[[Connection], None], method: str = "forkserver"
) -> tuple[BaseProcess, Any]:
    """Start a step; return its process and the first that it sends."""
    context: Any = multiprocessing.get_context(method)
    line, theirs = context.Pipe()
    process = context.Process(target=step, args=(theirs,))
    process.start()
    assert line.poll(60)
    return process, line.recv()


def test_a_step_has_the_lease_of_its_run_and_the_worker_of_the_step_before(lock: int) -> None:
    first, told = start(name_worker)
    first.join(60)
    second, told_then = start(name_worker)
    second.join(60)

    assert first.pid != second.pid and (first.exitcode, second.exitcode) == (0, 0)
    assert told == told_then and told[0] == LEASE
    assert psutil.Process(told[1]).ppid() == SERVER._forkserver_pid


def test_what_a_step_has_used_is_known_to_its_run(lock: int) -> None:
    before = USED.core_hours
    process, _ = start(use_and_end)
    process.join(60)

    assert USED.core_hours - before == pytest.approx(1.0)


def test_what_the_run_has_used_before_its_server_is_not_counted_twice(tmp_path: Path) -> None:
    USED.core_hours, before = USED.core_hours + 5.0, USED.core_hours
    with fork_server((), {}, as_fork=True), steps_served(None, ""):
        process, _ = start(use_and_end)
        process.join(60)

    assert USED.core_hours - before == pytest.approx(6.0)


def test_what_a_killed_step_has_used_is_known_to_its_run(lock: int) -> None:
    hours, sent = USED.core_hours, SENT["s3://bucket", REQUESTS]
    process, _ = start(use_and_wait)
    time.sleep(3 * TELL_SECONDS)
    process.kill()
    process.join(60)

    assert USED.core_hours - hours == pytest.approx(1.0)
    assert SENT["s3://bucket", REQUESTS] - sent == 1
    start(use_and_end)[0].join(60)  # and the run serves the next one
    assert USED.core_hours - hours == pytest.approx(2.0)


def test_a_lock_is_free_when_the_steps_of_its_run_have_ended(tmp_path: Path, lock: int) -> None:
    process, pid = start(use_and_wait)
    os.kill(pid, signal.SIGSTOP)

    close(lock)  # as the system does after a kill -9 of the run

    assert try_take(tmp_path / "lock") is None
    process.kill()
    process.join(60)
    assert try_take(tmp_path / "lock") is not None


def test_a_run_that_is_a_child_of_dagsters_server_is_no_step() -> None:
    process, lease = start(be_a_run, "spawn")
    process.join(60)

    assert (lease, process.exitcode) == ("", 0)
