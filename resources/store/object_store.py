"""A store on an object store: objects under its URL, and copies of them in a scratch.

Of the object store only PUT, create (`If-None-Match: *`), GET, LIST and DELETE are asked for: no
rename, no If-Match, no order of a listing. A published object never changes and its hash is in the
manifest, so that a copy that is there is the object. Records and manifests, which a repair may
replace, are read from the object store; a run, which lists them, keeps copies by their ETag.

An object store has no locks. Writers have leases instead, a run one for all that it writes:

    <store>/_writers/<random>.writer     of a writer that works
    <store>/_writers/<random>.sweeper    of a writer that found itself alone, and removes files

Both are renewed every RENEW_SECONDS. One that was not renewed for its STALE_SECONDS is of a writer
that died. Times are the object store's: those of leases in one listing, compared with that of the
own one. A writer that ends announces itself as sweeper, then looks for other leases; one that
begins writes its lease, then looks for sweepers and waits for them. As every listing shows what was
written before it, one of two sees the other: what a new writer builds on is not removed under it.
"""

from __future__ import annotations

import io
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from io import BufferedRandom
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, BinaryIO, TypeVar, cast

import xxhash

from corpus_loader.places.errors import CorpusError
from corpus_loader.places.object_stores import open_objects
from corpus_loader.places.objects import ObjectInfo, Objects
from corpus_loader.places.transports import read_blocks
from resources.store.disk import make_folder, write_temporary
from resources.store.known_objects import KnownObjects
from resources.store.records import MANIFESTS, RECORDS, StoreError
from resources.store.scratch import LEASES, Scratch, make_room, place_of, use

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

WRITER, SWEEPER = ".writer", ".sweeper"
RENEW_SECONDS = 30.0
# Of a writer longer than the retries of a request, after which a renewal gives up. A sweeper stops
# when it is not renewed, and others wait for it: after a kill, for this long.
STALE_SECONDS = {WRITER: 900.0, SWEEPER: 120.0}
POLL_SECONDS = 0.5


class WriterLease:
    """The hold of a writer: its lease."""

    lock: BufferedRandom | None = None

    def __init__(self, objects: Objects, key: str = "") -> None:
        """`key`: that of a writer in another process, for which this one writes; else a new one."""
        self.objects = objects
        self.is_own = not key
        self.key = key or f"{LEASES}/{uuid.uuid4().hex}"
        self.renewed = 0.0
        self.is_sweeping = False
        self.ended = threading.Event()

    @contextmanager
    def held(self) -> Iterator[WriterLease]:
        """Hold the lease, and renew it in a thread; wait for those that remove files.

        Of another process, that has done so a moment ago.
        """
        self.renewed = time.monotonic() - RENEW_SECONDS
        if self.is_own:
            self.renew()
        renewals = threading.Thread(target=self.renew_until_ended, daemon=True)
        renewals.start()
        try:
            while self.is_own and self.others(SWEEPER):
                time.sleep(POLL_SECONDS)
            yield self
        finally:
            self.ended.set()
            renewals.join()
            self.share()
            if self.is_own:
                self.objects.delete(self.key + WRITER)

    def renew(self) -> None:
        """Write the lease with the time of now."""
        began = time.monotonic()
        self.objects.put(self.key + WRITER, b"")
        if self.is_sweeping:
            self.objects.put(self.key + SWEEPER, b"")
        self.renewed = began

    def renew_until_ended(self) -> None:
        """Renew the lease until the writer ends; a failure shows in `check`."""
        while not self.ended.wait(RENEW_SECONDS):
            try:
                self.renew()
            except (CorpusError, OSError):
                continue

    def others(self, suffix: str) -> list[str]:
        """Return the leases of that kind of other writers that live; dead ones are removed."""
        leases = self.objects.list_objects(LEASES)
        own = next((each.modified for each in leases if each.key == self.key + WRITER), None)
        if own is None:
            raise self.lost()
        others = [each for each in leases if not each.key.startswith(self.key)]
        dead = {each.key for each in others if own - each.modified > stale_after(each.key)}
        for key in dead:
            self.objects.delete(key)
        return [each.key for each in others if each.key.endswith(suffix) and each.key not in dead]

    def is_alone(self) -> bool:
        """Return whether no other writer works here; then none begins until this one has ended."""
        self.is_sweeping = True
        self.renew()
        if self.others(WRITER):
            self.share()
            return False
        return True

    def share(self) -> None:
        """Let other writers begin."""
        if self.is_sweeping:
            self.is_sweeping = False
            self.objects.delete(self.key + SWEEPER)

    def check(self) -> None:
        """Raise StoreError if the lease was not renewed for so long that others may not see it."""
        limit = STALE_SECONDS[SWEEPER if self.is_sweeping else WRITER]
        if time.monotonic() - self.renewed > limit - 2 * RENEW_SECONDS:
            raise self.lost()

    def lost(self) -> StoreError:
        """Return the error of a writer whose lease is gone."""
        return StoreError(
            f"{self.objects.url}/{LEASES}: the lease of this run could not be renewed for "
            "minutes, so that another run may have removed its new files. Nothing more was "
            "committed: run the same command again."
        )


