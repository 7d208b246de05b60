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
from functools import partial
from typing import BinaryIO

from assets.raw.readers.archive_names import name_error, shown_name, why_left_out
from assets.raw.readers.decompress import (
    BOMB_BYTES,
    BOMB_RATIO,
    BrokenStream,
    FileFault,
    file_head,
    raise_unless_of_content,
)
from assets.raw.readers.file_content import foreign_content
from assets.raw.readers.format import Format
from assets.raw.readers.input_file import WHOLE_FILE, Border, InputFile, Slice
from assets.raw.readers.input_record import MEMBER, MEMBER_ROWS, InputRecord
from assets.raw.readers.open_input import open_input
from assets.raw.readers.read_lines import single_records
from resources.settings.sources import SourceConfig

MOST_MEMBERS = 1 << 20  # each takes 1 KB of memory
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # zipfile unpacks no other in bounded steps
ENCRYPTED = 1
LINK = 0o120000
UNREADABLE = (
    *(zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError),
    *(ValueError, IndexError, KeyError, OverflowError, struct.error),
)
FormatOf = Callable[[str], Format | None]  # of a member, by its ending


def zip_of(format_of: FormatOf) -> Format:
    """Return the format of archives whose members are read as `format_of` tells."""
    return Format(
        "zip",
        (".zip",),
        partial(_read_zip, format_of),
        unit=MEMBER,
        borders=_borders,
        is_cuttable=lambda file, _: file.compression is None,
        index="last",
        is_member=False,
        is_container=True,
        is_packed=True,
    )


def _read_zip(
    format_of: FormatOf, file: InputFile, source: SourceConfig, cut: Slice
) -> Iterator[InputRecord]:
    """Yield the records of the members of a slice, and one of each that cannot be read."""
    with open_input(file) as stream:
        try:
            archive, members = open_archive(stream, file)
        except UNREADABLE as error:
            raise_unless_of_content(error)
            head = file_head(file)
            reason = foreign_content(head, file.compression, file.format) or error
            fault = FileFault(f"zip archive cannot be opened: {reason}")
            yield InputRecord(0, None, head, fault)
            return
        first, end = cut.span.first.row, cut.span.end.row or len(members)
        for number, member in enumerate(members[first:end], first):
            for record in _member_records(archive, member, format_of, source):
                yield record._replace(row=number * MEMBER_ROWS + record.row)


def _borders(file: InputFile, _source: SourceConfig, part_bytes: int) -> Iterator[Border]:
    """Yield borders between members behind every `part_bytes` of their content, and the end."""
    with open_input(file) as stream:
        try:
            _, members = open_archive(stream, file)
        except UNREADABLE as error:
            raise_unless_of_content(error)
            raise BrokenStream(str(error)) from error
    size = last = 0
    for row, member in enumerate(members):
        if size - last >= part_bytes:
            yield Border(member.header_offset, 0, size, row, 0)
            last = size
        size += member.file_size
    yield Border(file.bytes, 0, size, len(members), 0)


def open_archive(
    stream: BinaryIO, file: InputFile
) -> tuple[zipfile.ZipFile, list[zipfile.ZipInfo]]:
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
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, format_of: FormatOf, source: SourceConfig
) -> Iterator[InputRecord]:
    """Yield the records of a member: numbered from 0 in it, without lines."""
    if member.is_dir():
        return
    name = member.filename
    suffix = name.rpartition("/")[2].rpartition(".")[2].lower()
    found = format_of(f".{suffix}")
    if fault := name_error(name):
        yield InputRecord(0, None, name.encode("utf-8", "backslashreplace"), fault)
        return
    if member.external_attr >> 16 & 0o170000 == LINK:
        yield InputRecord(0, None, shown_name(name), left_out="link_member")
        return
    if found is None or name.rpartition("/")[2].startswith("."):
        yield InputRecord(0, None, shown_name(name), left_out=why_left_out(suffix))
        return
    try:
        data = unpack(archive, member)
    except UNREADABLE as error:
        raise_unless_of_content(error)
        reason = f"zip member {name[:200]!r} cannot be read: {error}"
        yield InputRecord(0, None, b"", reason)
        return
    content = InputFile(name, name, found.name, None, len(data), "", content=data)
    pieces = found.read(content, source, WHOLE_FILE)
    for record in single_records(pieces, source.max_record_bytes):
        fields = record.fields and {"member": name, **record.fields}
        yield record._replace(fields=fields, raw=None if fields else record.raw)


def unpack(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Return the content of a member; one of UNREADABLE if it is damaged, or no sound size."""
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
