"""Scratch of an object store: a bounded folder of copies of its files, shared by a machine.

    <scratch>/.remote.json                      the URL, and the most bytes of copies
    <scratch>/.users/<random>                   a process that computes parts holds a flock on it
    <scratch>/filtered/web/<name>.parquet       a copy, or a file that a task of this machine wrote

Processes find the URL by the path of any file, so that a task names files by their paths alone;
every machine has its scratch at the same path. Copies that were not used for longest go first. What
was used since the oldest part that is being computed on this machine began, stays: the limit may
be exceeded for that time. A process that has a removed file open, or mapped, keeps it.
"""

from __future__ import annotations

import fcntl
import os
import re
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import msgspec

from resources.store.disk import make_folder, remove, try_lock_alone, write_temporary

MARK = ".remote.json"
USERS = ".users"
LEASES = "_writers"  # of the object store
SCRATCH_VARIABLE = "TOKENMILL_SCRATCH"
GRACE_SECONDS = 60.0  # between the look for a copy and its use by a process that computes no part
SWEEP_SHARE = 0.9  # of the limit that is left by a sweep: the next one is some files away
IS_PLAIN = re.compile(r"[^A-Za-z0-9._-]+")


class Remote(msgspec.Struct, frozen=True):
    """The object store of a scratch: its URL, and the most bytes of copies."""

    url: str
    max_bytes: int


@dataclass(frozen=True)
class Scratch:
    """The scratch of an object store at `root`."""

    root: Path
    remote: Remote

    def make(self) -> None:
        """Make the scratch on this machine, unless it is there."""
        if read_mark(self.root) == self:
            return
        make_folder(self.root)
        content = msgspec.json.encode(self.remote)
        os.replace(write_temporary(self.root, MARK, content), self.root / MARK)
        read_mark.cache_clear()
        scratch_of.cache_clear()

    def key(self, path: Path) -> str:
        """Return the key of a file, relative to the URL."""
        return path.relative_to(self.root).as_posix().removeprefix(".")


def default_scratch() -> Path:
    """Return the folder of scratches: $TOKENMILL_SCRATCH, or one in the user's cache."""
    if folder := os.environ.get(SCRATCH_VARIABLE):
        return Path(folder).absolute()
    return (
        Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tokenmill" / "scratch"
    )


def open_scratch(url: str, folder: Path, max_bytes: int) -> Path:
    """Return the root of the scratch of a URL, which is made if it is not there."""
    root = folder / IS_PLAIN.sub("-", url.rstrip("/"))
    Scratch(root, Remote(url.rstrip("/"), max_bytes)).make()
    return root


@lru_cache(maxsize=1 << 16)
def scratch_of(folder: Path) -> Scratch | None:
    """Return the scratch that a folder is in, None if it is in none."""
    for place in (folder, *folder.parents):
        if scratch := read_mark(place):
            return scratch
    return None


def place_of(path: Path) -> str:
    """Return the URL of a store, or of a file in it, by its local path: for messages."""
    scratch = scratch_of(path.parent) or scratch_of(path)
    return str(path) if scratch is None else f"{scratch.remote.url}/{scratch.key(path)}".rstrip("/")


@lru_cache(maxsize=1 << 16)
def read_mark(folder: Path) -> Scratch | None:
    """Return the scratch at a folder, None if it is none."""
    try:
        content = (folder / MARK).read_bytes()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    return Scratch(folder, msgspec.json.decode(content, type=Remote))


class Users:
    """The parts that this process computes, and its lock file, whose time is the oldest one's."""

    def __init__(self) -> None:
        self.begins: dict[int, float] = {}  # by number of the part
        self.files: dict[Path, int] = {}  # descriptor of the lock file, by scratch
        self.next = 0
        self.pid = os.getpid()
        self.guard = threading.Lock()

    def begin(self) -> int:
        """Begin a part."""
        with self.guard:
            self.next += 1
            self.begins[self.next] = time.time()
            return self.next

    def end(self, number: int) -> None:
        """End a part; without any the process uses no scratch."""
        with self.guard:
            del self.begins[number]
            if self.files and not self.begins:
                for descriptor in self.files.values():
                    os.close(descriptor)
                self.files = {}
            for descriptor in self.files.values():
                os.utime(descriptor, (min(self.begins.values()),) * 2)

    def note(self, scratch: Path) -> None:
        """Note that this process uses a scratch, if it computes a part."""
        if not self.begins or scratch in self.files:
            return
        with self.guard:
            if not self.begins or scratch in self.files:
                return
            make_folder(scratch / USERS)
            path = scratch / USERS / uuid.uuid4().hex
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            os.utime(descriptor, (min(self.begins.values()),) * 2)
            self.files[scratch] = descriptor


USERS_HERE = Users()


@contextmanager
def computing() -> Iterator[None]:
    """Keep the copies that are used meanwhile, until the part that is computed has ended."""
    number = USERS_HERE.begin()
    try:
        yield
    finally:
        USERS_HERE.end(number)


def use(scratch: Scratch, path: Path) -> bool:
    """Note the use of a copy as its time of access; False if it is not there."""
    USERS_HERE.note(scratch.root)
    try:
        os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns))
    except FileNotFoundError:
        return False
    return True


def oldest_use(scratch: Scratch) -> float:
    """Return the time since which every used copy may be needed."""
    oldest = time.time() - GRACE_SECONDS
    for path in (scratch.root / USERS).glob("*"):
        with suppress(FileNotFoundError), open(path, "rb") as lock:
            if try_lock_alone(lock.fileno()):
                path.unlink()  # its process has ended
            else:
                oldest = min(oldest, path.stat().st_mtime)
    return oldest


def make_room(scratch: Scratch, num_bytes: int) -> None:
    """Remove copies until so many bytes fit, those that were not used for longest first."""
    files = [
        (status.st_atime, status.st_size, path)
        for path in scratch.root.glob("[!_.]*/*/**/*")
        if (status := file_status(path)) is not None
    ]
    total = num_bytes + sum(size for _, size, _ in files)
    if total <= scratch.remote.max_bytes:
        return
    limit, since = SWEEP_SHARE * scratch.remote.max_bytes, oldest_use(scratch)
    for used, size, path in sorted(files):
        if total <= limit or used >= since:
            return
        remove(path)
        total -= size


def file_status(path: Path) -> os.stat_result | None:
    """Return the status of a file; None for folders, lock files and what has just gone."""
    try:
        is_copy = path.is_file() and path.name != ".lock"
        return path.stat() if is_copy else None
    except FileNotFoundError:
        return None
