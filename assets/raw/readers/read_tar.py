"""Tar archives as WebDataset has them: adjacent members of one key are a sample, and a document.

    0001.txt + 0001.json + 0001.cls  ->  the text, the fields of the object, and `cls`

The key is the name up to the first dot behind the last slash, or up to the last one if what is
behind the first is no ending of the format: 22.05.txt is a text. The text is that of a member .txt,
.md or .html, or else the text field of the object. A field that two members have stays twice: that
of the object is renamed `name_2` then. Members of other kinds are counted and left out, and named
unless they stand beside a sample of their key.

Members are found by own code, as the tarfile module stops at the first damaged header and holds
extended headers of any size. Here a damaged header costs the bytes up to the next one (POSIX.1-2017
pax, ustar, GNU).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Literal, NamedTuple

from assets.raw.readers.archive_names import (
    OTHER_MEMBER,
    name_error,
    shown_name,
    why_left_out,
)
from assets.raw.readers.borders import start_borders
from assets.raw.readers.decompress import (
    STEP_BYTES,
    BlockStream,
    BrokenStream,
    FileFault,
    read_blocks,
)
from assets.raw.readers.format import Format
from assets.raw.readers.input_file import WHOLE_FILE, Border, InputFile, Slice, Span
from assets.raw.readers.input_record import (
    MEMBER_ROWS,
    RAW_LIMIT_BYTES,
    InputRecord,
    parse_record,
)
from assets.raw.readers.read_lines import line_record, split_lines
from assets.raw.readers.read_pages import page_record
from resources.settings.sources import SourceConfig

BLOCK_BYTES = 512
MOST_HEADER_BYTES = 1 << 20  # of an extended header: a path and times take 200 bytes
MOST_BYTES = 1 << 60
END_MARK = range(2, 22)  # blocks: the mark, and zeros up to a record of 20 (tar(5))
EXTENDED = {"x": "pax", "X": "pax", "g": "global", "L": "path", "K": "link"}
Kind = Literal["file", "folder", "link", "device", "sparse", "unknown"]
KINDS: dict[str, Kind] = {
    **dict.fromkeys("07\0", "file"),
    **dict.fromkeys("12", "link"),
    **dict.fromkeys("346", "device"),
    "5": "folder",
    "S": "sparse",
}
TEXTS = {  # formats of texts by suffix
    **{"text": "txt", "txt": "txt", "md": "md", "markdown": "md"},
    **{"html": "html", "htm": "html"},
}
LINES = ("jsonl", "ndjson")
MOST_WAITING = 100
ROLES = {**dict.fromkeys(TEXTS, "text"), "json": "json", "cls": "cls"}


@dataclass
class _Sample:
    """The members of a key; `row` is the number of the first, in whose name `suffix` ends."""

    key: str
    row: int
    name: str
    parts: dict[str, tuple[str, bytes]] = field(default_factory=dict)  # suffix, bytes by role


def read_tar(
    file: InputFile, source: SourceConfig, cut: Slice = WHOLE_FILE
) -> Iterator[InputRecord]:
    """Yield a record per sample, and one per member that is left out or broken.

    Its row is the number of the sample's first member that is read. A member of JSON lines is a
    record per line, whose row is its byte in the member plus 10^12 for this member and each before.
    """
    before, since = list[InputRecord](), list[InputRecord]()  # left out before and since `last`
    last = "\0"  # the key of the last sample
    for each in _samples(file, source, cut.span):
        record = _finished(each, source) if isinstance(each, _Sample) else each
        if record.left_out:
            since.append(record)
            if len(since) < MOST_WAITING:
                continue
        key = each.key if isinstance(each, _Sample) and not record.left_out else last
        yield from _named(before, last, key)
        before, since, last = since, [], key
        if not record.left_out:
            yield record
    yield from _named([*before, *since], last)


def _samples(file: InputFile, source: SourceConfig, span: Span) -> Iterator[_Sample | InputRecord]:
    """Yield samples, and the records of members that are no part of one."""
    stream = BlockStream(read_blocks(file, span.first, span.end.place), span.first.offset)
    sample: _Sample | None = None
    for member in tar_members(stream, span.first.row):
        if member.offset >= span.end.offset:
            break
        key, suffix = _key(member)
        if other := _other_record(member, suffix):
            yield other
            continue
        if sample and (_is_lines(suffix) or sample.key != key):
            yield sample
            sample = None
        if _is_lines(suffix):
            yield from _line_records(stream, member, source.max_record_bytes)
            continue
        sample = sample or _Sample(key, member.number, member.name)
        error, data = _take(stream, member, source.max_record_bytes)
        if not error and ROLES[suffix] in sample.parts:
            error = f"member {member.name[:200]!r}: its sample has a {ROLES[suffix]} member before"
        if error:
            yield InputRecord(member.number, None, data, error)
        else:
            sample.parts[ROLES[suffix]] = suffix, data
    if sample:
        yield sample


def _named(records: Iterable[InputRecord], *keys: str) -> Iterator[InputRecord]:
    """Yield what is left out, without names where it is beside a sample of a key."""
    beside = tuple(f"{key}.".encode("utf-8", "backslashreplace") for key in keys)
    for record in records:
        is_beside = record.raw and record.raw.startswith(beside)
        yield record._replace(raw=None) if is_beside else record


def _sample_starts(blocks: Iterator[bytes]) -> Iterator[tuple[int, int]]:
    """Yield offset and number of the first member of each sample; BrokenStream for a damage."""
    last = ""
    for member in tar_members(BlockStream(blocks)):
        if member.error:
            raise BrokenStream(member.error)
        key, suffix = _key(member)
        if not _other_record(member, suffix) and key != last:
            yield member.offset, member.number
            last = key


def _key(member: TarMember) -> tuple[str, str]:
    """Return the key of a member's sample, and the rest of its name in lower case."""
    key = _first_stem(member.name)
    suffix = member.name[len(key) + 1 :].lower()
    ending = suffix.rpartition(".")[2]
    if suffix not in ROLES and ROLES.get(ending) in ("text", "json"):
        return member.name[: -len(ending) - 1], ending
    return key, suffix


