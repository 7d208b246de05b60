"""Leases of the writers of a partition on an object store, which has no locks.

    <partition>/_writers/<random>.writer     of a writer that works
    <partition>/_writers/<random>.sweeper    of a writer that found itself alone, and removes files

Both are renewed every RENEW_SECONDS. One that was not renewed for its STALE_SECONDS is of a writer
that died. Times are the object store's: those of leases in one listing, compared with that of the
own one. A writer that ends
announces itself as sweeper, then looks for other leases; one that begins writes its lease, then
looks for sweepers and waits for them. As every listing shows what was written before it, one of two
sees the other: what a new writer builds on is not removed under it.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from io import BufferedRandom

from corpus_loader.places.errors import CorpusError
from corpus_loader.places.objects import Objects
from resources.store.store_errors import StoreError

LEASES = "_writers"
WRITER, SWEEPER = ".writer", ".sweeper"
RENEW_SECONDS = 30.0
# Of a writer longer than the retries of a request, after which a renewal gives up. A sweeper stops
# when it is not renewed, and others wait for it: after a kill, for this long.
STALE_SECONDS = {WRITER: 900.0, SWEEPER: 120.0}
POLL_SECONDS = 0.5


class WriterLease:
    """The lease of a writer on a partition (a Hold)."""

    lock: BufferedRandom | None = None

    def __init__(self, objects: Objects, folder: str) -> None:
        """`folder` is the partition's key."""
        self.objects = objects
        self.prefix = f"{folder}/{LEASES}"
        self.key = f"{self.prefix}/{uuid.uuid4().hex}"
        self.renewed = 0.0
        self.is_sweeping = False
        self.ended = threading.Event()

    @contextmanager
    def held(self) -> Iterator[WriterLease]:
        """Hold the lease, and renew it in a thread; wait for those that remove files."""
        self.renew()
        renewals = threading.Thread(target=self.renew_until_ended, daemon=True)
        renewals.start()
        try:
            while self.others(SWEEPER):
                time.sleep(POLL_SECONDS)
            yield self
        finally:
            self.ended.set()
            renewals.join()
            for suffix in (SWEEPER, WRITER):
                self.objects.delete(self.key + suffix)

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
        leases = self.objects.list_objects(self.prefix)
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
            f"{self.objects.url}/{self.prefix}: the lease of this run could not be renewed for "
            "minutes, so that another run may have removed its new files. Nothing more was "
            "committed: run the same command again."
        )


def stale_after(key: str) -> timedelta:
    """Return the time after which a lease that was not renewed is of a dead writer."""
    return timedelta(seconds=STALE_SECONDS[SWEEPER if key.endswith(SWEEPER) else WRITER])
