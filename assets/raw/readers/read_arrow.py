"""Arrow IPC files (Feather 2) and streams."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import partial

import pyarrow as pa

from assets.raw.readers.arrow_messages import (
    BATCH,
    DICTIONARY,
    FILE_MARK,
    Message,
    footer_messages,
    needs_footer,
    next_message,
    read_schema,
)
from assets.raw.readers.block_stream import BlockStream
from assets.raw.readers.borders import start_borders
from assets.raw.readers.decompress import (
    READ_BYTES,
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
from assets.raw.readers.read_tables import ROWS_AT_A_TIME, UNREADABLE, batch_records, no_text_column
from resources.settings.sources import SourceConfig

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
        else _until(_stream(blocks, 0), STREAM_END)
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
        self._ready, self._at = b"", 0
        self.fault = FileFault()
        self.shown = b""
        self._messages = self._read(file)

    def read(self, num_bytes: int) -> bytes:
        """Return up to `num_bytes`."""
        if self._at == len(self._ready):
            self._ready = next(self._messages, b"")
            self._at = 0
        data = self._ready[self._at : self._at + num_bytes]
        self._at += len(data)
        return data

    def _read(self, file: InputFile) -> Iterator[bytes]:
        first, end = self._span
        try:
            if needs_footer(file):
                yield read_schema(file)
                messages = footer_messages(file, first.offset, end.offset)
            else:
                stream = _stream(read_blocks(file, stop=min(end.place, READ_BYTES)), 0)
                if (schema := next_message(stream)) is None:
                    return
                yield schema.data
                if first.offset:
                    blocks = read_blocks(file, first, end.place)
                    stream = _stream(blocks, first.offset)
                messages = _until(stream, end.offset)
            for message in messages:
                yield message.data
        except BrokenStream as error:
            self.fault, self.shown = error.reason, error.head


def _until(stream: BlockStream, end: int) -> Iterator[Message]:
    """Yield the messages that begin before an offset."""
    while (message := next_message(stream)) and message.offset < end:
        yield message


def _borders(file: InputFile, _source: SourceConfig, part_bytes: int) -> Iterator[Border]:
    return start_borders(file, partial(_batch_starts, file), part_bytes)


ARROW = Format(
    "arrow",
    (".arrow", ".feather"),
    read_arrow,
    unit="row",
    borders=_borders,
    index="first",
    columns=arrow_columns,
)
