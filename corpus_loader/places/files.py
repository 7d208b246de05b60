"""Access to a store's files: a local folder, read in place, or a URL, read through a cache.

Both provide three things: the bytes of a small file, the newest manifest of a folder, and a local
path for a large file, checked before it is used.

Files on a local disk are hashed in the background, so that the first batch need not wait for
gigabytes: a phase draws from all its shards at once, so all would have to be hashed first. A fault
is raised at the next read; an epoch ends when everything it used is hashed. Two threads run while
there is something to hash; the process does not wait for them at exit.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path, PurePosixPath
from threading import Lock, Thread
from typing import Any, Literal, NamedTuple, Protocol

from corpus_loader.places.errors import CorpusError, repair

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


DIGITS = 8  # a manifest is _manifests/00000003.json
AT_ONCE = {".idx", ".rows"}  # they say where rows are, and are a hundredth of the shards
MANIFEST = re.compile(r"([0-9]{8})\.json")
TAGS = "_tags"  # folder of the store: a file per tag, which names a manifest of every partition
TAKEDOWNS = "_takedowns"  # folder of the store: a file per request
TEMPORARY_PREFIX = (
    ".tmp-"  # begins the name of a file that is being written, in the folder of its place
)
IS_TAG_NAME = re.compile(r"(?![0-9a-f]{32}\Z)[A-Za-z][A-Za-z0-9._-]{0,63}\Z")
Verify = Literal["background", "first", False]  # when a file's sha256 is checked


class FileState(NamedTuple):
    """What is another one after any write to a file.

    `written_ns` alone is not: `cp -p`, rsync and tar set it back, and nothing sets `changed_ns`.
    """

    bytes: int
    written_ns: int
    changed_ns: int
    inode: int


def state_of(status: os.stat_result) -> FileState:
    """Return the state of a file of which `status` was asked."""
    return FileState(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


class Files(Protocol):
    """The loader's view of a store; every name is relative to its root."""

    def read(self, relative: str) -> bytes:
        """The content of a small file; FileNotFoundError if there is none."""

    def names(self, folder: str) -> list[str]:
        """List the names in a folder, sorted; none if the server does not list."""

    def newest(self, folder: str) -> str | None:
        """The newest manifest in a folder `_manifests`, None if there is none."""

    def has_room(self, files: Mapping[str, int]) -> bool:
        """True if files (bytes by sha256) fit beside those that are in use."""

    def local_path(
        self, relative: str, num_bytes: int, sha256: str
    ) -> AbstractContextManager[Path]:
        """Provide a checked local path while the context is open."""


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


def newest_number(names: Iterable[str]) -> int:
    """Return the largest number of a manifest among names; 0: none is one."""
    return max((int(match[1]) for name in names if (match := MANIFEST.fullmatch(name))), default=0)


def manifest_path(folder: str, number: int) -> str | None:
    """Return the path of a manifest by its number, None for 0."""
    return f"{folder}/{number:0{DIGITS}d}.json" if number else None


def is_tag_name(name: str) -> bool:
    """Return whether a text may be the name of a tag: no path, no number, no fingerprint."""
    return IS_TAG_NAME.match(name) is not None


def inside(relative: str) -> str:
    """Return a name inside the store; CorpusError otherwise: a mixture is not trusted."""
    path = PurePosixPath(relative)
    if path.is_absolute() or ".." in path.parts or "\\" in relative or not path.parts:
        raise CorpusError(f"{relative!r} is no name inside a corpus: the mixture is damaged")
    return str(path)


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
