"""Find where a large file can be cut into slices that are read independently.

    a file -> the start of a record behind every `part_bytes` of content, with its row and line

CSV and text are read once for it: only from the start of the file is it known what a quote opens,
and how many rows come before. A compressed file is decompressed once; it can be cut behind the
start of a member (gz, bz2, xz) or frame (zst), which is where decompression can begin. One that is
damaged, or about whose records any doubt remains, is not cut: it is read as one stream. So is one
on another machine without a second member in its first 8 MiB: to look on is to fetch it twice.
"""

from __future__ import annotations

import io
import re
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from assets.raw.places.open_input import open_input
from assets.raw.readers.decompress import BLOCK_BYTES, BrokenStream, placed_blocks
from assets.raw.readers.file_content import foreign_content
from assets.raw.readers.input_file import Border, Compression, InputFile, InputFormat
from assets.raw.readers.read_arrow import arrow_starts
from assets.raw.readers.read_lines import BOM
from assets.raw.readers.read_tables import SEPARATORS, read_header, separator_of
from assets.raw.readers.read_tar import tar_starts
from assets.raw.readers.read_warc import warc_starts
from assets.raw.readers.read_zip import zip_borders
from assets.raw.readers.zstd_frames import frame_spans
from resources.settings.sources import SourceConfig

NEVER = 2**62
AT, ROWS, LINES, STATE_SIZE = 0, 3, 4, 5  # of the state of the kernels
MEMBERS: dict[Compression, re.Pattern[bytes]] = {  # how a member begins: a few others match, too
    "gz": re.compile(rb"\x1f\x8b\x08[\0-\x1f].{4}[\0\x02\x04][\0-\x0d\xff]", re.DOTALL),
    "bz2": re.compile(rb"BZh[1-9]1AY&SY"),
    "xz": re.compile(rb"\xfd7zXZ\0"),
}
MEMBER_BYTES = 10  # of the longest pattern
Starts = Callable[[Iterator[bytes]], Iterator[tuple[int, int]]]  # offset and row of records
STARTS: dict[InputFormat, Callable[..., Iterator[tuple[int, int]]]] = {
    "warc": warc_starts,
    "wet": warc_starts,
    "tar": tar_starts,
    "arrow": arrow_starts,
}
CONTENT_PER_TEXT = {"warc": 8}  # bytes of pages per byte of their main text
PROBED_BYTES = 8 << 20  # bgzip's members have 64 KiB, seekable zst's frames a few MB


def is_cuttable(file: InputFile, source: SourceConfig) -> bool:
    """Return whether a file's format has borders that are found by reading it."""
    match file.format:
        case "jsonl":
            return file.compression is not None  # plain JSON lines are cut anywhere
        case "csv" | "tsv":
            return True
        case "txt":
            return source.text_documents == "blank_line"
        case "zip":
            return file.compression is None
    return file.format in STARTS and not file.is_remote  # else all of it is fetched twice


def find_borders(file: InputFile, source: SourceConfig, part_bytes: int) -> list[Border]:
    """Return the borders of a cuttable file behind every `part_bytes`, and its end as the last.

    There are none if it is to be read as one stream.
    """
    if file.format == "zip":
        return zip_borders(file, part_bytes)
    if file.compression is not None and not _has_members(file):
        return []
    if file.format in SEPARATORS and read_header(file, source) is None:
        return []
    try:
        if starts := STARTS.get(file.format):
            found = _borders_at(file, partial(starts, file, source), part_bytes)
        else:
            found = _borders(file, _finder(file, source), part_bytes)
        *borders, end = found
    except BrokenStream:
        return []
    borders = [border for border in borders if border.offset < end.offset]
    return [*borders, end] if borders else []


def _has_members(file: InputFile) -> bool:
    """Return whether a compressed file has more than one member or frame, or may have.

    Of a remote file only the beginning is asked: most have one member, and are not read for it.
    """
    assert file.compression is not None
    most = min(file.bytes, PROBED_BYTES) if file.is_remote else file.bytes
    with open_input(file, most) as stream:
        if file.compression == "zst":
            head = io.BytesIO(stream.read(most)) if file.is_remote else stream
            return next(frame_spans(head, most))[1] < most
        pattern, before = MEMBERS[file.compression], b""
        start = 1  # the first byte of the file begins the first member
        while stream.tell() < most and (block := stream.read(BLOCK_BYTES)):
            data = before + block
            if pattern.search(data, start):
                return True
            before, start = data[-MEMBER_BYTES:], 0
    return False


def _borders(
    file: InputFile, records: _Lines | _KernelRecords, part_bytes: int
) -> Iterator[Border]:
    """Yield a border behind every `part_bytes`, and then the end."""
    is_plain = file.compression is None
    entry = Border(0, 0, part_bytes if is_plain else NEVER, 0, 0)
    last = end = place = 0
    for block in placed_blocks(file):
        if end == 0 and (
            len(block.data) < len(BOM) or foreign_content(block.data, None, file.format)
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


def _borders_at(file: InputFile, starts: Starts, part_bytes: int) -> Iterator[Border]:
    """Yield a border at the first start behind every `part_bytes`, and then the end.

    Of a compressed file that is the first one behind a place where decompression can begin.
    """
    entries = deque[Border]()  # such places, the last of them at or before the next start
    end = 0
    part_bytes *= CONTENT_PER_TEXT.get(file.format, 1)

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


class _Lines:
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


class _KernelRecords:
    """Starts of records, found by a kernel; it counts one row more than there are before each.

    Of text it is that one, of a table the header. A mark of UTF-8, `bom`, is not read.
    """

    def __init__(self, kernel: Callable[..., int], bom: bytes) -> None:
        self._kernel = kernel
        self._bom = bom
        self._state = np.zeros(STATE_SIZE, np.int64)

    def feed(self, data: bytes, base: int) -> None:
        """Go on with the next block, which begins at byte `base` of the content."""
        self._data, self._base = np.frombuffer(data, np.uint8), base
        self._state[AT] = len(self._bom) if base == 0 and data.startswith(self._bom) else 0

    def next(self, wanted: int) -> tuple[int, int, int] | None:
        """Return what `_Lines.next` returns."""
        found = self._kernel(self._data, self._base, wanted, self._state)
        row, line = self._state[[ROWS, LINES]].tolist()
        return (found, row - 1, line) if found >= 0 else None


def _finder(file: InputFile, source: SourceConfig) -> _Lines | _KernelRecords:
    if file.format == "jsonl":
        return _Lines()
    from assets.raw.kernels.record_starts import next_csv_row, next_paragraph

    most = source.max_record_bytes
    if file.format == "txt":
        return _KernelRecords(partial(next_paragraph, most), b"")
    rules = (most, ord(separator_of(file, source)), source.quoting == "standard")
    return _KernelRecords(partial(next_csv_row, rules), BOM)
