"""A store in a local folder, whose files are read in place.

They are hashed in the background, so that the first batch need not wait for gigabytes: a phase
draws from all its shards at once, so all would have to be hashed first. A fault is raised at the
next read; an epoch ends when everything it used is hashed. Two threads run while there is something
to hash; the process does not wait for them at exit.
"""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from corpus_loader.places.errors import CorpusError, repair
from corpus_loader.places.files import (
    FileState,
    Verify,
    inside,
    manifest_path,
    newest_number,
    state_of,
)

THREADS = 2
AT_ONCE = {".idx", ".rows"}  # they say where rows are, and are a hundredth of the shards


class LocalFiles:
    """A store on a local disk. Files are read in place and never changed.

    A file's size is checked when it is opened; its sha256 by threads while it is read
    ("background": `checks` has their findings), before it is read ("first"), or not (False). An
    index or list of removed rows is always compared before it is read, unless nothing is.
    """

    def __init__(self, root: str | Path, verify: Verify = "first") -> None:
        self.root = Path(root)
        self.verify = verify
        self.verified: set[tuple[str, FileState]] = set()
        self.checks = Checks()

    def read(self, relative: str) -> bytes:
        """The content of a small file; FileNotFoundError if there is none."""
        return (self.root / inside(relative)).read_bytes()

    def newest(self, folder: str) -> str | None:
        """The newest manifest in a folder, None if there is none."""
        return manifest_path(folder, newest_number(self.names(folder)))

    def names(self, folder: str) -> list[str]:
        """The names of files and folders in a folder, sorted; hidden ones are temporary files."""
        return sorted(path.name for path in (self.root / inside(folder)).glob("[!.]*"))

    def has_room(self, files: Mapping[str, int]) -> bool:
        """Return True: files are read in place."""
        return True

    @contextmanager
    def local_path(self, relative: str, num_bytes: int, sha256: str) -> Iterator[Path]:
        """Provide the file's path; CorpusError if it is missing or not as the mixture says."""
        path = self.root / inside(relative)
        try:
            status = path.stat()
        except FileNotFoundError:
            raise CorpusError(
                f"{path} is missing. {repair(relative)}. If `sharded` was built again since, "
                "run the job `mix_corpus`."
            ) from None
        if status.st_size != num_bytes:
            raise CorpusError(
                f"{path} has {status.st_size:,} bytes, the mixture says {num_bytes:,}. "
                f"{repair(relative)}"
            )
        if self.verify:
            self.check((relative, state_of(status)), path, sha256)
        yield path

    def check(self, key: tuple[str, FileState], path: Path, sha256: str) -> None:
        """Have a file hashed, or hash it, if it was not."""
        if key in self.checks.open or key in self.verified:  # in this order: from one to the other
            return

        def check() -> None:
            check_sha256(path, key[0], sha256)
            self.verified.add(key)

        if self.verify == "background" and path.suffix not in AT_ONCE:
            self.checks.add(key, check)
        else:
            check()


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


def check_sha256(path: Path, relative: str, expected: str) -> None:
    """CorpusError if the file's bytes are not those that were hashed, or cannot be read."""
    try:
        with open(path, "rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise CorpusError(f"{path} could not be checked: {error}. {repair(relative)}") from error
    if sha256 != expected:
        raise CorpusError(
            f"{path} changed since it was written: sha256 is {sha256}, the mixture says "
            f"{expected}. {repair(relative)}"
        )
