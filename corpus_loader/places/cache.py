"""A bounded folder of copies of remote files, shared by processes without a server.

    <folder>/shards/<sha256>                  a file, by the hash of its content: never out of date
    <folder>/shards/.tmp-<sha256>-<random>    an unfinished download
    <folder>/shards/.fetch-<sha256>           the lock's holder is downloading the file

A process that uses a file holds a shared flock(2) on it; only the holder of the exclusive lock,
taken without waiting, may remove it. Locks end with their process, so that kill -9 leaves nothing
behind except temporary files, which the next start removes. No process waits while it holds a lock:
if every file is in use, the folder exceeds its limit for that time. Only names of the three forms
are ever removed, and only in this folder.

A lock counts when the locked file is still the one at its name: another process may remove it
between the opening and the locking.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from corpus_loader.places.errors import CorpusError
from corpus_loader.places.files import TEMPORARY_PREFIX

FOLDER = "shards"
FETCHING = ".fetch-"
IS_SHA256 = re.compile(r"[0-9a-f]{64}")
POLL_SECONDS = 0.05
MOST_TRIES = 20
PATIENCE_SECONDS = 120.0  # with one that fetches the same file and gets nothing; then both do
DISK_IS_FULL = (errno.ENOSPC, errno.EDQUOT)
Blocks = Callable[[], Iterator[bytes]]


class Cache:
    """A cache of at most `max_bytes` of files; the least recently used is removed first."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folder = folder / FOLDER
        self.max_bytes = max_bytes
        self.checked: set[tuple[str, int]] = set()  # names and inodes that this process hashed
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CorpusError(cannot_keep(self.folder, error)) from error
        for pattern in (TEMPORARY_PREFIX, FETCHING):
            for path in self.folder.glob(f"{pattern}*"):
                self.remove(path)

    @contextmanager
    def file(self, sha256: str, num_bytes: int, blocks: Blocks) -> Iterator[Path]:
        """Provide the file of that content, downloaded by `blocks` if needed, while this is open.

        Raises FileNotFoundError if `blocks` does, CorpusError if the file cannot be kept.
        """
        if not IS_SHA256.fullmatch(sha256):
            raise CorpusError(f"{sha256!r} is no sha256: the mixture is damaged")
        if num_bytes > self.max_bytes:
            raise CorpusError(
                f"a file of {num_bytes:,} bytes does not fit a cache of {self.max_bytes:,}. "
                f"Raise the limit; {self.folder} needs room for a few files."
            )
        path = self.folder / sha256
        try:
            descriptor = self.find_or_fetch(path, num_bytes, blocks)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise CorpusError(cannot_keep(path, error)) from error
        try:
            yield path
        finally:
            os.close(descriptor)

    def find_or_fetch(self, path: Path, num_bytes: int, blocks: Blocks) -> int:
        """Return a descriptor whose lock keeps a file, downloaded if needed."""
        for attempt in range(MOST_TRIES):  # another process may remove it before it is locked here
            if attempt > 1:
                time.sleep(POLL_SECONDS)
            descriptor = self.open_file(path, num_bytes)
            if descriptor is not None:
                return descriptor
            self.fetch(path, num_bytes, blocks)
        raise CorpusError(f"{path} cannot be kept: look at the disk, or use another folder")

    def open_file(self, path: Path, num_bytes: int) -> int | None:
        """Return a descriptor whose lock keeps a file, None without one; removes a damaged one."""
        descriptor = locked(path, fcntl.LOCK_SH)
        if descriptor is None:
            return None
        is_whole = False
        try:
            is_whole = self.is_whole(descriptor, path.name, num_bytes)
            if is_whole:
                with suppress(PermissionError):  # another user's: its time is not ours to set
                    os.utime(descriptor)
            elif is_at(descriptor, path):
                path.unlink(missing_ok=True)  # another process may have found the same
        finally:
            if not is_whole:
                os.close(descriptor)
        return descriptor if is_whole else None

    def is_whole(self, descriptor: int, sha256: str, num_bytes: int) -> bool:
        """Check the content of an open file against its name; each process hashes a file once."""
        status = os.fstat(descriptor)
        if status.st_size != num_bytes:
            return False
        if (sha256, status.st_ino) not in self.checked:
            if hash_of(descriptor) != sha256:
                return False
            self.checked.add((sha256, status.st_ino))
        return True

    def fetch(self, path: Path, num_bytes: int, blocks: Blocks) -> None:
        """Download a file, or wait until another process has."""
        fetching = self.folder / f"{FETCHING}{path.name}"
        deadline, fetched = time.monotonic() + PATIENCE_SECONDS, 0
        while (lock := locked(fetching, fcntl.LOCK_EX, create=True)) is None:
            if path.exists():
                return
            on_the_way = sizes_of(self.folder.glob(f"{TEMPORARY_PREFIX}{path.name}-*"))
            if (arrived := max(on_the_way.values(), default=0)) > fetched:
                deadline, fetched = time.monotonic() + PATIENCE_SECONDS, arrived
            if time.monotonic() > deadline:
                break
            time.sleep(POLL_SECONDS)
        try:
            if not path.exists():
                self.make_room(num_bytes)
                fault = self.write(path, num_bytes, blocks)
                if fault and (fault := self.write(path, num_bytes, blocks)):
                    raise CorpusError(f"{fault}; twice")
        finally:
            if lock is not None:
                with suppress(PermissionError):
                    fetching.unlink(missing_ok=True)
                os.close(lock)

    def write(self, path: Path, num_bytes: int, blocks: Blocks) -> str | None:
        """Download to a temporary name, then link it to its own; returns a fault, if any."""
        temporary = self.folder / f"{TEMPORARY_PREFIX}{path.name}-{uuid.uuid4().hex}"
        descriptor = locked(temporary, fcntl.LOCK_SH, create=True)
        if descriptor is None:  # a process that just started took it for a leftover
            return None
        digest, size = hashlib.sha256(), 0
        try:
            for block in blocks():
                write_all(descriptor, block)
                digest.update(block)
                size += len(block)
                if size > num_bytes:
                    break
            if (sha256 := digest.hexdigest()) != path.name:
                return (
                    f"it is damaged: {size:,} bytes of sha256 {sha256} came, not {num_bytes:,} of "
                    f"{path.name}: `corpus verify` says what is wrong"
                )
            with suppress(FileExistsError):  # of two that fetched it, one throws its own away
                os.link(temporary, path)
                self.checked.add((path.name, os.fstat(descriptor).st_ino))
        except OSError as error:
            if error.errno not in DISK_IS_FULL:
                raise
            self.make_room(self.max_bytes)  # all that is not in use
            return cannot_keep(path, error)
        finally:
            temporary.unlink(missing_ok=True)
            os.close(descriptor)
        return None

    def make_room(self, num_bytes: int) -> bool:
        """Remove the least recently used files not in use; True if `num_bytes` then fit."""
        sizes = sizes_of(self.folder.iterdir())
        total = num_bytes + sum(sizes.values())
        for (_, path), size in sorted(sizes.items()):
            if total <= self.max_bytes:
                break
            if IS_SHA256.fullmatch(path.name) and self.remove(path):
                total -= size
        return total <= self.max_bytes

    def has(self, sha256: str) -> bool:
        """Check for a file by its hash (it may be gone a moment later)."""
        return (self.folder / sha256).exists()

    def remove(self, path: Path) -> bool:
        """Remove a file unless it is in use, or another user's."""
        with suppress(PermissionError):
            descriptor = locked(path, fcntl.LOCK_EX)
            if descriptor is not None:
                try:
                    path.unlink(missing_ok=True)
                    return True
                finally:
                    os.close(descriptor)
        return False


