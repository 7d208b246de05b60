"""An input file of a source, and the slices that it is read in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

from resources.settings.sources import ZSTD_WINDOW_LOG

Compression = Literal["gz", "zst", "bz2", "xz"]
Content = bytes  # InputFile has a field of that name
Fetch = Callable[[int, int], bytes]  # exactly the bytes [start, stop), by several attempts if need


class ChangedFileError(RuntimeError):
    """A file is not the one that its part was planned with; the next planning sees the new one."""


class Border(NamedTuple):
    """Start of a record at which a file may be cut.

    place    the byte of the file at which reading, or decompression, begins; of a row group the
             unpacked bytes of those before it
    skip     bytes of the content between that place and the record
    offset   the record's place in the content, bytes
    row      records before it, where the format counts records
    line     lines before it
    """

    place: int
    skip: int
    offset: int
    row: int
    line: int


class Span(NamedTuple):
    """The records of a file from a border to another."""

    first: Border
    end: Border


Unit = Literal["stream", "bytes", "records", "row_groups", "row_group"]

STREAM_END = 2**63 - 1
BEGIN = Border(0, 0, 0, 0, 0)
WHOLE = Span(BEGIN, Border(STREAM_END, 0, STREAM_END, 0, 0))


@dataclass(frozen=True)
class Slice:
    """Part of a file: the whole ("stream"), or its bytes or row groups [start, stop).

    "records" are those of `span`, from byte `start` of the content up to `stop`. "row_group" is one
    that is too large to be a part, and is read as several.
    """

    index: int
    unit: Unit
    start: int
    stop: int
    span: Span = WHOLE

    @property
    def num_bytes(self) -> int:
        """Bytes of its content; of row groups as Parquet counts them, before compression."""
        if self.unit in ("row_groups", "row_group"):
            return self.span.end.place - self.span.first.place
        return self.stop - self.start


WHOLE_FILE = Slice(0, "stream", 0, STREAM_END)
LOOK = Border(STREAM_END, 0, 65 << 20, 0, 0)  # a reader of posts gives records once it has all
BEGINNING = replace(WHOLE_FILE, span=Span(BEGIN, LOOK))


class InputFile(NamedTuple):
    """One input file: a tuple of strings, as a plan may hold a million of them.

    place    its path on this machine, or the URL from which it is read by ranges
    name     its identity
    digest   the xxh3_128 of its bytes (32 hex); of a remote file a fingerprint of its version
    blocks   an xxh3_64 per BLOCK_BYTES (16 hex each), of a local file with more than one block
    content  its bytes, if they are in memory: of a small remote file that is being read
    requests_per_second   most that are sent to its host for it and its like; 0: no limit
    zstd_window_log       largest window of a zst frame that is read, log2 of its bytes
    fetch_of              return the function that fetches ranges of it, if it is remote
    """

    place: str
    name: str
    format: str
    compression: Compression | None
    bytes: int
    digest: str
    blocks: str = ""
    content: Content | None = None
    requests_per_second: float = 0.0
    zstd_window_log: int = ZSTD_WINDOW_LOG
    fetch_of: Callable[[InputFile], Fetch] | None = None

    def __repr__(self) -> str:
        """Name the file only: its place may be a URL with secrets, its content is long."""
        return f"InputFile({self.name!r})"

    @property
    def is_remote(self) -> bool:
        """Return whether the file is on another machine, and read by ranges."""
        return "://" in self.place and not self.place.startswith("/")

    @property
    def path(self) -> Path:
        """Path of the file on this machine."""
        return Path(self.place)
