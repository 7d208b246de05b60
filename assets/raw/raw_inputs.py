"""Inputs of a task that reads raw documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from assets.raw.places.patch_files import Patch
from assets.raw.raw_records import EntryRange
from assets.raw.readers.input_file import InputFile, Slice
from resources.settings.sources import Source


class Cap(NamedTuple):
    """Most bytes of text and most documents of a source, or what is left of them; None: any."""

    num_bytes: int | None = None
    documents: int | None = None

    def after(self, num_bytes: int, documents: int) -> Cap:
        """Return what is left of the cap."""
        return Cap(
            None if self.num_bytes is None else self.num_bytes - num_bytes,
            None if self.documents is None else self.documents - documents,
        )

    def is_spent(self) -> bool:
        """Return whether nothing is left."""
        return any(left is not None and left <= 0 for left in self)

    def is_crossed(self) -> bool:
        """Return whether there was more than the cap."""
        return any(left is not None and left < 0 for left in self)

    def key(self) -> list[int | None] | int | None:
        """Return what fingerprints hold; of a cap of bytes alone its number."""
        return self.num_bytes if self.documents is None else [*self]


NO_CAP = Cap()


@dataclass(frozen=True)
class StreamPart:
    """A range of a stream, by the stream's identity; `is_known`: published before."""

    name: str
    entries: EntryRange
    is_known: bool


@dataclass(frozen=True)
class RawInputs:
    """Inputs of a task: a slice of one file, a group of small files that are read whole, a stream.

    `patches` are those of records among them, in the order in which they came. The first
    `takedowns` of the store are obeyed. `unpatched` are the fingerprints that a stream's part had
    with fewer of both, the last one first. Reading stops after the chunk in which the texts reach
    `cap`, and soon after its documents. Of a stream there are no files.
    """

    files: tuple[InputFile, ...]
    file_slice: Slice | None
    source: Source
    part_bytes: int
    cap: Cap = NO_CAP
    stream: StreamPart | None = None
    patches: tuple[Patch, ...] = ()
    unpatched: tuple[str, ...] = ()
    takedowns: int = 0