def _first_stem(name: str) -> str:
    folder, slash, base = name.rpartition("/")
    return f"{folder}{slash}{base.partition('.')[0]}"


def _other_record(member: TarMember, suffix: str) -> InputRecord | None:
    """Return the record of a member that is no part of a sample; None of one that is."""
    if error := member.error or name_error(member.name):
        return InputRecord(member.number, None, member.data or member.name.encode(), error)
    is_hidden = member.name.rpartition("/")[2].startswith(".")
    if member.kind == "file" and (suffix in ROLES or _is_lines(suffix)) and not is_hidden:
        return None
    reason = why_left_out(suffix) if member.kind == "file" else f"{member.kind}_member"
    return InputRecord(member.number, None, shown_name(member.name), left_out=reason)


def _is_lines(suffix: str) -> bool:
    return suffix.rpartition(".")[2] in LINES


def _line_records(stream: BlockStream, member: TarMember, max_bytes: int) -> Iterator[InputRecord]:
    """Yield the records of a member of JSON lines, which is read as a stream."""

    def blocks() -> Iterator[bytes]:
        left = member.num_bytes
        while left and (block := stream.take(min(left, STEP_BYTES))):
            left -= len(block)
            yield block
        if left:
            reason = stream.broken or _cut(member.num_bytes - left, member.num_bytes)
            stream.broken = FileFault()
            raise BrokenStream(reason)

    for line in split_lines(blocks(), 0, max_bytes):
        if record := line_record(line, 0):
            fields = record.fields and {"member": member.name, **record.fields}
            row = (member.number + 1) * MEMBER_ROWS + record.row
            yield record._replace(row=row, fields=fields, raw=None if fields else record.raw)


def _cut(num_read: int, size: int) -> FileFault:
    return FileFault(f"tar member ends after {num_read:,} of {size:,} bytes (truncated)")


def _take(stream: BlockStream, member: TarMember, max_bytes: int) -> tuple[str, bytes]:
    """Return an error, or "", and the bytes of a member."""
    size = member.num_bytes
    if size > max_bytes:
        error = f"tar member has {size:,} bytes, above max_record_bytes={max_bytes:,}"
        return error, stream.peek(RAW_LIMIT_BYTES)[:size]
    data = stream.take(size)
    if len(data) == size:
        return "", data
    error, stream.broken = stream.broken or _cut(len(data), size), FileFault()
    return error, data


def _finished(sample: _Sample, source: SourceConfig) -> InputRecord:
    """Return the record of a sample; an object with dots in its name may be another's `v.json`."""
    record = _sample_record(sample, source)
    is_text = "text" in sample.parts or source.text_field in (record.fields or ())
    if is_text or sample.key == _first_stem(sample.name):
        return record
    return InputRecord(sample.row, None, shown_name(sample.name), left_out=OTHER_MEMBER)


def _sample_record(sample: _Sample, source: SourceConfig) -> InputRecord:
    """Return the record of a sample: the fields of its object, its class and its text."""
    fields: dict[str, object] = {"member": sample.name}
    if "json" in sample.parts:
        parsed = parse_record(sample.row, sample.parts["json"][1])
        if parsed.fields is None:
            return parsed
        fields = _joined(fields, parsed.fields)
    if "cls" in sample.parts:
        label = sample.parts["cls"][1].decode("utf-8", "surrogateescape").strip()
        fields = _joined(
            fields, {"cls": int(label) if label.isdecimal() and len(label) < 19 else label}
        )
    if "text" in sample.parts:
        suffix, data = sample.parts["text"]
        page = page_record(sample.row, data, TEXTS[suffix], source)
        if page.fields is None:
            return page
        fields = _joined(fields, page.fields)
    return InputRecord(sample.row, fields)


def _joined(fields: Mapping[str, object], others: Mapping[str, object]) -> dict[str, object]:
    """Return all fields; one that the others have too, with another value, under a new name."""
    taken, joined = {*fields, *others}, dict[str, object]()
    for name, value in fields.items():
        if name in others and others[name] != value:
            free = (f"{name}_{number}" for number in count(2) if f"{name}_{number}" not in taken)
            joined[next(free)] = value
        else:
            joined[name] = value
    return {**joined, **others}


def _borders(file: InputFile, _source: SourceConfig, part_bytes: int) -> Iterator[Border]:
    return start_borders(file, _sample_starts, part_bytes)


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

    Folders do not count. Archives that were joined end to end are read to the end. More or fewer
    zeros before a member than an end mark has are an error: members may have been there.
    """
    start, told, is_ended, zeros = stream.offset, dict[str, str](), True, 0
    while block := stream.peek(BLOCK_BYTES):
        if not block.strip(b"\0"):
            stream.take(BLOCK_BYTES)
            start, is_ended, zeros = stream.offset, True, zeros + 1
            continue
        if zeros and zeros not in END_MARK:
            error = f"{zeros * BLOCK_BYTES:,} zeros stand in place of a tar header"
            yield TarMember(number, start, "", "unknown", 0, error)
            number += 1
        is_ended, zeros = False, 0
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


TAR = Format(
    "tar",
    (".tar",),
    read_tar,
    unit="member",
    borders=_borders,
    is_member=False,
    is_container=True,
)
