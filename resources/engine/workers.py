"""Worker processes that stay: a step takes those that an earlier step of its run has left.

A worker starts in 0.1 s of CPU, and Linux clears every page that it touches first: a build of 1 GB
with 26 workers, two for each pass, took 71 CPU seconds, and 65 with those that stay.

A worker is a fork of the run's server. The first step that finds none idle asks for it, and has it
for a pass, by a connection of its own. Idle, it listens at a socket beside the server's, which is
gone while it is taken; whoever connects has it. It ends with the server, after IDLE_SECONDS without
work, or when the process that has it dies while it computes. It ends with its pass if the server is
none of a run, as in tests.
"""

from __future__ import annotations

import multiprocessing
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing.connection import Client, Connection, Listener
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

from resources.engine.cost import reset_peak
from resources.engine.fork_server import (
    WATCH_SECONDS,
    leave_server,
    server_address,
    server_has_forks,
    use_environment,
)
from resources.engine.run_task import use_threads

IDLE_SECONDS = 10.0  # a longer pause is rare: it ends, and its memory is free
GREETING_SECONDS = END_SECONDS = 1.0
WORKER = "worker"  # the process's name

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class WorkerPool(ThreadPoolExecutor):
    """Worker processes for a pass, with a thread each that waits for them.

    A call must be picklable, as its result, and has the environment of this process. When a worker
    dies, all of the pool are killed, and calls that have not ended raise BrokenProcessPool.
    """

    def __init__(self, workers: int, polars_threads: int) -> None:
        super().__init__(workers)
        self._all = [*take_workers(workers, polars_threads)]
        self._free: SimpleQueue[tuple[int, Connection]] = SimpleQueue()
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
        for _, line in self._all:
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


def take_workers(number: int, polars_threads: int) -> Iterator[tuple[int, Connection]]:
    """Yield process id and connection of so many workers: first idle ones, then new ones."""
    address = server_address()
    for worker in idle_workers(address, polars_threads):
        yield worker
        number -= 1
        if number == 0:
            return
    context = multiprocessing.get_context("forkserver")
    for _ in range(number):
        line, theirs = context.Pipe()
        process = context.Process(target=work, name=WORKER, args=(theirs, polars_threads, address))
        started = process._Popen(process)  # not joined at exit
        theirs.close()
        yield started.pid, line


def idle_workers(
    address: str | None, polars_threads: int | str
) -> Iterator[tuple[int, Connection]]:
    """Yield the workers of a server that wait; each is this process's from then on."""
    if address is None:
        return
    path = Path(address)
    for socket in sorted(path.parent.glob(f"{path.name}-{polars_threads}-*")):
        with suppress(OSError, EOFError):  # another step was faster, or it has just ended
            line = Client(str(socket), "AF_UNIX")
            if line.poll(GREETING_SECONDS):
                yield line.recv(), line


def end_workers() -> None:
    """End the workers of the server that this process holds; wait until it knows, as a rule.

    Only then are their CPU seconds among those of the run. No step may use them any more.
    """
    deadline = time.monotonic() + END_SECONDS
    while server_has_forks() and time.monotonic() < deadline:
        for _, line in idle_workers(server_address(), "*"):
            with line, suppress(OSError):
                line.send(None)
        time.sleep(0.002)


def work(line: Connection, polars_threads: int, address: str | None) -> None:
    """Serve calls as a worker, one connection after another."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all; the step ends its workers
    use_threads(polars_threads)
    leave_server()
    watcher = Watcher(line)
    while True:
        answer_calls(line, watcher)
        if address is None:
            return
        try:
            line = wait_for_step(f"{address}-{polars_threads}-{os.getpid()}")
        except OSError:  # no step takes it, or the run has ended and its folder is removed
            return
        reset_peak()
        watcher.line = line


def wait_for_step(path: str) -> Connection:
    """Return the connection of the next process that takes this worker, or raise TimeoutError."""
    with Listener(path, "AF_UNIX") as listener:
        listener._listener._socket.settimeout(IDLE_SECONDS)  # type: ignore[attr-defined]
        line = listener.accept()
    with suppress(OSError):
        line.send(os.getpid())
    return line


def answer_calls(line: Connection, watcher: Watcher) -> None:
    """Answer calls until the connection is closed."""
    with line, suppress(EOFError, OSError):
        while True:
            call = line.recv()
            if call is None:
                raise SystemExit
            environment, function, args, kwargs = call
            use_environment(environment)
            watcher.is_computing = True
            try:
                answer = ForkingPickler.dumps((function(*args, **kwargs), None))
            except Exception as error:  # noqa: BLE001 - it is raised where the call was made
                answer = ForkingPickler.dumps((None, error))
            watcher.is_computing = False
            line.send_bytes(answer)


class Watcher:
    """Ends this process with its server, or while it computes with the process that has it."""

    def __init__(self, line: Connection) -> None:
        self.line = line
        self.is_computing = False
        self.server = os.getppid()
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self) -> None:
        """Look after WATCH_SECONDS, and at once when the connection is closed."""
        while os.getppid() == self.server:
            if is_hung_up(self.line):
                if self.is_computing:
                    break
                time.sleep(WATCH_SECONDS)
        os._exit(1)


def is_hung_up(line: Connection) -> bool:
    """Return whether the other end is closed, which is waited for WATCH_SECONDS at most."""
    hang_up = select.poll()
    try:
        hang_up.register(line, select.POLLRDHUP)
    except OSError:  # this end is closed
        return True
    return bool(hang_up.poll(WATCH_SECONDS * 1000))
