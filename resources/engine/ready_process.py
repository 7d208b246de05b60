"""A process that gets ready to compute while the one that made it imports what it needs of Dagster.

A night's work takes a second of CPU; to load its kernels and tables in the process of the run took
as long again, on one core, while the other was idle. The process is a fork from before the imports.
It prepares itself a step at a time whenever nothing is asked of it, and has the threads in which
`map_parts` computes little work. If it dies, they are threads of the process that asks. What its
first step finds out can be known while it is in a later one: a step takes up to 0.2 s.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from typing import ParamSpec, TypeVar

from resources.engine.fork_server import end_with_parent, use_environment

Parameters = ParamSpec("Parameters")
Item = TypeVar("Item")


class NotThereError(RuntimeError):
    """There is no such process, or it has died."""


@dataclass(frozen=True)
class ReadyProcess:
    """The process, a connection to it, and the process id of its only holder: no fork has it."""

    process: ForkProcess
    line: Connection
    holder: int

    @cached_property
    def found(self) -> object:
        """What its first step has found, waited for once; None if it died in it."""
        try:
            return self.line.recv()
        except (EOFError, OSError):
            return None

    def end(self) -> None:
        """Kill it with what it computes, and wait until its CPU seconds are counted."""
        self.process.kill()
        self.process.join()
        self.line.close()


@contextmanager
def ready_process(prepare: Callable[[], Iterator[object]]) -> Iterator[None]:
    """Hold a process that takes the steps of `prepare` while nothing is asked of it.

    The first step yields what it has found; of the others that is ignored.
    """
    context = multiprocessing.get_context("fork")
    line, theirs = context.Pipe()
    process = context.Process(target=serve, args=(line, theirs, prepare), daemon=True)
    process.start()
    theirs.close()
    _idle.append(ReadyProcess(process, line, os.getpid()))
    try:
        yield
    finally:
        while _idle:
            _idle.pop().end()


def first_found() -> object:
    """Return what the first step of the process has found, None if there is no process."""
    return _idle[-1].found if is_there() else None


def is_there() -> bool:
    """Return whether this process holds one that is idle."""
    return bool(_idle) and _idle[-1].holder == os.getpid()


def iterate_there(
    function: Callable[Parameters, Iterable[Item]],
    /,
    *args: Parameters.args,
    **kwargs: Parameters.kwargs,
) -> Generator[Item, None, None]:
    """Yield what a function yields in the process; raise NotThereError as soon as it cannot.

    Items must be picklable, and the call. A loop that does not go on to its end kills the process.
    """
    if not is_there():
        raise NotThereError
    first_found()  # comes before all else
    ready = _idle.pop()  # a call inside the loop finds none
    is_whole = False
    try:
        try:
            ready.line.send((dict(os.environ), function, args, kwargs))
            while item := ready.line.recv():
                yield item[0]
        except (EOFError, OSError) as fault:
            raise NotThereError from fault
        is_whole = True
    finally:
        _idle.append(ready) if is_whole else ready.end()


def serve(ours: Connection, line: Connection, prepare: Callable[[], Iterator[object]]) -> None:
    """Answer calls until the connection is closed; prepare between them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all; the holder ends this
    end_with_parent()
    ours.close()
    steps = prepare()
    line.send(next(steps))
    while True:
        for _ in steps:
            if line.poll():
                break
        try:
            environment, function, args, kwargs = line.recv()
        except EOFError:
            return
        use_environment(environment)
        for item in function(*args, **kwargs):
            line.send((item,))
        line.send(())


_idle: list[ReadyProcess] = []
