"""Line-based formats: JSON lines and plain text.

One `split` cuts the lines of a 1 MiB block. A line above the cap is skipped to its newline and not
held in memory. The row of a JSON line is the byte offset of its start in the uncompressed stream:
the line number of a slice in the middle of a file is unknown without reading everything before it,
which is done only for slices with a record in quarantine.
"""

from collections.abc import Iterable, Iterator
from itertools import chain, dropwhile
from typing import NamedTuple

from assets.raw.readers.decompress import BrokenStream, read_blocks
from assets.raw.readers.documents import RAW_LIMIT_BYTES
from assets.raw.readers.input_file import InputFile
from assets.raw.readers.input_record import InputRecord, parse_record
from resources.settings.sources import SourceConfig

BOM = b"\xef\xbb\xbf"


class Line(NamedTuple):
    """A line without its newline; with an `error`, `data` is not the whole line."""

    offset: int
    data: bytes
    error: str = ""


def split_lines(blocks: Iterable[bytes], offset: int, max_bytes: int) -> Iterator[Line]:
    """Yield the lines of a stream that starts at `offset`; memory: max_bytes + two blocks.

    A line above `max_bytes`, and the rest before a break, are lines with an error. A break where
    only a checksum is wrong has no rest: the last line is whole.
    """
    parts: list[bytes] = []  # the unfinished line; its tail is dropped once it is above max_bytes
    pending = 0
    try:
        for block in blocks:
            first, *lines = block.split(b"\n")
            parts, pending = _extend(parts, pending, first, max_bytes)
            if not lines:
                continue
            yield _line(offset, b"".join(parts), pending, max_bytes)
            offset += pending + 1
            rest = lines.pop()
            for line in lines:
                yield _line(offset, line, len(line), max_bytes)
                offset += len(line) + 1
            parts, pending = [rest], len(rest)
    except BrokenStream as error:
        if error.is_complete and pending:
            yield _line(offset, b"".join(parts), pending, max_bytes)
            offset, parts = offset + pending, []
        yield Line(offset, b"".join(parts) or error.head, error.reason)
        return
    if pending:
        yield _line(offset, b"".join(parts), pending, max_bytes)


def _extend(
    parts: list[bytes], pending: int, data: bytes, max_bytes: int
) -> tuple[list[bytes], int]:
    pending += len(data)
    if pending <= max_bytes:
        parts.append(data)
        return parts, pending
    return [b"".join([*parts, data[:RAW_LIMIT_BYTES]])[:RAW_LIMIT_BYTES]], pending


def _line(offset: int, data: bytes, num_bytes: int, max_bytes: int) -> Line:
    if num_bytes > max_bytes:
        error = f"line has {num_bytes:,} bytes, above max_record_bytes={max_bytes:,}"
        return Line(offset, data, error)
    return Line(offset, data)


def read_jsonl(
    file: InputFile, source: SourceConfig, start: int, stop: int
) -> Iterator[InputRecord]:
    """Yield records of the lines that start in bytes [start, stop) of the uncompressed stream."""
    first = max(start - 1, 0)  # the byte before tells whether a line starts at `start`
    lines = split_lines(
        read_blocks(file.path, file.compression, first), first, source.max_record_bytes
    )
    for number, line in enumerate(dropwhile(lambda line: line.offset < start, lines), 1):
        if line.offset >= stop:
            return
        data = line.data.removeprefix(BOM) if line.offset == 0 else line.data
        if line.error:
            yield InputRecord(line.offset, None, data, line.error, number)
        elif data and not data.isspace():
            yield parse_record(line.offset, data, number)


def lines_before(file: InputFile, offset: int) -> int:
    """Count the lines of a plain file that start before a byte offset."""
    num_newlines, left = 0, offset - 1  # a newline at `offset` - 1 ends the last of them
    blocks = read_blocks(file.path, None)
    while left > 0 and (block := next(blocks, b"")):
        num_newlines += block.count(b"\n", 0, left)
        left -= len(block)
    return num_newlines + 1 if offset else 0


def read_text(file: InputFile, source: SourceConfig) -> Iterator[InputRecord]:
    """Yield a .txt file as one record, or each run of lines between blank lines as one."""
    lines = split_lines(read_blocks(file.path, file.compression), 0, source.max_record_bytes)
    is_split = source.text_documents == "blank_line"
    row, first, size, error, parts = 0, 0, 0, "", list[bytes]()
    for number, line in enumerate(chain(lines, [None]), 1):  # None ends the last document
        if line is not None and not (is_split and not line.error and not line.data.strip()):
            data = line.data.removeprefix(BOM) if line.offset == 0 else line.data
            first = first or number
            size += len(data) + 1
            error = error or line.error
            if size <= source.max_record_bytes + 1:
                parts.append(data)
        elif size:
            record = _text_record(row, b"\n".join(parts), size - 1, error, source)
            yield record._replace(line=first)
            row, first, size, error, parts = row + 1, 0, 0, "", []


def _text_record(row: int, data: bytes, size: int, error: str, source: SourceConfig) -> InputRecord:
    if size > source.max_record_bytes:
        error = error or f"text is above max_record_bytes={source.max_record_bytes:,}"
    if error:
        return InputRecord(row, None, data, error)
    return InputRecord(row, {source.text_field: data.decode("utf-8", "surrogateescape")})
