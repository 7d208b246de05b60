"""A step in a process of its own: what it has of its run, and what the run has of it.

The step is a fork of the run's server, and shares no memory with the run. At a socket the run gives
it the lock of the store, the lease of its object store and the idle workers; the step tells every
second what it has used, and gives its workers back. A lock is free when the last process that has
it has ended: after a kill -9 of the run no other one begins before the step, which ends too.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Client, Connection, Listener
from multiprocessing.reduction import recv_handle, send_handle

import msgspec

from corpus_loader.places.traffic import SENT, Traffic, count
from resources.engine.cost import USED, Usage, add_usage
from resources.engine.fork_server import (
    RUN_VARIABLE,
    end_with_parent,
    is_served,
    share_server,
)
from resources.engine.workers import hand_over_workers, take_over_workers

TELL_SECONDS = END_SECONDS = 1.0


@contextmanager
def steps_served(lock: int | None, lease: str) -> Iterator[None]:
    """Serve the steps of a run, one after the other; `lock` is a descriptor, `lease` a key."""
    address = os.environ[RUN_VARIABLE]
    with Listener(address, "AF_UNIX") as listener:
        ended = threading.Event()
        thread = threading.Thread(target=serve, args=(listener, ended, lock, lease), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            with suppress(OSError):
                Client(address, "AF_UNIX").close()
            thread.join(END_SECONDS)  # a step that goes on after an error keeps it


def serve(listener: Listener, ended: threading.Event, lock: int | None, lease: str) -> None:
    """Serve steps until `ended` is set and one more connects."""
    while True:
        with listener.accept() as line, suppress(EOFError, OSError):
            if ended.is_set():
                return
            line.send((lock is not None, lease))
            if lock is not None:
                send_handle(line, lock, 0)
            hand_over_workers(line)
            add_what_is_used(line)


def add_what_is_used(line: Connection) -> None:
    """Add what a step uses to what the run has used, until it ends."""
    told, traffic = Usage(), Traffic()
    while message := line.recv():
        used, sent = message
        add_usage(used, told)
        for (url, kind), number in (sent - traffic).items():
            count(url, kind, number)
        told, traffic = used, sent
    take_over_workers(line)
    line.send(None)


@contextmanager
def in_step() -> Iterator[str]:
    """Be a step of a run, if this process is one; yield the key of the run's lease, if it has."""
    # A run's own process holds the server, and Dagster's server for code starts it as a child, too.
    if is_served() or multiprocessing.parent_process() is None or RUN_VARIABLE not in os.environ:
        yield ""
        return
    end_with_parent()
    share_server()
    SENT.clear()
    add_usage(Usage(), msgspec.structs.replace(USED))  # what the process had used that forked it
    try:
        line = Client(os.environ[RUN_VARIABLE], "AF_UNIX")
        has_lock, lease = line.recv()
        if has_lock:
            recv_handle(line)  # held to the end of this process
        take_over_workers(line)
    except (EOFError, OSError):
        os._exit(1)  # the run has ended
    ended = threading.Event()
    thread = threading.Thread(target=tell, args=(line, ended), daemon=True)
    thread.start()
    try:
        yield lease
    finally:
        ended.set()
        thread.join()
        line.send(None)
        hand_over_workers(line)
        line.recv()


def tell(line: Connection, ended: threading.Event) -> None:
    """Tell the run what this step has used, every TELL_SECONDS and at its end."""
    while True:
        is_last = ended.wait(TELL_SECONDS)
        with suppress(OSError):
            line.send((msgspec.structs.replace(USED), Counter(SENT)))
        if is_last:
            return
