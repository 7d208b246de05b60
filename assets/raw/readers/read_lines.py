"""Line-based formats: JSON lines and plain text.

One `split` cuts the lines of a 1 MiB block. A line above the cap is skipped to its newline and not
held in memory. The row of a JSON line is the byte offset of its start in the uncompressed stream:
the line number of a slice in the middle of a file is unknown without reading everything before it,
which is done only for slices with a record in quarantine.

Three more forms of JSON lines are read, since no plain line can be one: the elements of an array, a
line each; records that a carriage return alone ends; and, behind a record separator each, those of
RFC 7464, of which none is longer than a line.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, takewhile
from typing import NamedTuple

import numpy as np

from assets.raw.readers.borders import KernelRecords, Lines, text_borders
from assets.raw.readers.decompress import BrokenStream, read_blocks
from assets.raw.readers.format import Format
from assets.raw.readers.input_file import (
    STREAM_END,
    WHOLE,
    WHOLE_FILE,
    Border,
    InputFile,
    Slice,
    Span,
)
from assets.raw.readers.input_record import RAW_LIMIT_BYTES, InputRecord, LineRun, parse_record
from resources.settings.sources import SourceConfig

BOM = b"\xef\xbb\xbf"
BYTES_BEFORE = 2  # a slice, that tell whether a line starts with it
RUN_BYTES = 4 << 20  # of lines that are read together
BRACKETS = (b"[", b"]", b"],", b",")  # lines between the elements of an array
SEPARATOR = 0x1E  # RFC 7464, 2.2: it stands in no JSON text


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
            yield bounded_line(offset, b"".join(parts), pending, max_bytes)
            offset += pending + 1
            rest = lines.pop()
            for line in lines:
                yield bounded_line(offset, line, len(line), max_bytes)
                offset += len(line) + 1
            parts, pending = [rest], len(rest)
    except BrokenStream as error:
        if error.is_complete and pending:
            yield bounded_line(offset, b"".join(parts), pending, max_bytes)
            offset, parts = offset + pending, []
        yield Line(offset, b"".join(parts) or error.head, error.reason)
        return
    if pending:
        yield bounded_line(offset, b"".join(parts), pending, max_bytes)


def _extend(
    parts: list[bytes], pending: int, data: bytes, max_bytes: int
) -> tuple[list[bytes], int]:
    pending += len(data)
    if pending <= max_bytes:
        parts.append(data)
        return parts, pending
    return [b"".join([*parts, data[:RAW_LIMIT_BYTES]])[:RAW_LIMIT_BYTES]], pending


def bounded_line(offset: int, data: bytes, num_bytes: int, max_bytes: int) -> Line:
    """Return a line of `num_bytes`, with an error above the cap; `data` may then be its head."""
    if num_bytes > max_bytes:
        error = f"line has {num_bytes:,} bytes, above max_record_bytes={max_bytes:,}"
        return Line(offset, data, error)
    return Line(offset, data)


def read_jsonl(
    file: InputFile, source: SourceConfig, cut: Slice = WHOLE_FILE
) -> Iterator[LineRun | InputRecord]:
    """Yield the lines that start in a slice: bytes [start, stop) of the uncompressed stream.

    Runs of whole lines come first; what is behind a break or a giant line comes as records.
    """
    start, stop = (0, STREAM_END) if cut.unit == "stream" else (cut.start, cut.stop)
    before = max(start - BYTES_BEFORE, 0)
    known = cut.span if cut.unit == "records" else Span(Border(before, 0, before, 0, 0), WHOLE.end)
    first, end = known
    if file.compression is None:
        end = Border(stop, 0, stop, 0, 0)
    blocks = as_lines(read_blocks(file, first, end.place))
    number = 1
    for piece in split_runs(blocks, (first.offset, stop), source.max_record_bytes):
        if piece.offset >= stop:
            return
        if isinstance(piece, LineRun):
            run = replace(_within(piece, start, stop), number=number)
            number += run.num_newlines
            yield run
        elif piece.offset >= start:
            record = line_record(piece, number)
            number += 1
            if record is not None:
                yield record


def single_records(
    pieces: Iterable[LineRun | InputRecord], max_bytes: int
) -> Iterator[InputRecord]:
    """Yield records one by one, those of runs of lines too."""
    for piece in pieces:
        if isinstance(piece, LineRun):
            yield from run_records(piece, max_bytes)
        else:
            yield piece


def split_runs(
    blocks: Iterator[bytes], span: tuple[int, int], max_bytes: int
) -> Iterator[LineRun | Line]:
    """Yield runs of lines of a stream that starts at span[0]; the last one ends behind span[1].

    From a line above `max_bytes` on, and from the last run before a break, lines come one by one.
    Memory: max_bytes + twice RUN_BYTES.
    """
    offset, stop = span
    parts, size = list[bytes](), 0
    try:
        for block in blocks:
            parts.append(block)
            size += len(block)
            end = block.rfind(b"\n") + 1
            if end and (size >= RUN_BYTES or offset + size >= stop):
                run = LineRun(offset, b"".join([*parts[:-1], memoryview(block)[:end]]))
                offset, parts = offset + len(run.data), [block[end:]]
                size = len(parts[0])
                yield run
            elif size > RUN_BYTES + max_bytes:
                yield from split_lines(chain(parts, blocks), offset, max_bytes)
                return
    except BrokenStream as error:
        yield from split_lines(_breaking(parts, error), offset, max_bytes)
        return
    if size:
        yield LineRun(offset, b"".join(parts))


def _breaking(parts: list[bytes], error: BrokenStream) -> Iterator[bytes]:
    yield from parts
    raise error


def _within(run: LineRun, start: int, stop: int) -> LineRun:
    """Cut a run to the lines that start in bytes [start, stop) of the file."""
    offset, data = run.offset, run.data
    if offset + len(data) > stop:
        data = data[: data.find(b"\n", stop - 1 - offset) + 1 or len(data)]
    if offset < start:
        first = data.find(b"\n", start - 1 - offset) + 1 or len(data)
        offset, data = offset + first, data[first:]
    return LineRun(offset, data)


def line_record(line: Line, number: int) -> InputRecord | None:
    """Return the record of a JSON line, None if it is blank or a bracket of an array."""
    data = line.data.removeprefix(BOM) if line.offset == 0 else line.data
    if line.error:
        return InputRecord(line.offset, None, data, line.error, number)
    if not (shown := data.strip()) or shown in BRACKETS:
        return None
    record = parse_record(line.offset, data, number)
    if record.error and (element := _element(shown)) != shown:
        found = parse_record(line.offset, element, number)
        return record if found.error else found._replace(raw=data)
    return record


def _element(line: bytes) -> bytes:
    """Return an element of an array without the comma, and the one bracket, at its ends."""
    line = line.removesuffix(b",")
    if line.startswith(b"[") == line.endswith(b"]"):
        return line
    return line.removeprefix(b"[").removesuffix(b"]")


def as_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the bytes of JSON lines with a newline, and no other byte, at the end of each record.

    A carriage return between two objects is one, as a comma would be there inside of a third; so is
    a record separator, which at the start of a line becomes a space.
    """
    last, held = b"\n", b""
    try:
        for block in blocks:
            data = held + block
            held = data[-1:] if data.endswith(b"\r") else b""  # until what follows it is known
            if data := data[: len(data) - len(held)]:
                yield _ended(data, last)
                last = data[-1:]
    except BrokenStream:
        yield held
        raise
    yield held