def stale_after(key: str) -> timedelta:
    """Return the time after which a lease that was not renewed is of a dead writer."""
    return timedelta(seconds=STALE_SECONDS[SWEEPER if key.endswith(SWEEPER) else WRITER])


def kept_path(path: Path, etag: str | None) -> Path | None:
    """Return the path of a copy of this state of a record or manifest; None if none is kept.

    None is of what is beside the stages, such as patches: a takedown removes text from them.
    """
    if etag is None or path.parent.name not in (MANIFESTS, RECORDS):
        return None
    state = xxhash.xxh3_64_hexdigest(etag.strip('"').encode())
    return path.with_name(f".{path.name}.{state}")


Item = TypeVar("Item")
Result = TypeVar("Result")
WHOLE_BYTES = 8 << 20  # an object up to here is copied; of a larger one parts are read
COPIES_BEFORE_SWEEP = 0.02  # of the limit, copied by a process before it counts the scratch again


class ObjectFile(io.RawIOBase):
    """An object as a file: each read is a request for a range."""

    def __init__(self, objects: Objects, key: str, num_bytes: int) -> None:
        super().__init__()
        self.objects, self.key, self.num_bytes = objects, key, num_bytes
        self.place = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place in the object."""
        self.place = (0, self.place, self.num_bytes)[whence] + offset
        return self.place

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Read the bytes that follow, as many as the buffer takes and there are."""
        target = memoryview(buffer).cast("B")
        size = max(0, min(len(target), self.num_bytes - self.place))
        target[:size] = self.objects.get_range(self.key, self.place, size)
        self.place += size
        return size


