"""Zip archives: each member of a text format is read as a file of that format.

The row of a record is its row in the member plus 10^12 for each member before, in the order of
their places: so that a slice of the members has the rows of the whole. A member is unpacked in
memory, which its declared size bounds; one in another archive is not opened.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO

from assets.raw.places.open_input import open_input
from assets.raw.positions import MEMBER_ROWS
from assets.raw.readers.archive_names import MEMBER_FORMATS, name_error, shown_name, why_left_out
from assets.raw.readers.decompress import (
    BOMB_BYTES,
    BOMB_RATIO,
    FileFault,
    file_head,
    raise_unless_of_content,
)
from assets.raw.readers.file_content import foreign_content
from assets.raw.readers.input_file import STREAM_END, WHOLE, Border, InputFile, Span
from assets.raw.readers.input_record import InputRecord
from assets.raw.readers.read_json import read_json
from assets.raw.readers.read_lines import read_jsonl, read_text
from assets.raw.readers.read_pages import read_page
from assets.raw.readers.read_tables import read_csv
from resources.settings.sources import FileFormat, SourceConfig

MOST_MEMBERS = 1 << 20  # each takes 1 KB of memory
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # zipfile unpacks no other in bounded steps
ENCRYPTED = 1
LINK = 0o120000
UNREADABLE = (
    *(zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError),
    *(ValueError, IndexError, KeyError, OverflowError, struct.error),
)
Reader = Callable[[InputFile, SourceConfig], Iterator[InputRecord]]
READERS: dict[FileFormat, Reader] = {
    "jsonl": lambda file, source: read_jsonl(file, source, 0, STREAM_END),
    "json": read_json,
    "csv": read_csv,
    "tsv": read_csv,
    "txt": read_text,
    "md": read_page,
    "html": read_page,
}


def read_zip(file: InputFile, source: SourceConfig, span: Span = WHOLE) -> Iterator[InputRecord]:
    """Yield the records of the members of a span, and one of each that cannot be read."""
    with open_input(file) as stream:
        try:
            archive, members = _open(stream, file)
        except UNREADABLE as error:
            raise_unless_of_content(error)
            head = file_head(file)
            reason = foreign_content(head, file.compression, file.format) or error
            fault = FileFault(f"zip archive cannot be opened: {reason}")
            yield InputRecord(0, None, head, fault)
            return
        first, end = span.first.row, span.end.row or len(members)
        for number, member in enumerate(members[first:end], first):
            for record in _member_records(archive, member, number, source):
                yield record._replace(row=number * MEMBER_ROWS + record.row)


def zip_borders(file: InputFile, part_bytes: int) -> list[Border]:
    """Return borders between members behind every `part_bytes` of their content, and the end."""
    borders, size, last = list[Border](), 0, 0
    with open_input(file) as stream:
        try:
            _, members = _open(stream, file)
        except UNREADABLE as error:
            raise_unless_of_content(error)
            return []
    for row, member in enumerate(members):
        if size - last >= part_bytes:
            borders.append(Border(member.header_offset, 0, size, row, 0))
            last = size
        size += member.file_size
    return [*borders, Border(file.bytes, 0, size, len(members), 0)] if borders else []


def _open(stream: BinaryIO, file: InputFile) -> tuple[zipfile.ZipFile, list[zipfile.ZipInfo]]:
    """Return an archive and its members by place; one of UNREADABLE if it cannot be read."""
    if file.compression is not None:
        raise ValueError(f"a compressed zip is not read; unpack the .{file.compression}")
    archive = zipfile.ZipFile(stream)
    members = sorted(archive.infolist(), key=lambda member: member.header_offset)
    if len(members) > MOST_MEMBERS:
        raise ValueError(f"it has {len(members):,} members, above {MOST_MEMBERS:,}; split it")
    ends = [member.header_offset + member.compress_size for member in members]
    if any(end > after.header_offset for end, after in zip(ends, members[1:], strict=False)):
        raise ValueError("members overlap, as those of a decompression bomb do")
    return archive, members


def _member_records(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, number: int, source: SourceConfig
) -> Iterator[InputRecord]:
    """Yield the records of a member: numbered from 0 in it, without lines."""
    if member.is_dir():
        return
    name = member.filename
    suffix = name.rpartition("/")[2].rpartition(".")[2].lower()
    if fault := name_error(name):
        yield InputRecord(0, None, name.encode("utf-8", "backslashreplace"), fault)
        return
    if member.external_attr >> 16 & 0o170000 == LINK:
        yield InputRecord(0, None, shown_name(name), left_out="link_member")
        return
    if suffix not in MEMBER_FORMATS or name.rpartition("/")[2].startswith("."):
        yield InputRecord(0, None, shown_name(name), left_out=why_left_out(suffix))
        return
    try:
        data = _unpack(archive, member)
    except UNREADABLE as error:
        raise_unless_of_content(error)
        reason = f"zip member {name[:200]!r} cannot be read: {error}"
        yield InputRecord(0, None, b"", reason)
        return
    file_format = MEMBER_FORMATS[suffix]
    content = InputFile(name, name, file_format, None, len(data), "", content=data)
    for record in READERS[file_format](content, source):
        fields = record.fields and {"member": name, **record.fields}
        yield record._replace(fields=fields, raw=None if fields else record.raw)


def _unpack(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    size, packed = member.file_size, member.compress_size
    if member.flag_bits & ENCRYPTED:
        raise ValueError("it is encrypted")
    if member.compress_type not in METHODS:
        raise ValueError(f"its compression method {member.compress_type} is not supported")
    if size > BOMB_BYTES:
        raise ValueError(f"it has {size:,} bytes, above {BOMB_BYTES:,}, and must be held whole")
    if size > BOMB_RATIO * max(packed, 1 << 16):
        raise ValueError(f"decompression bomb: {packed:,} bytes become {size:,}")
    with archive.open(member) as stream:
        return stream.read(size + 1)
