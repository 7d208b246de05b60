"""Files hashed while they are already read: a first batch does not wait for gigabytes.

40 shards of 256 MB take 7 s of a core to hash, and a phase draws from all of them at once. What is
found is raised at the next read; an epoch ends when all that it used is hashed. Two threads work as
long as there is something to hash, and are gone then; at exit nobody waits for them.
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
        """A copy begins anew: it opens files of its own, and has these checked."""
        return {}

    def __setstate__(self, _: dict[str, Any]) -> None:
        """See __getstate__."""
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
        """Raise what the first check that failed by now raised."""
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
        """In a process that was forked off: threads stayed behind, what was open is begun anew."""
        if self.process != os.getpid():
            self.process, self.lock, self.threads = os.getpid(), Lock(), []
            self.waiting = deque(self.open)
