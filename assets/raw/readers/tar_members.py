"""Members of a tar archive, in one pass over its bytes (POSIX.1-2017 pax, ustar, GNU).

Own code, as the tarfile module stops at the first damaged header and holds extended headers of any
size. Here a damaged header costs the bytes up to the next one, and nothing of a member is held that
the caller does not take.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from assets.raw.patch import RAW_LIMIT_BYTES
from assets.raw.readers.block_stream import BlockStream
from assets.raw.readers.decompress import FileFault

BLOCK_BYTES = 512
MOST_HEADER_BYTES = 1 << 20  # of an extended header: a path and times take 200 bytes
MOST_BYTES = 1 << 60
EXTENDED = {"x": "pax", "X": "pax", "g": "global", "L": "path", "K": "link"}
Kind = Literal["file", "folder", "link", "device", "sparse", "unknown"]
KINDS: dict[str, Kind] = {
    **dict.fromkeys("07\0", "file"),
    **dict.fromkeys("12", "link"),
    **dict.fromkeys("346", "device"),
    "5": "folder",
    "S": "sparse",
}


class TarMember(NamedTuple):
    """A member of an archive, or the bytes at `offset` with an error.

    number   members and errors before it
    offset   the first byte of its headers in the content
    data     what is shown of an error
    """

    number: int
    offset: int
    name: str
    kind: Kind
    num_bytes: int
    error: str = ""
    data: bytes = b""


class _Header(NamedTuple):
    name: str
    type: str
    num_bytes: int
    is_extended: bool  # an old sparse file, whose map goes on in the next block


def tar_members(stream: BlockStream, number: int = 0) -> Iterator[TarMember]:
    """Yield the members of an archive; the caller may take a file's bytes before the next one.

    Folders do not count. Archives that were joined end to end are read to the end.
    """
    start, told, is_ended = stream.offset, dict[str, str](), True
    while block := stream.peek(BLOCK_BYTES):
        if not block.strip(b"\0"):
            stream.take(BLOCK_BYTES)
            start, is_ended = stream.offset, True
            continue
        is_ended = False
        header = _parse_header(block)
        if header is None:
            yield _skipped(stream, number)
            number, start, told = number + 1, stream.offset, {}
            continue
        stream.take(BLOCK_BYTES)
        if header.type in EXTENDED:
            told |= _extended(stream, header)
            continue
        member = _member(header, told, number, start)
        while header.is_extended and len(more := stream.take(BLOCK_BYTES)) == BLOCK_BYTES:
            header = header._replace(is_extended=bool(more[504]))
        if member.kind != "folder":
            yield from _with_data(stream, member)
            number += 1
        start, told = stream.offset, {}
    if stream.broken or not is_ended:
        error = stream.broken or FileFault("tar archive ends without its end mark (truncated)")
        yield TarMember(number, stream.offset, "", "unknown", 0, error, stream.head)


def _member(header: _Header, told: dict[str, str], number: int, start: int) -> TarMember:
    name = told.get("path", header.name)
    size = told.get("size", "")
    num_bytes = int(size) if size.isdecimal() and len(size) < 19 else header.num_bytes
    kind = KINDS.get(header.type, "unknown")
    if kind == "file" and any(key.startswith("GNU.sparse.") for key in told):
        kind = "sparse"
    if kind == "file" and name.endswith("/"):  # of the time before type flags
        kind = "folder"
    has_data = header.type in "07\0" or kind in ("sparse", "unknown")
    return TarMember(number, start, name, kind, num_bytes if has_data else 0)


def _with_data(stream: BlockStream, member: TarMember) -> Iterator[TarMember]:
    """Yield a member, and go to its end."""
    end = stream.offset + member.num_bytes
    yield member
    stream.skip(end - stream.offset)
    if stream.offset == end:
        stream.skip(-member.num_bytes % BLOCK_BYTES)


def _skipped(stream: BlockStream, number: int) -> TarMember:
    """Go to the next header, and return what was there in its place."""
    offset, head = stream.offset, stream.peek(RAW_LIMIT_BYTES)
    stream.take(BLOCK_BYTES)
    while (block := stream.peek(BLOCK_BYTES)) and _parse_header(block) is None:
        stream.take(BLOCK_BYTES)
    error = "no valid tar header at this place"
    return TarMember(number, offset, "", "unknown", 0, error, head)


def _parse_header(block: bytes) -> _Header | None:
    """Return the fields of a header; None if its checksum or size is wrong."""
    if len(block) < BLOCK_BYTES:
        return None
    num_bytes, checksum = _number(block[124:136]), _number(block[148:156])
    if checksum is None or num_bytes is None or num_bytes > MOST_BYTES:
        return None
    summed = block[:148] + b" " * 8 + block[156:]
    if checksum != sum(summed) and checksum != sum(summed) - 256 * sum(b > 127 for b in summed):
        return None  # old programs added signed bytes
    name = _text(block[:100])
    prefix = _text(block[345:500]) if block[257:263] == b"ustar\0" else ""
    kind = chr(block[156])
    return _Header(
        f"{prefix}/{name}" if prefix else name, kind, num_bytes, kind == "S" and bool(block[482])
    )


def _number(field: bytes) -> int | None:
    """Return a number of a header: octal digits, or binary (GNU) behind a byte 0x80."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    digits = field.partition(b"\0")[0].strip()
    if digits.strip(b"01234567"):
        return None
    return int(digits or b"0", 8)


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "backslashreplace")


def _extended(stream: BlockStream, header: _Header) -> dict[str, str]:
    """Return what an extended header says of the next member; nothing if it is too large."""
    size = header.num_bytes
    if size > MOST_HEADER_BYTES:
        stream.skip(size + -size % BLOCK_BYTES)
        return {}
    data = stream.take(size)
    stream.skip(-size % BLOCK_BYTES)
    match EXTENDED[header.type]:
        case "path":
            return {"path": _text(data)}
        case "pax":
            return _pax_records(data)
    return {}


def _pax_records(data: bytes) -> dict[str, str]:
    """Return the records `length key=value` of a pax header, up to one that is broken."""
    records, at = dict[str, str](), 0
    while at < len(data):
        digits, _, _ = data[at : at + 20].partition(b" ")
        if not digits.isdigit() or int(digits) < len(digits) + 3:
            return records
        key, _, value = data[at + len(digits) + 1 : at + int(digits) - 1].partition(b"=")
        records[_text(key)] = value.decode("utf-8", "backslashreplace")
        at += int(digits)
    return records
