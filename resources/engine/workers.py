"""Worker processes that stay: a step takes those that an earlier step of its run has left.

A worker starts in 0.1 s of CPU, and Linux clears every page that it touches first: a build of 1 GB
with 26 workers, two for each pass, took 71 CPU seconds, and 65 with those that stay.

A worker is a fork of the run's server. The first step that finds none idle asks for it, and has it
for a pass, by a connection that stays. It ends with the server, after IDLE_SECONDS without work, or
when the run's process dies. It ends with its pass if the server is none of a run, as in tests.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.popen_forkserver import Popen
from multiprocessing.reduction import ForkingPickler, recv_handle, send_handle
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

from resources.engine.cost import reset_peak
from resources.engine.fork_server import end_with, is_served, server_has_forks, use_environment
from resources.engine.run_task import use_threads

IDLE_SECONDS = 10.0  # a longer pause is rare: it ends, and its memory is free
GREETING_SECONDS = END_SECONDS = 1.0

Worker = tuple[int, Connection]  # process id, and the connection to it
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class WorkerPool(ThreadPoolExecutor):
    """Worker processes for a pass, with a thread each that waits for them.

    A call must be picklable, as its result, and has the environment of this process. When a worker
    dies, all of the pool are killed, and calls that have not ended raise BrokenProcessPool.
    """

    def __init__(self, workers: int, polars_threads: int) -> None:
        super().__init__(workers)
        self._polars_threads = polars_threads
        self._all = [*take_workers(workers, polars_threads)]
        self._free: SimpleQueue[Worker] = SimpleQueue()
        for worker in self._all:
            self._free.put(worker)

    def submit(
        self,
        fn: Callable[Parameters, Result],
        /,
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> Future[Result]:
        """Call a function in a worker that is free."""
        return super().submit(self._ask, fn, args, kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Wait for the calls that run, and let the workers go."""
        super().shutdown(wait, cancel_futures=cancel_futures)
        for pid, line in self._all:
            with suppress(OSError):
                line.send(None)
            if is_served():
                _idle[self._polars_threads].append((pid, line))
            else:
                line.close()

    def kill(self) -> None:
        """Kill the workers with what they compute."""
        for pid, _ in self._all:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _ask(self, function: Callable[..., Result], args: Any, kwargs: Any) -> Result:
        pid, line = self._free.get()
        try:
            line.send((dict(os.environ), function, args, kwargs))
            result, error = line.recv()
        except (EOFError, OSError) as fault:
            self.kill()
            raise BrokenProcessPool(f"worker process {pid} died") from fault
        finally:
            self._free.put((pid, line))
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]


def take_workers(number: int, polars_threads: int) -> Iterator[Worker]:
    """Yield so many workers: first idle ones, then new ones."""
    while number and (worker := idle_worker(polars_threads)):
        yield worker
        number -= 1
    context = multiprocessing.get_context("forkserver")
    for _ in range(number):
        line, theirs = context.Pipe()
        started = Popen(context.Process(target=work, args=(theirs, polars_threads)))
        theirs.close()
        yield started.pid, line  # not joined at exit, as one that was started by `start` is


def idle_worker(polars_threads: int) -> Worker | None:
    """Return a worker that waits, and says so; those that have ended are forgotten."""
    with suppress(IndexError):
        while True:
            pid, line = _idle[polars_threads].pop()
            with suppress(OSError, EOFError):
                line.send(None)
                if line.poll(GREETING_SECONDS) and line.recv() == pid:
                    return pid, line
            line.close()
    return None


def end_workers() -> None:
    """End the idle workers of this process; wait until its server knows, as a rule.

    Only then are their CPU seconds among those of the run.
    """
    for workers in [*_idle.values()]:  # another thread, which is interrupted, may be taking some
        for _, line in [*workers]:
            line.close()
    _idle.clear()
    deadline = time.monotonic() + END_SECONDS
    while server_has_forks() and time.monotonic() < deadline:
        time.sleep(0.002)


def hand_over_workers(line: Connection) -> None:
    """Give the idle workers of this process to another one of the run, by a connection to it."""
    idle = [(threads, *worker) for threads, workers in _idle.items() for worker in workers]
    _idle.clear()
    line.send([(threads, pid) for threads, pid, _ in idle])
    for _, pid, theirs in idle:
        with theirs:
            send_handle(line, theirs.fileno(), pid)


def take_over_workers(line: Connection) -> None:
    """Take what `hand_over_workers` gives at the other end."""
    for threads, pid in line.recv():
        _idle[threads].append((pid, Connection(recv_handle(line))))


def work(line: Connection, polars_threads: int) -> None:
    """Answer the calls of one pass after another; end when none comes or the line is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all; the step ends its workers
    use_threads(polars_threads)
    is_computing = threading.Event()
    end_with(line.fileno(), is_computing)  # if it waits for a call, it ends by itself
    with line, suppress(EOFError, OSError):
        answer_calls(line, is_computing)
        while line.poll(IDLE_SECONDS):
            line.recv()  # the next pass asks whether this worker is there
            reset_peak()
            line.send(os.getpid())
            answer_calls(line, is_computing)


def answer_calls(line: Connection, is_computing: threading.Event) -> None:
    """Answer the calls of a pass."""
    while (call := line.recv()) is not None:
        environment, function, args, kwargs = call
        use_environment(environment)
        is_computing.set()
        try:
            answer = ForkingPickler.dumps((function(*args, **kwargs), None))
        except Exception as error:  # noqa: BLE001 - it is raised where the call was made
            answer = ForkingPickler.dumps((None, error))
        is_computing.clear()
        line.send_bytes(answer)


_idle: defaultdict[int, list[Worker]] = defaultdict(list)  # by their number of Polars threads
