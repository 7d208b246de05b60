"""Arrow IPC files whose messages are found by the footer only.

Polars writes no schema message behind the mark of a file, and no other reader misses it. Such a
file is not read as a stream; its footer says where the messages begin.

    ... | footer (a flatbuffer) | its length, 4 bytes | ARROW1
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pyarrow as pa

from assets.raw.places.open_input import open_arrow, open_input
from assets.raw.readers.arrow_messages import (
    FILE_MARK,
    MOST_BODY_BYTES,
    MOST_METADATA_BYTES,
    PREFIX,
    Message,
    Table,
    arrow_fault,
    next_message,
    referred,
)
from assets.raw.readers.block_stream import BlockStream
from assets.raw.readers.decompress import BrokenStream, raise_unless_of_content
from assets.raw.readers.input_file import InputFile

END_BYTES = 10
BLOCK = struct.Struct("<qi4xq")  # of the footer: place and bytes of metadata and body
DICTIONARIES, BATCHES = 2, 3  # fields of the table Footer
DAMAGE = (struct.error, IndexError, ValueError, OverflowError, OSError, pa.ArrowException)


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
        raise_unless_of_content(error)
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
            raise_unless_of_content(error)
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
