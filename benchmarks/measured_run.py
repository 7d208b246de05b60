"""Run a command and measure it with all processes below it: wall and CPU time, memory, first work.

A process that outlives its parent becomes a child of this one (PR_SET_CHILD_SUBREAPER), so that the
CPU time of every process is counted, that of fork servers too.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PR_SET_CHILD_SUBREAPER = 36
MEMORY_SECONDS = 3.0  # the kernel walks every page table: 2 % of two cores when done each second
WORK_SECONDS = 0.02


@dataclass(frozen=True)
class Measured:
    """Costs of a command.

    first_work  seconds from its start until the first part was begun, None if none was
    largest     most resident bytes of one process
    together    most bytes of all processes, shared pages counted once
    """

    wall: float
    cpu: float
    first_work: float | None
    largest: int
    together: int


@dataclass
class Watcher:
    """What was seen of a running command."""

    start: float = field(default_factory=time.perf_counter)
    first_work: float | None = None
    largest: int = 0
    together: int = 0


def measure(command: Sequence[str], env: Mapping[str, str], store: Path | None = None) -> Measured:
    """Run a command to its end; its output is shown if it fails.

    With a store, its first temporary file is watched for, and memory is sampled.
    """
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    before, watcher = cpu_of_children(), Watcher()
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=os.environ | dict(env),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    with contextlib.ExitStack() as watched:
        if store is not None:
            watched.enter_context(beside(WORK_SECONDS, lambda: watch_work(watcher, store)))
            watched.enter_context(beside(MEMORY_SECONDS, lambda: watch_memory(watcher)))
        output, _ = process.communicate()
    wall = time.perf_counter() - watcher.start
    wait_for_orphans()
    if process.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{output[-5000:]}")
    cpu = cpu_of_children() - before
    return Measured(wall, cpu, watcher.first_work, watcher.largest, watcher.together)


@contextlib.contextmanager
def beside(pause: float, look: Callable[[], None]) -> Iterator[None]:
    """Call a function again and again in a thread."""
    stop = threading.Event()

    def repeat() -> None:
        while not stop.wait(pause):
            look()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def watch_work(watcher: Watcher, store: Path) -> None:
    """Note when the first part's writer is opened: anything but a lock is in a partition."""
    if watcher.first_work is None and any(path.name != ".lock" for path in store.glob("*/*/*")):
        watcher.first_work = time.perf_counter() - watcher.start


def watch_memory(watcher: Watcher) -> None:
    """Note the memory of the processes below this one."""
    resident, shared = 0, 0
    for pid in descendants(os.getpid()):
        rollup = rollup_of(pid)
        resident = max(resident, rollup.get("Rss", 0))
        shared += rollup.get("Pss", 0)
    watcher.largest = max(watcher.largest, resident)
    watcher.together = max(watcher.together, shared)


def rollup_of(pid: int) -> dict[str, int]:
    """Return the bytes of a process's memory by kind; nothing if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    except OSError:
        return {}
    words = (line.split() for line in lines)
    return {name.rstrip(":"): int(size) * 1024 for name, size, *_ in words}


def descendants(pid: int) -> Iterator[int]:
    """Yield the processes below one."""
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(child) for child in task.read_text().split()]
        except OSError:
            continue
        for child in children:
            yield child
            yield from descendants(child)


def wait_for_orphans() -> None:
    """Wait for processes that outlived the command, so that their CPU time is counted."""
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


def cpu_of_children() -> float:
    """Return the CPU seconds of all processes that were waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
