"""Media of a store: a local disk, or an object store behind a scratch folder.

Both have the same layout, and every path is a local one. On a disk it is the file itself. On an
object store it is the place of a copy in the scratch (scratch.py), which is made when the file is
needed: transforms and kernels read local, mapped files either way. A store needs no more of a
medium than what is here: no rename, no lock, no order of a listing.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from io import BufferedRandom
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, BinaryIO, TypeAlias, TypeVar

from resources.store.disk import (
    HASH_BLOCK_BYTES,
    begin_to_flush,
    files_below,
    make_folder,
    sizes_in,
    sync_all,
    sync_folder,
    try_lock_alone,
    write_temporary,
)
from resources.store.scratch import Scratch, scratch_of

if TYPE_CHECKING:
    from resources.store.object_store import ObjectStore, WriterLease

Item = TypeVar("Item")
Result = TypeVar("Result")


class DiskHold:
    """The hold of a writer on a partition, which others can see: a shared flock on its lock file.

    The content of that file is the writers' own.
    """

    def __init__(self, lock: BufferedRandom) -> None:
        self.lock = lock

    def is_alone(self) -> bool:
        """Return whether no other writer works on the partition; none begins until `share`."""
        return try_lock_alone(self.lock.fileno())

    def share(self) -> None:
        """Let other writers begin."""
        fcntl.flock(self.lock, fcntl.LOCK_SH)

    def check(self) -> None:
        """Raise nothing: the system releases a lock with its process, and not before."""


class LocalDisk:
    """Files on a local disk, by their paths; object_store.py has the same methods for objects."""

    def names(self, folder: Path) -> list[str]:
        """Return the names of files and folders in a folder, sorted; none without the folder."""
        try:
            return sorted(os.listdir(folder))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def sizes(self, folder: Path) -> dict[str, int]:
        """Return the size of every file in a folder, by name; nothing without the folder."""
        return sizes_in(folder)

    def files_below(self, folder: Path) -> Sequence[str]:
        """Return the path of every file below a folder, relative to it."""
        return list(files_below(folder))

    def size(self, path: Path) -> int | None:
        """Return the size of a file in bytes, None if there is none."""
        try:
            status = path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return status.st_size if S_ISREG(status.st_mode) else None

    def blocks(self, path: Path) -> Iterator[bytes]:
        """Yield the content of a file, block by block."""
        with open(path, "rb", buffering=0) as file:
            while block := file.read(HASH_BLOCK_BYTES):
                yield block

    def read(self, path: Path) -> bytes:
        """Read a small file as it is now; FileNotFoundError if there is none."""
        return path.read_bytes()

    def open(self, path: Path) -> BinaryIO:
        """Open a file of which parts are read; FileNotFoundError if there is none."""
        return path.open("rb")

    def bring(self, path: Path) -> bool:
        """Make sure that a published file is at its path; False if there is none."""
        return path.is_file()

    def publish(self, temporary: Path, path: Path) -> None:
        """Give a file its final name, over any that has it; readers never see a part of it.

        `sync` flushes it, which begins here.
        """
        begin_to_flush(temporary)
        os.replace(temporary, path)

    def create(self, path: Path, content: bytes) -> bool:
        """Write a manifest if the name is free; False if it has other content.

        It survives a power cut, and all that was published in its partition before does, too. By
        link(2), which fails if the name exists.
        """
        make_folder(path.parent)
        temporary = write_temporary(path.parent, path.name, content)
        sync_all(path.parent.parent)
        try:
            os.link(temporary, path)
        except FileExistsError:
            return path.read_bytes() == content
        finally:
            temporary.unlink()
        sync_folder(path.parent)
        return True

    def take_away(self, path: Path, aside: Path) -> None:
        """Move a file out of the store, to a local path; `publish` gives it back."""
        path.rename(aside)

    def remove_all(self, paths: Sequence[Path]) -> None:
        """Remove files that are there."""
        for path in paths:
            path.unlink(missing_ok=True)

    def each(self, look: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Look at items with this medium, as many at a time as it pays; return what was found."""
        return [look(item) for item in items]

    @contextmanager
    def session(self, _lease: str = "") -> Iterator[None]:
        """Nothing to remember: a disk answers at once."""
        yield

    def lease_key(self) -> str:
        """Return no key: writers have locks."""
        return ""

    def begin_step(self, stage: str, *, sweeps: bool = False) -> None:
        """Nothing to forget."""

    def write_to(self, folder: Path) -> None:
        """Nothing to forget."""

    settle = write_to

    def sync(self, folder: Path) -> None:
        """Make what was published below a folder survive a power cut."""
        sync_all(folder)

    @contextmanager
    def hold(self, folder: Path) -> Iterator[DiskHold]:
        """Hold a partition as a writer; the lock ends with the process."""
        make_folder(folder)
        with open(folder / ".lock", "a+b") as lock:
            yield DiskHold(lock)


Medium: TypeAlias = "LocalDisk | ObjectStore"
Hold: TypeAlias = "DiskHold | WriterLease"
DISK = LocalDisk()


def medium_of(folder: Path) -> Medium:
    """Return the medium of a store, by its root or any folder below."""
    scratch = scratch_of(folder)
    return DISK if scratch is None else objects_behind(scratch)


@lru_cache
def objects_behind(scratch: Scratch) -> Medium:
    """Return the object store behind a scratch: one client per process."""
    from resources.store.object_store import ObjectStore

    return ObjectStore(scratch)
