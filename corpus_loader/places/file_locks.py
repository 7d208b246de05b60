"""Locks of files by flock(2): gone with the process, and never waited for.

A lock counts when the locked file is still the one at its name: another process may remove it
between the opening and the locking.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from corpus_loader.places.errors import CorpusError


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