class ObjectStore:
    """The objects behind a scratch, by the paths of their copies."""

    def __init__(self, scratch: Scratch) -> None:
        self.scratch = scratch
        self.objects = open_objects(scratch.remote.url)
        self.unswept = float("inf")  # bytes copied by this process since it counted
        self.guard = Lock()
        self.known: KnownObjects | None = None  # within a session
        self.lease: WriterLease | None = None

    @contextmanager
    def session(self, lease: str = "") -> Iterator[None]:
        """Remember what is listed, and hold one lease for all that is written.

        `lease` is the key of that of another process, for which this one writes.
        """
        if self.lease:
            yield
            return
        with WriterLease(self.objects, lease).held() as self.lease:
            self.known = KnownObjects(self.objects, self.keep_newest)
            try:
                yield
            finally:
                self.known, self.lease = None, None

    def lease_key(self) -> str:
        """Return the key of the lease of this session."""
        return self.lease.key if self.lease else ""

    def begin_step(self, stage: str, *, sweeps: bool = False) -> None:
        """List a stage, and what commands write beside the stages, when it is asked for next."""
        if self.known:
            self.known.begin_step(stage, sweeps=sweeps)

    def write_to(self, folder: Path) -> None:
        """Take no answer on a partition from a listing until `settle`: workers write to it."""
        if self.known:
            self.known.write_to(self.scratch.key(folder))

    def settle(self, folder: Path) -> None:
        """List a partition that workers wrote to when it is asked for next."""
        if self.known:
            self.known.settle(self.scratch.key(folder))

    def children(self, folder: Path) -> Mapping[str, ObjectInfo | None] | None:
        """Return what a session knows to be directly in a folder; None if it must be asked for."""
        return self.known.children(self.scratch.key(folder)) if self.known else None

    def names(self, folder: Path) -> list[str]:
        """Return the names of objects and folders in a folder, sorted."""
        known = self.children(folder)
        return self.objects.names(self.scratch.key(folder)) if known is None else sorted(known)

    def sizes(self, folder: Path) -> dict[str, int]:
        """Return the size of every object directly in a folder."""
        known = self.children(folder)
        if known is None:
            return self.objects.list_folder(self.scratch.key(folder))[0]
        return {name: info.num_bytes for name, info in sorted(known.items()) if info}

    def files_below(self, folder: Path) -> Sequence[str]:
        """Return the key of every object below a folder, relative to it; no leases."""
        key = self.scratch.key(folder)
        known = self.known.below(key) if self.known else None
        found = self.objects.list_objects(key) if known is None else known
        return [
            info.key.removeprefix(f"{key}/")
            for info in found
            if f"/{LEASES}/" not in info.key  # those of earlier versions
        ]

    def size(self, path: Path) -> int | None:
        """Return the size of an object, None if there is none."""
        known = self.children(path.parent)
        info = self.objects.head(self.scratch.key(path)) if known is None else known.get(path.name)
        return None if info is None else info.num_bytes

    def blocks(self, path: Path) -> Iterator[bytes]:
        """Yield the content of an object, not of its copy."""
        return read_blocks(self.objects, self.scratch.key(path))

    def read(self, path: Path) -> bytes:
        """Read a small object: the copy of this state of it if there is one."""
        if (known := self.children(path.parent)) is None:
            return self.objects.get(self.scratch.key(path))
        if (info := known.get(path.name)) is None:
            raise FileNotFoundError(f"{place_of(path)}: there is no such object")
        copy = kept_path(path, info.etag)
        if copy and use(self.scratch, copy):
            return copy.read_bytes()
        content, now = self.objects.get_part(info.key, 0, max(1, info.num_bytes))
        if now != info:  # replaced since it was listed
            return self.objects.get(info.key)
        if copy:
            make_folder(copy.parent)
            os.replace(write_temporary(copy.parent, copy.name, content), copy)
            self.count(len(content))
        return content

    def keep_newest(self, listed: Sequence[ObjectInfo]) -> None:
        """Copy the newest manifest of each partition, many at a time, unless it is here."""
        paths = (self.scratch.root / info.key for info in listed)
        newest = {path.parent: path for path in paths if path.parent.name == MANIFESTS}
        with suppress(FileNotFoundError):  # removed since
            self.each(self.read, [*newest.values()])

    def open(self, path: Path) -> BinaryIO:
        """Open the copy of a small object, or a large one whose parts are requested one by one."""
        if use(self.scratch, path):
            return path.open("rb")
        num_bytes = self.size(path)
        if num_bytes is None:
            raise FileNotFoundError(f"{path}: there is no such object")
        if num_bytes <= WHOLE_BYTES and self.bring(path):
            return path.open("rb")
        return cast(BinaryIO, ObjectFile(self.objects, self.scratch.key(path), num_bytes))

    def bring(self, path: Path) -> bool:
        """Copy an object to its path if it is not there; False if there is no such object."""
        if use(self.scratch, path):
            return True
        make_folder(path.parent)
        try:
            self.objects.get_to_file(self.scratch.key(path), path)
        except FileNotFoundError:
            return False
        self.count(path.stat().st_size)
        return True

    def publish(self, temporary: Path, path: Path) -> None:
        """Write an object from a file, which becomes its copy."""
        if temporary == path and (not path.exists() or self.size(path) == path.stat().st_size):
            return  # published before; if the object is gone since, a copy replaces it
        etag = self.objects.put_from_file(self.scratch.key(path), temporary)
        self.forget(path)
        self.count(temporary.stat().st_size)
        make_folder(path.parent)
        os.replace(temporary, path)
        if copy := kept_path(path, etag):
            with suppress(FileExistsError):
                os.link(path, copy)

    def create(self, path: Path, content: bytes) -> bool:
        """Write an object if the key is free; False if it has other content."""
        self.forget(path)
        return self.objects.create(self.scratch.key(path), content)

    def forget(self, path: Path) -> None:
        """List the partition of a file again when it is asked for."""
        if self.known:
            self.known.forget(self.scratch.key(path))

    def take_away(self, path: Path, aside: Path) -> None:
        """Copy an object to a local file, and delete it."""
        make_folder(aside.parent)
        self.objects.get_to_file(self.scratch.key(path), aside)
        self.remove_all([path])

    def remove_all(self, paths: Sequence[Path]) -> None:
        """Delete objects and their copies."""
        self.objects.delete_all([self.scratch.key(path) for path in paths])
        for path in paths:
            self.forget(path)
            path.unlink(missing_ok=True)

    def each(self, look: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Look at many items at a time: each waits for its requests."""
        return self.objects.each(look, items)

    def sync(self, folder: Path) -> None:
        """Nothing to do: an object is durable when its PUT is answered."""

    @contextmanager
    def hold(self, folder: Path) -> Iterator[WriterLease]:
        """Hold the store by a lease, a small object that is renewed until this is closed."""
        make_folder(folder)
        if self.lease:
            yield self.lease
            return
        with WriterLease(self.objects).held() as lease:
            yield lease

    def count(self, num_bytes: int) -> None:
        """Count bytes that come to the scratch; from time to time make room for them."""
        with self.guard:
            self.unswept += num_bytes
            if self.unswept > COPIES_BEFORE_SWEEP * self.scratch.remote.max_bytes:
                make_room(self.scratch, num_bytes)
                self.unswept = 0
