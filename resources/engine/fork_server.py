"""One fork server for a run, that of multiprocessing: the workers of its steps are forks of it.

The server ends when the last process that knows it has ended, after kill -9 too: each holds the
write end of a pipe. A server that was killed is started again for the next fork.

A process that has imported all that the server needs, and has neither threads nor open files yet,
makes the server of itself (`as_fork`): it serves at once, where importing takes 2 s.
"""

from __future__ import annotations

import multiprocessing
import os
import select
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing import connection, forkserver, resource_tracker
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, NoReturn

SERVER: Any = forkserver._forkserver  # whose attributes are private
END_SECONDS = 1.0  # of a server that has nothing to do
WATCH_SECONDS = 0.5
RUN_VARIABLE = "TOKENMILL_RUN"  # the socket at which a run serves its steps
THREADS_OF_IMPORTS = ("jemalloc_bg_thd", "polars-ooc-clea")  # Polars imported, nothing computed


@contextmanager
def fork_server(
    preload: Sequence[str],
    environment: Mapping[str, str],
    *,
    as_fork: bool = False,
) -> Iterator[None]:
    """Hold a server that imports `preload` under an environment; a server held already is kept.

    It imports nothing before it is asked for the first process. `as_fork`: it is a fork of this
    process, and not a new one.
    """
    if is_served():
        yield
        return
    stop_server()  # the plain one that an earlier `map_parts` of this process started
    forkserver.set_forkserver_preload(list(preload))
    environment = {RUN_VARIABLE: connection.arbitrary_address("AF_UNIX"), **environment}  # type: ignore[attr-defined]
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        if as_fork:
            start_as_fork(preload)
        _held.append(SERVER)
        yield
    finally:
        _held.clear()
        stop_server()
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)


def start_as_fork(preload: Sequence[str]) -> None:
    """Make the server of this process, which has imported all that it needs."""
    resource_tracker.ensure_running()
    sys.stdout.flush()
    sys.stderr.flush()
    with socket.socket(socket.AF_UNIX) as listener:
        address = connection.arbitrary_address("AF_UNIX")  # type: ignore[attr-defined]
        listener.bind(address)
        os.chmod(address, 0o600)
        listener.listen()
        alive_r, alive_w = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(alive_w)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the handler is the run's own
            serve(os.dup(listener.fileno()), alive_r, preload)
    os.close(alive_r)
    SERVER._forkserver_address = address
    SERVER._forkserver_alive_fd = alive_w
    SERVER._forkserver_pid = pid


def serve(listener: int, alive: int, preload: Sequence[str]) -> NoReturn:
    """Serve from the first demand on, in a process that was just forked, to the last one's end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all
    try:
        if listener not in wait([listener, alive]):
            os._exit(0)  # all that could ask have ended
        forkserver.main(listener, alive, list(preload))
    except SystemExit:
        os._exit(0)
    except BaseException:  # noqa: BLE001 - the frames above are those of another process
        traceback.print_exc()
    os._exit(1)


def share_server() -> None:
    """Ask the server that this process is a fork of for workers, in place of another one."""
    SERVER.ensure_running = resource_tracker.ensure_running
    _held.append(SERVER)


def stop_server() -> None:
    """End the server and wait for it, if this process has started one.

    One that takes longer is killed: it may be compiling what no one waits for any more.
    """
    if SERVER._forkserver_pid is None:
        return
    killing = threading.Timer(END_SECONDS, os.kill, (SERVER._forkserver_pid, signal.SIGKILL))
    killing.daemon = True
    killing.start()
    try:
        SERVER._stop()
    finally:
        killing.cancel()


def can_be_forked() -> bool:
    """Return whether this process has no threads that a fork would lack: of Python, or of Polars.

    Those of numpy, which it makes again after a fork, have the process's own name.
    """
    try:
        own = Path("/proc/self/comm").read_text().strip()
        names = {name_of_thread(task) for task in Path("/proc/self/task").iterdir()}
    except OSError:
        return False
    return threading.active_count() == 1 and names <= {own, None, *THREADS_OF_IMPORTS}


def name_of_thread(task: Path) -> str | None:
    """Return the name of a thread of this process; None if it has ended since it was listed."""
    try:
        return (task / "comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return None


def use_environment(environment: Mapping[str, str]) -> None:
    """Take the environment of the process that asks; a server keeps that of its own start."""
    os.environ.update(environment)
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]


def is_served() -> bool:
    """Return whether this process holds a server."""
    return bool(_held)


def server_has_forks() -> bool:
    """Return whether forks of the server that this process holds are there, if Linux tells."""
    pid = SERVER._forkserver_pid
    try:
        return bool(Path(f"/proc/{pid}/task/{pid}/children").read_text())
    except OSError:
        return False


def end_with_parent() -> None:
    """End this process with the one that asked for it, and with the one that it is a fork of."""
    if asked_by := multiprocessing.parent_process():
        end_with(asked_by.sentinel)


def end_with(line: int, is_due: threading.Event | None = None) -> None:
    """End this process with its parent, and when the other end of a line is closed, if `is_due`.

    Otherwise it would go on, or wait for work, for ever after a kill -9 of who has that end. After
    one of the server, its parent, the first takes it for dead, and starts another in its place.
    """
    parent, hang_up = os.getppid(), select.poll()
    hang_up.register(line, select.POLLRDHUP)

    def watch() -> None:
        while os.getppid() == parent:
            if hang_up.poll(WATCH_SECONDS * 1000) and (not is_due or is_due.wait(WATCH_SECONDS)):
                break
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


_held: list[object] = []
