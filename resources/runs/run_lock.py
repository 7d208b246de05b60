"""A lock that the system releases with the process that holds it, whatever ends that process.

One per store lets its runs work one after the other; one per run proves that its process is alive.
They hold on a local disk. A network disk may keep locks per machine only, or refuse them: then
runs on several machines do not wait for each other, and the store's own rules still keep it whole
(of two writers of a partition, one commits).
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from resources.store.disk import remove_temporaries
from resources.store.inventory import LOCK_NAME as LOCK_NAME
from resources.store.records import to_json

POLL_SECONDS = 0.5
FIRST_NOTE_SECONDS, LONGEST_NOTE_SECONDS = 30.0, 600.0
NO_LOCKS = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS}

_held: set[int] = set()


def close_inherited() -> None:
    """Close the locks that a forked child has from its parent: it would hold them, too."""
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


os.register_at_fork(after_in_child=close_inherited)


class Holder(msgspec.Struct, frozen=True):
    """The run that holds a store's lock, as the lock's file names it."""

    run_id: str
    job: str
    pid: int
    host: str
    since: str

    def __str__(self) -> str:
        run = f"run {self.run_id[:8]} of {self.job}" if self.run_id else self.job
        return f"{run} (process {self.pid} on {self.host}, since {self.since})"


def this_holder(run_id: str, job: str) -> Holder:
    """Return the holder that a run of this process is."""
    since = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return Holder(run_id, job, os.getpid(), socket.gethostname(), since)


def try_take(path: Path, content: bytes = b"") -> int | None:
    """Take a lock and write its file; return its descriptor, or None if it is held."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if is_file_at(descriptor, path):
                os.ftruncate(descriptor, 0)
                os.write(descriptor, content)
                _held.add(descriptor)
                return descriptor
        except BlockingIOError:
            return None
        finally:
            if descriptor not in _held:  # or its last holder has just removed the file
                os.close(descriptor)


def release(path: Path, descriptor: int) -> None:
    """Remove the file of a lock, then give the lock up; it cannot be taken in between."""
    path.unlink(missing_ok=True)
    close(descriptor)


def close(descriptor: int) -> None:
    """Give a lock up, and leave its file."""
    _held.discard(descriptor)
    os.close(descriptor)


def is_file_at(descriptor: int, path: Path) -> bool:
    """Return whether an open file is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def read_holder(path: Path) -> Holder | None:
    """Return who holds a lock, None while its file is not there or not written yet."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Holder)
    except (OSError, msgspec.MsgspecError):
        return None


@contextmanager
def run_lock(
    store: Path, holder: Holder, tell: Callable[[str], None], pause: Callable[[float], None]
) -> Iterator[int | None]:
    """Hold the lock of a store; while another run holds it, wait and tell for whom.

    Yields its descriptor, which a process has to keep that is to hold it, too; None without locks.
    What killed writers left beside the stages is removed. `pause` sleeps for so many seconds, and
    raises to end the wait.
    """
    path = store / LOCK_NAME
    store.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = wait_for(path, to_json(holder), tell, pause)
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        tell(f"{path}: this disk has no locks ({error.strerror}). Start one run at a time.")
        yield None
        return
    try:
        for beside in store.glob("_*"):  # the stages, which their own writers sweep
            remove_temporaries(beside)
        yield descriptor
    finally:
        release(path, descriptor)


def wait_for(
    path: Path, content: bytes, tell: Callable[[str], None], pause: Callable[[float], None]
) -> int:
    """Return the descriptor of a lock as soon as it is free."""
    start = time.monotonic()
    next_note, interval = 0.0, FIRST_NOTE_SECONDS
    while (descriptor := try_take(path, content)) is None:
        waited = time.monotonic() - start
        if waited >= next_note:
            who = read_holder(path) or "another run"
            tell(f"Waiting for {who} to end: it works on {path.parent}. Waited {waited:.0f} s.")
            next_note, interval = waited + interval, min(2 * interval, LONGEST_NOTE_SECONDS)
        pause(POLL_SECONDS)
    if next_note:
        tell(f"The store is free after {time.monotonic() - start:.0f} s.")
    return descriptor
