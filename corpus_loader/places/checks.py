"""Hashing of files in the background, so that the first batch need not wait for gigabytes.

A phase draws from all its shards at once, so all would have to be hashed first. A fault is raised
at the next read; an epoch ends when everything it used is hashed. Two threads run while there is
something to hash; the process does not wait for them at exit.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Hashable
from threading import Lock, Thread
from typing import Any

THREADS = 2


class Checks:
    """Checks that run in the background, each under a key; a check raises RuntimeError."""

    def __init__(self) -> None:
        self.open: dict[Hashable, Callable[[], None]] = {}  # not finished
        self.waiting: deque[Hashable] = deque()  # of these, not begun
        self.threads: list[Thread] = []
        self.faults: list[RuntimeError] = []
        self.process, self.lock = os.getpid(), Lock()

    def __getstate__(self) -> dict[str, Any]:
        """Send nothing to a copy: it opens files of its own, and checks these."""
        return {}

    def __setstate__(self, _: dict[str, Any]) -> None:
        """Start empty."""
        self.__init__()  # type: ignore[misc]

    def add(self, key: Hashable, check: Callable[[], None]) -> None:
        """Run a check soon."""
        self.after_fork()
        with self.lock:
            self.open[key] = check
            self.waiting.append(key)
            self.threads = [thread for thread in self.threads if thread.is_alive()]
            if len(self.threads) < THREADS:
                self.threads.append(Thread(target=self.work, daemon=True))
                self.threads[-1].start()

    def work(self) -> None:
        """Run checks until none is waiting."""
        while self.waiting:
            try:
                key = self.waiting.popleft()
            except IndexError:  # another thread was faster
                return
            try:
                self.open[key]()
            except RuntimeError as error:
                self.faults.append(error)
            except BaseException:  # Ctrl-C, say: whoever goes on has it checked
                self.waiting.append(key)
                raise
            del self.open[key]

    def look(self) -> None:
        """Raise the error of the first check that failed by now."""
        if self.faults:
            raise self.faults[0].with_traceback(None)

    def finish(self) -> None:
        """Wait for all checks, and help; raises as `look` does."""
        self.after_fork()
        self.work()
        for thread in self.threads:
            thread.join()
        self.look()

    def after_fork(self) -> None:
        """Restart unfinished checks in a forked process, which has no threads."""
        if self.process != os.getpid():
            self.process, self.lock, self.threads = os.getpid(), Lock(), []
            self.waiting = deque(self.open)
