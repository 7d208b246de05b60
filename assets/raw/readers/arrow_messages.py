"""Messages of Arrow IPC data, checked before Arrow decodes them.

    prefix FFFFFFFF, length | metadata (a flatbuffer Message) | body

A file is a stream between two marks, so that both are read alike and a cut one up to the cut. Of
the metadata only the kind, the rows and the places of buffers are read here: a compressed buffer
begins with its size, and Arrow would allocate what it claims.

Polars writes no schema message behind the mark of a file, and no other reader misses it. Such a
file is not read as a stream; its footer says where the messages begin.

    ... | footer (a flatbuffer) | its length, 4 bytes | ARROW1
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from assets.raw.places.open_input import open_arrow, open_input
from assets.raw.readers.block_stream import BlockStream
from assets.raw.readers.decompress import (
    BOMB_BYTES,
    BOMB_RATIO,
    BrokenStream,
    FileFault,
    raise_unless_of_content,
)
from assets.raw.readers.input_file import InputFile

FILE_MARK = b"ARROW1\0\0"
PREFIX = b"\xff\xff\xff\xff"
END_MARK = PREFIX + b"\0\0\0\0"
MOST_METADATA_BYTES = 64 << 20
MOST_BODY_BYTES = 1 << 31
SCHEMA, DICTIONARY, BATCH = 1, 2, 3  # of the union MessageHeader
BUFFER_BYTES = 16  # of a struct Buffer: offset and length

END_BYTES = 10
BLOCK = struct.Struct("<qi4xq")  # of the footer: place and bytes of metadata and body
DICTIONARIES, BATCHES = 2, 3  # fields of the table Footer
DAMAGE = (struct.error, IndexError, ValueError, OverflowError, OSError, pa.ArrowException)


class Message(NamedTuple):
    """A message: its bytes, where they begin in the content, its kind and its rows."""

    offset: int
    kind: int
    num_rows: int
    data: bytes


def next_message(stream: BlockStream) -> Message | None:
    """Take the next message; None at the end mark. Raises BrokenStream for what is none."""
    offset = stream.offset
    prefix = stream.take(8)
    if prefix == END_MARK:
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
    if not 0 <= size <= MOST_BODY_BYTES:
        raise BrokenStream(
            arrow_fault(f"is broken at byte {offset:,}: a message of {size:,} bytes")
        )
    body = stream.take(size)
    if len(body) < size:
        raise BrokenStream(stream.broken or arrow_fault("ends within a message (truncated)"))
    claimed = sum(_claimed_bytes(body, *buffer) for buffer in buffers)
    if claimed > BOMB_BYTES and claimed > BOMB_RATIO * size:
        bomb = f"decompression bomb: {size:,} bytes of Arrow claim to become {claimed:,}"
        raise BrokenStream(FileFault(bomb))
    return Message(offset, kind, num_rows, prefix + metadata + body)


def arrow_fault(text: str) -> FileFault:
    """Return the error that ends the reading of Arrow data."""
    return FileFault(f"Arrow stream {text}")


def _claimed_bytes(body: bytes, offset: int, length: int) -> int:
    """Return the size that a compressed buffer claims; -1 says that it is not compressed."""
    claimed = int.from_bytes(body[offset : offset + 8], "little", signed=True) if length else 0
    return max(claimed, 0)


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
            if not (0 <= place < file.bytes and min(sizes) >= 0 and sum(sizes) <= MOST_BODY_BYTES):
                raise BrokenStream(arrow_fault("is broken: its footer leads out of the file"))
            stream.seek(place)
            content = iter([stream.read(sum(sizes))])
            if message := next_message(BlockStream(content, place)):
                yield message


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
