"""Errors of the operating system in words: what is full or forbidden, what is needed, what to do.

Polars, numpy and SQLite raise errors of their own for a full disk, without `errno`: Polars has
"(os error 28)" in its message, numpy's `tofile` says how much it could write.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FULL = re.compile(r"^\d+ requested and \d+ written$|database or disk is full")
RUST_ERRNO = re.compile(r"\(os error (\d+)\)")
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
FORBIDDEN = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
DEVICE = frozenset({errno.EIO, errno.ENXIO, errno.ENODEV})
TOO_MANY = frozenset({errno.EMFILE, errno.ENFILE})
NO_MEMORY = frozenset({errno.ENOMEM})
FINAL = NO_ROOM | FORBIDDEN | DEVICE | TOO_MANY | NO_MEMORY
CONTINUES = "then run the same command again: it continues with what is missing."


class SystemFault(ValueError):
    """The system refuses what every attempt needs; the message says what and how to go on."""


def errno_of(error: BaseException) -> int | None:
    """Return the number of the system's error behind an exception, None if there is none."""
    if isinstance(error, MemoryError):
        return errno.ENOMEM
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    if number := RUST_ERRNO.search(str(error)):
        return int(number[1])
    return errno.ENOSPC if FULL.search(str(error)) else None


def is_final(number: int | None) -> bool:
    """Return whether another attempt would end the same way until someone mends the system."""
    return number in FINAL


def concerns_all(number: int | None) -> bool:
    """Return whether all partitions will fail alike: no room, no memory, a store to read only."""
    return number in NO_ROOM | TOO_MANY | NO_MEMORY | {errno.EROFS}


@contextmanager
def final_errors_explained(store: Path) -> Iterator[None]:
    """Raise SystemFault in place of a final error of the system."""
    try:
        yield
    except ValueError:
        raise
    except Exception as error:
        number = errno_of(error)
        if number is None or not is_final(number):
            raise
        explanation = explain(number, store, needed=0)
        raise SystemFault(f"{type(error).__name__}: {error}. {explanation}") from error


def explain(number: int, store: Path, needed: int) -> str:
    """Return sentences on a final error: the state of the store's disk, and what to do.

    `needed` is an estimate in bytes of what is still to be written, 0 if it is not known.
    """
    more = f"; about {needed / 1e6:,.0f} MB more are needed" if needed else ""
    if number in NO_ROOM:
        return f"{room_left(store)}{more}. Make room, or move the store, {CONTINUES}"
    if number in FORBIDDEN:
        return (
            f"{os.strerror(number)} for user {os.geteuid()} in the store {store}. Make the store "
            f"writable and the inputs readable, {CONTINUES}"
        )
    if number in DEVICE:
        return f"{os.strerror(number)}: the disk or its connection fails. Mend it, {CONTINUES}"
    if number in TOO_MANY:
        return f"{os.strerror(number)}. Raise the limit (`ulimit -n`), {CONTINUES}"
    return (
        f"Out of memory. Lower `part_bytes` or `engine.workers`, or find more memory, {CONTINUES}"
    )


def room_left(store: Path) -> str:
    """Return a clause on the room that is left on the store's disk."""
    disk = os.statvfs(store)
    free = disk.f_bavail * disk.f_frsize
    if disk.f_files and not disk.f_favail:
        return f"No inodes are left on the disk of {store} ({disk.f_files:,} files)"
    return f"The disk of {store} is full ({free / 1e6:,.1f} MB are free)"
