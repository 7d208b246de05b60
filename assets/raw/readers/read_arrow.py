"""Arrow IPC files (Feather 2) and streams, whose messages are checked before Arrow decodes them.

    prefix FFFFFFFF, length | metadata (a flatbuffer Message) | body
    ... | footer (a flatbuffer) | its length, 4 bytes | ARROW1

A file is a stream between two marks, so that both are read alike and a cut one up to the cut. Of
the metadata only the kind, the rows and the places of buffers are read here: a compressed buffer
begins with its size, and Arrow would allocate what it claims.

Polars writes no schema message behind the mark of a file. Such a file is not read as a stream; its
footer says where the messages begin.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator
from functools import partial
from mmap import ACCESS_READ, MADV_DONTNEED, mmap
from typing import BinaryIO, NamedTuple

import pyarrow as pa

from assets.raw.readers.borders import start_borders
from assets.raw.readers.decompress import (
    BOMB_BYTES,
    BOMB_RATIO,
    READ_BYTES,
    STEP_BYTES,
    BlockStream,
    BrokenStream,
    FileFault,
    raise_unless_of_content,
    read_blocks,
)
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
from assets.raw.readers.input_record import InputRecord, has_field
from assets.raw.readers.open_input import open_arrow, open_input
from assets.raw.readers.read_tables import ROWS_AT_A_TIME, UNREADABLE, batch_records, no_text_column
from resources.settings.sources import SourceConfig

FILE_MARK = b"ARROW1\0\0"
PREFIX = b"\xff\xff\xff\xff"
END_MARK = PREFIX + b"\0\0\0\0"
MOST_METADATA_BYTES = 64 << 20
MOST_BODY_BYTES = 1 << 31  # that are held in memory
MAPPED_BYTES = 64 << 20  # least of a body that is mapped, not held, if it is in a plain local file
SCHEMA, DICTIONARY, BATCH = 1, 2, 3  # of the union MessageHeader
BUFFER_BYTES = 16  # of a struct Buffer: offset and length

END_BYTES = 10
BLOCK = struct.Struct("<qi4xq")  # of the footer: place and bytes of metadata and body
DICTIONARIES, BATCHES = 2, 3  # fields of the table Footer
DAMAGE = (struct.error, IndexError, ValueError, OverflowError, OSError, pa.ArrowException)
FEATHER_1 = b"FEA1"
OLD_FEATHER = "Arrow stream is broken: this is Feather 1: write the table again as Feather 2"


def read_arrow(
    file: InputFile, source: SourceConfig, cut: Slice = WHOLE_FILE
) -> Iterator[InputRecord]:
    """Yield records of the batches of a slice, numbered by the row in the file."""
    messages = _Messages(file, cut.span)
    row, text_field = cut.span.first.row, source.text_field
    try:
        reader = pa.ipc.open_stream(pa.PythonFile(messages, "r"))
        if not has_field(reader.schema.names, text_field):
            if row == 0:
                yield InputRecord(0, None, b"", no_text_column(text_field, reader.schema.names))
            return
        for batch in reader:
            for start in range(0, batch.num_rows, ROWS_AT_A_TIME):
                yield from _valid_records(batch.slice(start, ROWS_AT_A_TIME), row + start)
                messages.forget_pages()
            row += batch.num_rows
    except (*UNREADABLE, OSError, MemoryError) as error:
        raise_unless_of_content(error, file.bytes)
        messages.fault = messages.fault or FileFault(f"Arrow stream is broken: {error}")
    if messages.fault:
        yield InputRecord(row, None, messages.shown, messages.fault)


def _valid_records(batch: pa.RecordBatch, row: int) -> Iterator[InputRecord]:
    """Yield the records of a batch; a row that is not valid Arrow is an error."""
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid as error:
        if batch.num_rows > 1:
            for index in range(batch.num_rows):
                yield from _valid_records(batch.slice(index, 1), row + index)
            return
        kind = "not valid UTF-8" if "UTF8" in str(error) else "Arrow row is broken"
        yield InputRecord(row, None, b"", f"{kind}: {error}")
        return
    yield from batch_records(batch, row)


def arrow_columns(file: InputFile) -> list[str]:
    """Return the names of the columns; none if they cannot be read."""
    try:
        reader = pa.ipc.open_stream(pa.PythonFile(_Messages(file, WHOLE), "r"))
    except (*UNREADABLE, OSError) as error:
        raise_unless_of_content(error, file.bytes)
        return []
    return [str(name) for name in reader.schema.names]


def _batch_starts(file: InputFile, blocks: Iterator[bytes]) -> Iterator[tuple[int, int]]:
    """Yield offset and row of each batch; BrokenStream for a damage, or dictionaries."""
    row, by_footer = 0, needs_footer(file)
    messages = (
        footer_messages(file, 0, STREAM_END)
        if by_footer
        else _until(file, _stream(blocks, 0), STREAM_END)
    )
    for message in messages:
        if message.kind == DICTIONARY:
            raise BrokenStream("later batches depend on dictionaries")
        if message.kind == BATCH:
            yield message.offset, row
            row += message.num_rows
    deque(blocks, maxlen=0)


def _stream(blocks: Iterator[bytes], offset: int) -> BlockStream:
    """Return the messages of a file or a stream from an offset on."""
    stream = BlockStream(blocks, offset)
    if offset == 0:
        head = stream.peek(len(FILE_MARK))
        if head.startswith(FEATHER_1):
            raise BrokenStream(FileFault(OLD_FEATHER), head=head)
        if head == FILE_MARK:
            stream.take(len(FILE_MARK))
    return stream


class _Messages:
    """The messages of a span as a file: whole and checked ones only, behind the schema.

    `fault` is the reason if they end early, and `shown` the bytes at which they do.
    """

    closed = False

    def __init__(self, file: InputFile, span: Span) -> None:
        self._span = span
        self._ready, self._at = memoryview(b""), 0
        self.fault = FileFault()
        self.shown = b""
        self._messages = self._read(file)

    def read(self, num_bytes: int) -> memoryview:
        """Return up to `num_bytes`."""
        if self._at == len(self._ready):
            self._ready = memoryview(next(self._messages, b""))
            self._at = 0
        data = self._ready[self._at : self._at + num_bytes]
        self._at += len(data)
        return data

    def forget_pages(self) -> None:
        """Drop what was read of a mapped body, which counts as memory of the process until then."""
        if isinstance(mapped := self._ready.obj, mmap):
            mapped.madvise(MADV_DONTNEED)

    def _read(self, file: InputFile) -> Iterator[bytes | bytearray | memoryview]:
        first, end = self._span
        try:
            if needs_footer(file):
                yield read_schema(file)
                messages = footer_messages(file, first.offset, end.offset)
            else:
                stop = READ_BYTES if first.offset else end.place  # of the schema, or of all
                stream = _stream(read_blocks(file, stop=stop), 0)
                if (schema := next_message(stream, file)) is None:
                    return
                yield schema.metadata + schema.body
                if first.offset:
                    blocks = read_blocks(file, first, end.place)
                    stream = _stream(blocks, first.offset)
                messages = _until(file, stream, end.offset)
            for message in messages:
                yield message.metadata
                if message.body:  # nothing is the end
                    yield message.body
        except BrokenStream as error:
            self.fault, self.shown = error.reason, error.head


def _until(file: InputFile, stream: BlockStream, end: int) -> Iterator[Message]:
    """Yield the messages that begin before an offset."""
    while (message := next_message(stream, file)) and message.offset < end:
        yield message


def _borders(file: InputFile, _source: SourceConfig, part_bytes: int) -> Iterator[Border]:
    return start_borders(file, partial(_batch_starts, file), part_bytes)


class Message(NamedTuple):
    """A message: where it begins in the content, its kind, its rows, metadata and body."""

    offset: int
    kind: int
    num_rows: int
    metadata: bytes
    body: bytearray | memoryview


def next_message(stream: BlockStream, file: InputFile) -> Message | None:
    """Take the next message; None at the end mark. Raises BrokenStream for what is none.

    Behind the mark a file has its footer. Other bytes are another stream, or what is left of one.
    """
    offset = stream.offset
    prefix = stream.take(8)
    if prefix == END_MARK:
        rest = stream.take(MOST_METADATA_BYTES).rstrip(b"\0")
        length = int.from_bytes(rest[-END_BYTES:-6], "little")
        if rest and (stream.peek(1) or length + END_BYTES != len(rest)):
            raise BrokenStream(arrow_fault(f"goes on behind its end mark at byte {offset:,}"))
        return None
    if len(prefix) < 8:
        raise BrokenStream(stream.broken or arrow_fault("ends without its end mark (truncated)"))
    length = int.from_bytes(prefix[4:], "little")
    if prefix[:4] != PREFIX or length > MOST_METADATA_BYTES:
        raise BrokenStream(arrow_fault(f"is broken at byte {offset:,}: no message begins there"))
    metadata = stream.take(length)
    if len(metadata) < length:
        raise BrokenStream(stream.broken or arrow_fault("ends within a message (truncated)"))
    try:
        kind, num_rows, size, buffers = _read_metadata(metadata)
    except (struct.error, IndexError, ValueError) as error:
        raise BrokenStream(arrow_fault(f"is broken at byte {offset:,}: {error}")) from error
    body = _read_body(stream, file, size, is_packed=bool(buffers))
    if len(body) < size:
        raise BrokenStream(stream.broken or arrow_fault("ends within a message (truncated)"))
    # A compressed buffer begins with the size that it claims; -1: it is not compressed.
    sizes = (body[start : start + 8] for start, length in buffers if length)
    claimed = sum(max(int.from_bytes(each, "little", signed=True), 0) for each in sizes)
    if claimed > BOMB_BYTES and claimed > BOMB_RATIO * size:
        bomb = f"decompression bomb: {size:,} bytes of Arrow claim to become {claimed:,}"
        raise BrokenStream(FileFault(bomb))
    return Message(offset, kind, num_rows, prefix + metadata, body)


def _read_body(
    stream: BlockStream, file: InputFile, num_bytes: int, *, is_packed: bool
) -> bytearray | memoryview:
    """Take the body of a message; BrokenStream if it is too large, or has less than no bytes.

    A large one of a local file is skipped and mapped: only the pages in use are in memory.
    """
    offset = stream.offset
    if num_bytes < 0:
        raise BrokenStream(arrow_fault(f"is broken at byte {offset:,}: {num_bytes:,} bytes follow"))
    is_plain = file.compression is None and file.content is None and not file.is_remote
    is_mapped = is_plain and num_bytes >= MAPPED_BYTES
    if num_bytes > MOST_BODY_BYTES and (is_packed or not is_mapped):
        large = f"has a record batch of {num_bytes:,} bytes, above {MOST_BODY_BYTES:,}"
        raise BrokenStream(arrow_fault(large))
    if is_mapped:
        with open_input(file) as opened:
            mapped = memoryview(mmap(opened.fileno(), 0, access=ACCESS_READ))
        return mapped[offset : offset + stream.skip(num_bytes)]
    body = bytearray()  # grows in place: of blocks that are joined each would be there twice
    while more := stream.take(min(num_bytes - len(body), STEP_BYTES)):
        body += more
    return body


def arrow_fault(text: str) -> FileFault:
    """Return the error that ends the reading of Arrow data."""
    return FileFault(f"Arrow stream {text}")


class Table:
    """A table of a flatbuffer: its fields by their numbers."""

    def __init__(self, data: bytes, place: int) -> None:
        self.data = data
        self.place = place
        self._fields = place - struct.unpack_from("<i", data, place)[0]
        if min(self._fields, place) < 0:
            raise ValueError("metadata out of bounds")

    def at(self, number: int) -> int:
        """Return the place of a field; 0 if it is not there."""
        if 4 + 2 * number >= struct.unpack_from("<H", self.data, self._fields)[0]:
            return 0
        offset = struct.unpack_from("<H", self.data, self._fields + 4 + 2 * number)[0]
        return self.place + offset if offset else 0

    def number(self, number: int, form: str) -> int:
        """Return a number, 0 if it is not there."""
        place = self.at(number)
        return int(struct.unpack_from(form, self.data, place)[0]) if place else 0

    def table(self, number: int) -> Table | None:
        """Return a table."""
        place = self.at(number)
        return Table(self.data, referred(self.data, place)) if place else None


def referred(data: bytes, place: int) -> int:
    """Return the place that an offset at a place of a flatbuffer refers to."""
    return place + int(struct.unpack_from("<I", data, place)[0])


def _read_metadata(data: bytes) -> tuple[int, int, int, list[tuple[int, int]]]:
    """Return kind, rows, bytes of the body, and offset and length of each compressed buffer.

    Message: version, header_type, header, bodyLength. RecordBatch: length, nodes, buffers,
    compression. DictionaryBatch: id, data (a RecordBatch).
    """
    message = Table(data, referred(data, 0))
    kind, size = message.number(1, "<B"), message.number(3, "<q")
    batch = message.table(2)
    if kind == DICTIONARY and batch:
        batch = batch.table(1)
    if batch is None or kind == SCHEMA:
        return kind, 0, size, []
    place = batch.at(2)
    if not place or not batch.at(3):
        return kind, batch.number(0, "<q"), size, []
    start = referred(data, place)
    (count,) = struct.unpack_from("<I", data, start)
    if count > len(data) // BUFFER_BYTES:
        raise ValueError("more buffers than metadata")
    pairs = struct.iter_unpack("<qq", data[start + 4 : start + 4 + count * BUFFER_BYTES])
    return kind, batch.number(0, "<q"), size, [*pairs]


def needs_footer(file: InputFile) -> bool:
    """Return whether a file has no message behind its mark."""
    if file.compression is not None:
        return False
    with open_input(file) as stream:
        head = stream.read(len(FILE_MARK) + len(PREFIX))
    return head.startswith(FILE_MARK) and len(head) > len(FILE_MARK) and not head.endswith(PREFIX)


def read_schema(file: InputFile) -> bytes:
    """Return the message of a file's schema."""
    try:
        with open_arrow(file) as stream:
            return bytes(pa.ipc.open_file(stream).schema.serialize())
    except DAMAGE as error:
        raise_unless_of_content(error, file.bytes)
        raise BrokenStream(arrow_fault(f"is broken: {error}")) from error


