"""Errors of the operating system in words: what is full or forbidden, what is needed, what to do.

An error names the path and the machine that failed: a full store, folder of temporary files, shared
memory or DAGSTER_HOME, here or on a node of a cluster. Polars, numpy and SQLite raise errors of
their own for a full disk, without `errno`: Polars has "(os error 28)" in its message, numpy's
`tofile` says how much it could write.
"""

from __future__ import annotations

import errno
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

FULL = re.compile(r"^\d+ requested and \d+ written$|database or disk is full")
CLOSED = re.compile(r"attempt to write a readonly database|unable to open database file")
NO_TEMPORARY = "No usable temporary directory found"
RUST_ERRNO = re.compile(r"\(os error (\d+)\)")
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
FORBIDDEN = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
DEVICE = frozenset({errno.EIO, errno.ENXIO, errno.ENODEV})
TOO_MANY = frozenset({errno.EMFILE, errno.ENFILE})
SHARED_MEMORY = Path("/dev/shm")
FULL_BYTES = 1 << 20
WAYS = {  # in the order of the store and `other_folders`: what else helps
    "store": ", or move the store",
    "temporary files": ", or name another folder in TMPDIR",
    "shared memory": " (in a container: --shm-size)",
    "records": ", or name another folder in DAGSTER_HOME",
}
NO_MEMORY = frozenset({errno.ENOMEM})
FINAL = NO_ROOM | FORBIDDEN | DEVICE | TOO_MANY | NO_MEMORY
CONTINUES = "then run the same command again: it continues with what is missing."


class SystemFault(ValueError):
    """The system refuses what every attempt needs; the message says what and how to go on."""


def errno_of(error: BaseException) -> int | None:
    """Return the number of the system's error behind an exception, None if there is none."""
    if isinstance(error, MemoryError):
        return errno.ENOMEM
    if NO_TEMPORARY in str(error):
        folder = str(other_folders()[0])
        reasons = (errno.ENOSPC, errno.EROFS, errno.EACCES)
        return next((number for number in reasons if refuses(folder, number)), errno.ENOSPC)
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    if number := RUST_ERRNO.search(str(error)):
        return int(number[1])
    if CLOSED.search(str(error)):
        return errno.EROFS
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
        reason = explain(error, number, store).sentence()
        raise SystemFault(f"{type(error).__name__}: {error}. {reason}") from error


class Explanation(NamedTuple):
    """The refusal of the system, its place, and the remedy."""

    fact: str
    remedy: str

    def sentence(self, needed: int = 0) -> str:
        """Return it in words; `needed` is an estimate of the bytes that are still to be written."""
        more = f"; about {needed / 1e6:,.0f} MB more are needed" if needed else ""
        return f"{self.fact}{more}. {self.remedy}, {CONTINUES}"


def explain(error: BaseException, number: int, store: Path | None) -> Explanation:
    """Explain a final error, on the machine where it was raised."""
    path, host = failing_path(error, number, store), socket.gethostname()
    other = WAYS.get(path_kind(path, store), "")
    if number == errno.EFBIG:
        return Explanation(f"A file is larger than is allowed on {host}", "Raise `ulimit -f`")
    if number in NO_ROOM:
        return Explanation(room_left(path, host), f"Make room{other}")
    if number in FORBIDDEN:
        fact = f"{os.strerror(number)} for user {os.geteuid()} in {path} on {host}"
        return Explanation(fact, f"Make it writable, an input readable{other}")
    if number in DEVICE:
        fact = f"{os.strerror(number)}: the disk of {path} on {host}, or its connection, fails"
        return Explanation(fact, "Mend it")
    if number in TOO_MANY:
        fact = f"{os.strerror(number)} on {host}"
        return Explanation(fact, "Raise the limit (`ulimit -n`)")
    fact = f"Out of memory on {host}"
    return Explanation(fact, "Lower `part_bytes` or `engine.workers`, or find more memory")


def failing_path(error: BaseException, number: int, store: Path | None) -> str:
    """Return the path that an error is about: as it says, or else a folder that refuses so."""
    named = named_path(error)
    folders = [str(folder) for folder in (store, *other_folders()) if folder is not None]
    refusing = (path for path in (named, *folders) if path and refuses(path, number))
    return next(refusing, named or folders[0])


def named_path(error: BaseException | None) -> str:
    """Return the path that an error, or one that it is due to, names; "" for none."""
    for each in causes_of(error):
        name = getattr(each, "filename", None)
        if isinstance(name, str | os.PathLike) and os.path.isabs(name):
            return os.fspath(name)
    return ""


def causes_of(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and those that it is due to, each once: they may go round in a circle."""
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        yield error
        seen.append(error)
        error = error.__cause__ or error.__context__


def other_folders() -> tuple[Path, Path, Path]:
    """Return the folders besides the store that a run writes to."""
    records = Path(os.environ.get("DAGSTER_HOME") or ".dagster")
    return Path(os.environ.get("TMPDIR") or "/tmp"), SHARED_MEMORY, records.absolute()


def path_kind(path: str, store: Path | None) -> str:
    """Return which of the folders that a run writes to a path is in; "" for none."""
    places = zip(WAYS, (store, *other_folders()), strict=True)
    within = [(len(str(at)), kind) for kind, at in places if at and Path(path).is_relative_to(at)]
    return max(within, default=(0, ""))[1]


def refuses(path: str, number: int) -> bool:
    """Return whether the place of a path is as an error says: full, read-only or forbidden."""
    place = nearest(path)
    try:
        disk = os.statvfs(place)
    except OSError:
        return False
    if number in NO_ROOM:
        is_without_inodes = bool(disk.f_files) and not disk.f_favail
        return is_without_inodes or disk.f_bavail * disk.f_frsize < FULL_BYTES
    if number == errno.EROFS:
        return bool(disk.f_flag & os.ST_RDONLY)
    return number in FORBIDDEN and not os.access(place, os.R_OK | os.W_OK)


def nearest(path: str) -> Path:
    """Return a path, or the nearest folder above it that exists."""
    return next(place for place in (Path(path), *Path(path).parents) if os.path.lexists(place))


def room_left(path: str, host: str) -> str:
    """Return a clause on the room that is left on the disk of a path."""
    disk = os.statvfs(nearest(path))
    free = disk.f_bavail * disk.f_frsize
    if disk.f_files and not disk.f_favail:
        return f"No inodes are left on the disk of {path} on {host} ({disk.f_files:,} files)"
    return f"The disk of {path} on {host} is full ({free / 1e6:,.1f} MB are free)"