def _ended(data: bytes, last: bytes) -> bytes:
    if b"\r" not in data and SEPARATOR not in data:
        return data
    codes = np.frombuffer(b"%b%b\0" % (last, data), np.uint8)
    inner = codes[1:-1]
    at = np.flatnonzero((inner == SEPARATOR) | (inner == ord("\r")))
    before, after, is_separator = codes[at], codes[at + 2], inner[at] == SEPARATOR
    is_end = is_separator | ((before == ord("}")) & (after == ord("{")))
    if not is_end.any():
        return data
    ended = inner.copy()
    ended[at[is_end]] = ord("\n")
    ended[at[is_separator & (before == ord("\n"))]] = ord(" ")
    return ended.tobytes()


def run_records(run: LineRun, max_bytes: int) -> Iterator[InputRecord]:
    """Yield the records of a run of JSON lines."""
    lines = split_lines([run.data], run.offset, max_bytes)
    for number, line in enumerate(lines, run.number):
        record = line_record(line, number)
        if record is not None:
            yield record


def halves(run: LineRun) -> list[LineRun]:
    """Cut a run near its middle, none if it has one line only."""
    cut = run.data.find(b"\n", len(run.data) // 2) + 1
    if cut in (0, len(run.data)):
        cut = run.data.rfind(b"\n", 0, len(run.data) // 2) + 1
    if not cut:
        return []
    first = LineRun(run.offset, run.data[:cut], run.number)
    return [first, LineRun(run.offset + cut, run.data[cut:], run.number + first.num_newlines)]


def lines_before(file: InputFile, offset: int) -> int:
    """Count the JSON lines of a plain file that start before a byte offset."""
    num_newlines, left = 0, offset - 1  # a newline at `offset` - 1 ends the last of them
    blocks = as_lines(read_blocks(file, stop=offset))
    while left > 0 and (block := next(blocks, b"")):
        num_newlines += block.count(b"\n", 0, left)
        left -= len(block)
    return num_newlines + 1 if offset else 0


def read_lines(file: InputFile, source: SourceConfig, span: Span) -> Iterator[Line]:
    """Yield the lines of a span of a file."""
    blocks = read_blocks(file, span.first, span.end.place)
    lines = split_lines(blocks, span.first.offset, source.max_record_bytes)
    return takewhile(lambda line: line.offset < span.end.offset, lines)


def read_text(
    file: InputFile, source: SourceConfig, cut: Slice = WHOLE_FILE
) -> Iterator[InputRecord]:
    """Yield a .txt file as one record, or each run of lines between blank lines as one."""
    lines, span = read_lines(file, source, cut.span), cut.span
    is_split = source.text_documents == "blank_line"
    row, first, size, error, parts = span.first.row, 0, 0, "", list[bytes]()
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


def _line_borders(file: InputFile, _source: SourceConfig, part_bytes: int) -> Iterator[Border]:
    return text_borders(file, Lines(), part_bytes)


def _paragraph_borders(file: InputFile, source: SourceConfig, part_bytes: int) -> Iterator[Border]:
    from assets.raw.kernels.record_starts import next_paragraph

    paragraphs = KernelRecords(partial(next_paragraph, source.max_record_bytes), b"")
    return text_borders(file, paragraphs, part_bytes)


JSONL = Format(
    "jsonl",
    (".jsonl", ".ndjson", ".json-seq"),
    read_jsonl,
    unit="byte",
    borders=_line_borders,
    is_cuttable=lambda file, _: file.compression is not None,  # plain lines are cut anywhere
)
TEXT = Format(
    "txt",
    (".txt",),
    read_text,
    borders=_paragraph_borders,
    is_cuttable=lambda _, source: source.text_documents == "blank_line",
)