def footer_messages(file: InputFile, start: int, stop: int) -> Iterator[Message]:
    """Yield the messages that begin in bytes [start, stop), and all dictionaries before them."""
    with open_input(file) as stream:
        try:
            stream.seek(max(file.bytes - END_BYTES, 0))
            length = int.from_bytes(stream.read(4), "little")
            stream.seek(max(file.bytes - END_BYTES - length, 0))
            dictionaries, batches = _blocks(stream.read(min(length, MOST_METADATA_BYTES)))
        except DAMAGE as error:
            raise_unless_of_content(error, file.bytes)
            raise BrokenStream(arrow_fault(f"is broken: {error}")) from error
        here = [block for block in batches if start <= block[0] < stop]
        for place, *sizes in [*dictionaries, *here]:
            if not 0 <= place <= place + sum(map(abs, sizes)) <= file.bytes:
                raise BrokenStream(arrow_fault("is broken: its footer leads out of the file"))
            stream.seek(place)
            blocks = _blocks_of(stream, sum(sizes))
            if message := next_message(BlockStream(blocks, place), file):
                yield message


def _blocks_of(stream: BinaryIO, num_bytes: int) -> Iterator[bytes]:
    while num_bytes > 0 and (data := stream.read(min(num_bytes, STEP_BYTES))):
        num_bytes -= len(data)
        yield data


def _blocks(footer: bytes) -> tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]]:
    """Return place and sizes of the dictionaries and of the batches."""
    table = Table(footer, referred(footer, 0))
    found = []
    for field in (DICTIONARIES, BATCHES):
        place = table.at(field)
        start = referred(footer, place) if place else 0
        count = struct.unpack_from("<I", footer, start)[0] if place else 0
        if count > len(footer) // BLOCK.size:
            raise ValueError("more blocks than footer")
        data = footer[start + 4 : start + 4 + count * BLOCK.size]
        found.append([*BLOCK.iter_unpack(data)])
    return found[0], found[1]


ARROW = Format(
    "arrow",
    (".arrow", ".feather"),
    read_arrow,
    unit="row",
    borders=_borders,
    index="first",
    columns=arrow_columns,
    is_member=False,
)
