"""Inputs of a task that reads raw documents: a slice, a group of small files, or a stream.

A part costs 15 ms and three files in every stage, however little is in it. So files of less than a
quarter of `part_bytes` are read together, in name order. The borders between groups depend on the
names and sizes of the files near them: a file that comes or goes changes its own group, and at most
those beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from assets.raw.raw_records import EntryRange
from assets.raw.readers.formats import format_of
from assets.raw.readers.input_file import InputFile, Slice
from assets.raw.readers.input_record import Patch
from resources.content_windows import content_windows
from resources.settings.full_source import Source

SMALL_SHARE = 4  # a file of more than part_bytes / 4 has parts of its own: at most 4 times as many
MOST_PARTS = 1.5  # of part_bytes in a group: groups are half full on average, and then hold 0.8
UNPACKED = 4  # bytes of text per byte of a compressed file: web text in gz 3, in zst 4, in xz 5


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


def text_bytes(file: InputFile) -> int:
    """Return the size of a file's text, as far as its name tells."""
    is_packed = file.compression is not None or format_of(file).is_packed
    return file.bytes * UNPACKED if is_packed else file.bytes


def group_files(files: Sequence[InputFile], part_bytes: int) -> list[tuple[InputFile, ...]]:
    """Group the small files among files that are sorted by name; each other one is alone.

    The groups are sorted by their first files.
    """
    small = [file for file in files if text_bytes(file) * SMALL_SHARE <= part_bytes]
    large = [file for file in files if text_bytes(file) * SMALL_SHARE > part_bytes]
    windows = content_windows(
        [file.name for file in small],
        [text_bytes(file) for file in small],
        most_bytes(part_bytes),
    )
    groups = [*(tuple(small[window]) for window in windows), *((file,) for file in large)]
    return sorted(groups, key=lambda group: group[0].name)


def most_bytes(part_bytes: int) -> int:
    """Return the size of the largest group, by `text_bytes`."""
    return int(part_bytes * MOST_PARTS)