def sizes_of(paths: Iterable[Path]) -> dict[tuple[float, Path], int]:
    """Measure files: bytes by (time of last use, path), without files that vanish meanwhile."""
    sizes = {}
    for path in paths:
        with suppress(FileNotFoundError):
            state = path.stat()
            sizes[state.st_mtime, path] = state.st_size
    return sizes


def hash_of(descriptor: int) -> str:
    """Compute the sha256 of an open file, in hex."""
    with open(descriptor, "rb", closefd=False) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cannot_keep(path: Path, error: OSError) -> str:
    """Return the advice for a folder that takes no file."""
    return (
        f"{path} cannot be kept: {error.strerror or error}. Use another folder or a smaller limit: "
        "LoaderOptions(cache=..., cache_bytes=...)"
    )


def locked(path: Path, how: int, *, create: bool = False) -> int | None:
    """Open and lock a file without waiting; None if it is gone or locked otherwise.

    Network disks give an exclusive lock only to a file that is open for writing. Raises CorpusError
    on a disk that has no locks.
    """
    try:
        descriptor = open_for_lock(path, create=create, writes=create or how == fcntl.LOCK_EX)
    except FileNotFoundError:
        return None
    is_locked = False
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
        is_locked = is_at(descriptor, path)
    except BlockingIOError:
        pass
    except OSError as error:
        raise CorpusError(
            f"{path} cannot be locked: {error}. Use a local disk for the cache: "
            "LoaderOptions(cache=...), or the environment variable TOKENMILL_CACHE."
        ) from error
    finally:
        if not is_locked:
            os.close(descriptor)
    return descriptor if is_locked else None


def open_for_lock(path: Path, *, create: bool, writes: bool) -> int:
    """Open a file: for writing if that is requested and allowed."""
    if writes:
        with suppress(PermissionError):  # another user's: on a local disk reading is enough
            return os.open(path, os.O_RDWR | (os.O_CREAT if create else 0), 0o666)
    return os.open(path, os.O_RDONLY)


def is_at(descriptor: int, path: Path) -> bool:
    """True if the open file is the one at that name."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def write_all(descriptor: int, block: bytes) -> None:
    """Write all of a block, unbuffered: a full disk says so here, and not when it is closed."""
    rest = memoryview(block)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
