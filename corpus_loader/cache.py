"""A bounded folder of files that lie elsewhere: shared by processes, no server, nothing to repair.

    <folder>/shards/<sha256>            a file, by the hash of its content: never out of date
    <folder>/shards/.tmp-<random>       one on its way here
    <folder>/shards/.fetch-<sha256>     who has it locked is fetching that file

Who uses a file holds a shared flock(2) on it; only who gets the exclusive one, without waiting, may
remove it. Locks are gone with the process that had them, so that kill -9 leaves nothing but
temporary files, which the next start removes. Nobody waits while holding a lock: if everything is
in use, the folder grows over its limit for as long. Only names of the three forms are ever removed,
and only in this folder. A lock counts when the locked file is still the one at that name.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from corpus_loader.files import CorpusError

FOLDER = "shards"
TEMPORARY, FETCHING = ".tmp-", ".fetch-"
IS_SHA256 = re.compile(r"[0-9a-f]{64}")
POLL_SECONDS = 0.05
MOST_TRIES = 20
PATIENCE_SECONDS = 120.0  # with another process that fetches the same file; then both do
Blocks = Callable[[], Iterator[bytes]]


class Cache:
    """At most `max_bytes` of files, the least recently used going first."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folder = folder / FOLDER
        self.max_bytes = max_bytes
        self.checked: set[tuple[str, int]] = set()  # names and inodes that this process hashed
        self.folder.mkdir(parents=True, exist_ok=True)
        for pattern in (TEMPORARY, FETCHING):
            for path in self.folder.glob(f"{pattern}*"):
                self.remove(path)

    @contextmanager
    def file(self, sha256: str, num_bytes: int, blocks: Blocks) -> Iterator[Path]:
        """The file of that content, fetched by `blocks` if need be; it stays while this is open."""
        if not IS_SHA256.fullmatch(sha256):
            raise CorpusError(f"{sha256!r} is no sha256: the mixture is damaged")
        if num_bytes > self.max_bytes:
            raise CorpusError(
                f"a file of {num_bytes:,} bytes does not fit a cache of {self.max_bytes:,}. "
                f"Raise the limit; {self.folder} needs room for a few files."
            )
        path = self.folder / sha256
        descriptor = self.open_file(path, num_bytes)
        for _ in range(MOST_TRIES):  # another process may remove it before it is locked here
            if descriptor is None:
                self.fetch(path, num_bytes, blocks)
                descriptor = self.open_file(path, num_bytes)
        if descriptor is None:
            raise CorpusError(f"{path} cannot be kept: look at the disk, or use another folder")
        try:
            yield path
        finally:
            os.close(descriptor)

    def open_file(self, path: Path, num_bytes: int) -> int | None:
        """A descriptor that keeps a file; None if it is not there. A damaged one is removed."""
        descriptor = locked(path, os.O_RDONLY, fcntl.LOCK_SH)
        if descriptor is None:
            return None
        found = os.fstat(descriptor)
        name = path.name, found.st_ino
        if found.st_size == num_bytes and (name in self.checked or hash_of(path) == path.name):
            self.checked.add(name)
            os.utime(descriptor)
            return descriptor
        if is_at(descriptor, path):
            path.unlink()
        os.close(descriptor)
        return None

    def fetch(self, path: Path, num_bytes: int, blocks: Blocks) -> None:
        """Bring a file here, or wait until another process has."""
        fetching = self.folder / f"{FETCHING}{path.name}"
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (lock := locked(fetching, os.O_RDWR | os.O_CREAT, fcntl.LOCK_EX)) is None:
            if path.exists():
                return
            if time.monotonic() > deadline:
                break
            time.sleep(POLL_SECONDS)
        try:
            if not path.exists():
                self.make_room(num_bytes)
                faults = [self.write(path, num_bytes, blocks)]
                faults += [self.write(path, num_bytes, blocks)] if faults[0] else []
                if faults[-1]:
                    raise CorpusError(f"{faults[-1]}; twice. `corpus verify` says what is wrong")
        finally:
            if lock is not None:
                fetching.unlink(missing_ok=True)
                os.close(lock)

    def write(self, path: Path, num_bytes: int, blocks: Blocks) -> str | None:
        """Fetch to a temporary name, then give it its name; returns what is wrong with them."""
        temporary = self.folder / f"{TEMPORARY}{uuid.uuid4().hex}"
        descriptor = locked(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, fcntl.LOCK_SH)
        if descriptor is None:  # a process that just started took it for a leftover
            return None
        try:
            with open(descriptor, "wb", closefd=False) as file:
                size = 0
                for block in blocks():
                    size += file.write(block)
                    if size > num_bytes:
                        break
            if (found := hash_of(temporary)) != path.name:
                return f"{size:,} bytes of sha256 {found} came, not {num_bytes:,} of {path.name}"
            with suppress(FileExistsError):  # of two that fetched it, one throws its own away
                os.link(temporary, path)
                self.checked.add((path.name, os.fstat(descriptor).st_ino))
        finally:
            temporary.unlink(missing_ok=True)
            os.close(descriptor)
        return None

    def make_room(self, num_bytes: int) -> None:
        """Remove what was used longest ago, and is not in use, until so many bytes fit."""
        found: list[tuple[float, int, Path]] = []
        for path in self.folder.iterdir():
            with suppress(FileNotFoundError):
                state = path.stat()
                found.append((state.st_mtime, state.st_size, path))
        total = num_bytes + sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if total <= self.max_bytes:
                return
            if IS_SHA256.fullmatch(path.name) and self.remove(path):
                total -= size

    def remove(self, path: Path) -> bool:
        """Remove a file unless somebody uses it."""
        descriptor = locked(path, os.O_RDONLY, fcntl.LOCK_EX)
        if descriptor is None:
            return False
        path.unlink(missing_ok=True)
        os.close(descriptor)
        return True


def locked(path: Path, flags: int, how: int) -> int | None:
    """A descriptor of a file, locked without waiting; None if it is gone or locked otherwise."""
    try:
        descriptor = os.open(path, flags, 0o644)
    except FileNotFoundError:
        return None
    with suppress(BlockingIOError):
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
        if is_at(descriptor, path):
            return descriptor
    os.close(descriptor)
    return None


def is_at(descriptor: int, path: Path) -> bool:
    """True if the open file is the one at that name."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def hash_of(path: Path) -> str:
    """sha256 in hex."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
