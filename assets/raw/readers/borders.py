"""Borders of records in a large file, between which it is read in independent slices.

    a file -> the start of a record behind every `part_bytes` of content, with its row and line

CSV and text are read once for it: only from the start of the file is it known what a quote opens,
and how many rows come before. A compressed file is decompressed once; it can be cut behind the
start of a member (gz, bz2, xz) or frame (zst), which is where decompression can begin. One that is
damaged, or about whose records any doubt remains, is not cut: it is read as one stream. So is one
on another machine without a second member in its first 8 MiB: to look on is to fetch it twice.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections import deque
from collections.abc import Callable, Iterator

import numpy as np

from assets.raw.readers.decompress import BLOCK_BYTES, BrokenStream, placed_blocks
from assets.raw.readers.file_content import foreign_content
from assets.raw.readers.input_file import Border, Compression, InputFile
from assets.raw.readers.open_input import open_input

NEVER = 2**62
AT, ROWS, LINES, STATE_SIZE = 0, 3, 4, 5  # of the state of the kernels
MEMBERS: dict[Compression, re.Pattern[bytes]] = {  # how a member begins: a few others match, too
    "gz": re.compile(rb"\x1f\x8b\x08[\0-\x1f].{4}[\0\x02\x04][\0-\x0d\xff]", re.DOTALL),
    "bz2": re.compile(rb"BZh[1-9]1AY&SY"),
    "xz": re.compile(rb"\xfd7zXZ\0"),
    "zst": re.compile(rb"\x28\xb5\x2f\xfd"),
}
MEMBER_BYTES = 10  # of the longest pattern
PROBED_BYTES = 8 << 20  # bgzip's members have 64 KiB, seekable zst's frames a few MB
Starts = Callable[[Iterator[bytes]], Iterator[tuple[int, int]]]  # offset and row of records


def has_members(file: InputFile) -> bool:
    """Return whether a compressed file has more than one member or frame, or may have.

    Of a remote file only the beginning is asked: most have one member, and are not read for it.
    """
    assert file.compression is not None
    most = min(file.bytes, PROBED_BYTES) if file.is_remote else file.bytes
    with open_input(file, most) as stream:
        pattern, before = MEMBERS[file.compression], b""
        start = 1  # the first byte of the file begins the first member
        while stream.tell() < most and (block := stream.read(BLOCK_BYTES)):
            data = before + block
            if pattern.search(data, start):
                return True
            before, start = data[-MEMBER_BYTES:], 0
    return False


def text_borders(
    file: InputFile, records: Lines | KernelRecords, part_bytes: int
) -> Iterator[Border]:
    """Yield a border behind every `part_bytes`, and then the end."""
    is_plain = file.compression is None
    entry = Border(0, 0, part_bytes if is_plain else NEVER, 0, 0)
    last = end = place = 0
    for block in placed_blocks(file):
        if end == 0 and (
            len(block.data) < len(BOM_UTF8) or foreign_content(block.data, None, file.format)
        ):
            raise BrokenStream("no text, or a mark of UTF-8 in two blocks")
        if block.place != place and entry.offset == NEVER and end - last >= part_bytes:
            entry = Border(block.place, 0, end, 0, 0)
        place = block.place
        records.feed(block.data, end)
        while (found := records.next(entry.offset)) is not None:
            last, row, line = found
            if row < 0:  # the header of a table
                continue
            if is_plain:
                yield Border(last, 0, last, row, line)
                entry = entry._replace(offset=last + part_bytes)
            else:
                yield Border(entry.place, last - entry.offset, last, row, line)
                entry = entry._replace(offset=NEVER)
        end += len(block.data)
    yield Border(file.bytes, 0, end, 0, 0)


def start_borders(file: InputFile, starts: Starts, part_bytes: int) -> Iterator[Border]:
    """Yield a border at the first start behind every `part_bytes`, and then the end.

    Of a compressed file that is the first one behind a place where decompression can begin.
    """
    entries = deque[Border]()  # such places, the last of them at or before the next start
    end = 0

    def blocks() -> Iterator[bytes]:
        nonlocal end
        place = -1
        for block in placed_blocks(file):
            if block.place != place:
                entries.append(Border(block.place, 0, end, 0, 0))
            place = block.place
            end += len(block.data)
            yield block.data

    last = 0
    for offset, row in starts(blocks()):
        while len(entries) > 1 and entries[1].offset <= offset:
            entries.popleft()
        if offset - last < part_bytes:
            continue
        if file.compression is None:
            yield Border(offset, 0, offset, row, 0)
            last = offset
        elif entries[0].offset > last:
            yield Border(entries[0].place, offset - entries[0].offset, offset, row, 0)
            last = offset
    yield Border(file.bytes, 0, end, 0, 0)


class Lines:
    """Starts of lines."""

    def feed(self, data: bytes, base: int) -> None:
        """Go on with the next block, which begins at byte `base` of the content."""
        self._data, self._base, self._at = data, base, 0
        self._lines = getattr(self, "_lines", 0)

    def next(self, wanted: int) -> tuple[int, int, int] | None:
        """Return the offset of the first start at or behind `wanted`, and rows and lines before.

        None: there is none in the block.
        """
        newline = self._data.find(b"\n", max(wanted - 1 - self._base, self._at))
        end = newline + 1 or len(self._data)
        self._lines += self._data.count(b"\n", self._at, end)
        self._at = end
        return (self._base + end, 0, self._lines) if newline >= 0 else None


class KernelRecords:
    """Starts of records, found by a kernel; it may count a row more than there are before each.

    Of text it is that one, of a table the header. A mark of UTF-8, `bom`, is not read.
    """

    def __init__(
        self, kernel: Callable[..., int], bom: bytes, *, counts_one_more: bool = True
    ) -> None:
        self._kernel = kernel
        self._bom = bom
        self._more = int(counts_one_more)
        self._state = np.zeros(STATE_SIZE, np.int64)

    def feed(self, data: bytes, base: int) -> None:
        """Go on with the next block, which begins at byte `base` of the content."""
        self._data, self._base = np.frombuffer(data, np.uint8), base
        self._state[AT] = len(self._bom) if base == 0 and data.startswith(self._bom) else 0

    def next(self, wanted: int) -> tuple[int, int, int] | None:
        """Return what `Lines.next` returns."""
        found = self._kernel(self._data, self._base, wanted, self._state)
        row, line = self._state[[ROWS, LINES]].tolist()
        return (found, row - self._more, line) if found >= 0 else None
