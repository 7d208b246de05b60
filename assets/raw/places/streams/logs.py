"""Logs of entries as planning and reading see them, whatever serves them.

A stream of Redis is one log, a topic of Kafka has one per partition. The server keeps no offset
for us: it is in the manifest, with the documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol

OPEN = "("  # before an id where a range begins behind it, as Redis writes it


class StreamError(RuntimeError):
    """A server that does not answer, or not as it should; another attempt may succeed."""


class LostEntriesError(ValueError):
    """Entries that were published once, and that the server has no more."""


class Entry(NamedTuple):
    """One entry: its id as the server writes it, its row, and its fields."""

    id: str
    row: int | None
    fields: Mapping[bytes, bytes]

    @property
    def bytes(self) -> int:
        """Bytes of the fields."""
        return sum(len(name) + len(value) for name, value in self.fields.items())


class LogStatus(NamedTuple):
    """Entries of a log now.

    first       the first one there; "" if none is
    last        the newest that there ever was; "" if none was
    num_there   entries that are there
    num_added   entries that there ever were
    """

    first: str
    last: str
    num_there: int
    num_added: int


class Log(Protocol):
    """A log of entries; `name` is its identity, and `unit` that of its positions."""

    name: str
    unit: str

    def status(self) -> LogStatus | None:
        """Return what is there; None if there is no such log."""

    def order(self, entry_id: str) -> int:
        """Return a number by which ids are ordered."""

    def read(self, start: str, last: str) -> Iterator[Entry]:
        """Yield the entries from `start` (OPEN before it: behind it) up to `last`, in order."""
