"""Web archives: the main text of HTML pages in WARC files, and the texts of WET files.

Every record of a file is a document, an error or left out by reason. Versions 0.17 to 1.1 and both
kinds of line ends are read, with names of fields in any case (ISO 28500:2017; crawls of researchers
are older than it). A damaged header costs the bytes up to the next record, not the file.
Price: nearly all of the time of a WARC file goes into resiliparse's parser and main-content rules.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from assets.raw.readers.archive_names import (
    OTHER_CONTENT_TYPE,
    OTHER_STATUS,
    why_left_out_of_warc,
)
from assets.raw.readers.borders import start_borders
from assets.raw.readers.decompress import BlockStream, BrokenStream, FileFault, read_blocks
from assets.raw.readers.format import Format
from assets.raw.readers.http_messages import (
    HEADER_END,
    Message,
    media_type,
    parse_fields,
    parse_message,
    plain_body,
)
from assets.raw.readers.input_file import WHOLE_FILE, Border, InputFile, Slice, Span
from assets.raw.readers.input_record import RAW_LIMIT_BYTES, InputRecord
from assets.raw.readers.page_child import page_text
from resources.settings.sources import SourceConfig

HEADER_BYTES = 1 << 16
CONTENT_PER_TEXT = {"warc": 8, "wet": 1}  # bytes of pages per byte of their main text
RECORD_START = re.compile(rb"WARC/(?:0\.1[78]|1\.[01])\r?\n")
LF_END = re.compile(rb"\n\n(?=WARC/(?:0\.1[78]|1\.[01])\n)")
FILE_END = re.compile(rb"\n\n\Z")
WANTED = {"warc": {"response", "resource"}, "wet": {"conversion"}}
PAGE_TYPES = {"text/html", "application/xhtml+xml"}
UNKNOWN_TYPES = {"unknown/unknown", "application/unknown", "*/*"}
HTML_START = re.compile(  # of a page without a content type (WHATWG MIME Sniffing, 7.1)
    rb"(?:\xef\xbb\xbf)?[ \t\n\f\r]*<(?:!--|\?xml|(?:!doctype html|html|head|body|title|script"
    rb"|iframe|h1|div|font|table|a|style|b|br|p|meta)[ \t\n\f\r>/])",
    re.I,
)
FIELDS = {
    "url": "warc-target-uri",
    "language": "warc-identified-content-language",
    "warc_date": "warc-date",
    "warc_record_id": "warc-record-id",
}
# what a page's headers say on its use, which the rule `opt_out` reads
USAGE_HEADERS = {"content-usage": "content_usage", "content-signal": "content_signal"}


class _Record(NamedTuple):
    """A record, or the bytes at `offset` with an error; one that is left out has no body.

    `body` is where its body begins in `data`.
    """

    offset: int
    data: bytes
    body: int = 0
    error: str = ""
    left_out: str = ""

    @property
    def fields(self) -> dict[str, list[str]]:
        """The fields of its header."""
        return parse_fields(self.data[: self.body])


class _Page(NamedTuple):
    """An HTML page as it was sent, with the charset of its header."""

    message: Message
    charset: str


def read_warc(
    file: InputFile, source: SourceConfig, cut: Slice = WHOLE_FILE
) -> Iterator[InputRecord]:
    """Yield HTML pages, broken records and what is left out; the last has no row of its own."""
    row = cut.span.first.row
    for record in _records(file, source, cut.span):
        read = _read_page(row, record, source)
        yield read
        row += not read.left_out


def read_wet(
    file: InputFile, source: SourceConfig, cut: Slice = WHOLE_FILE
) -> Iterator[InputRecord]:
    """Yield texts of conversion records, broken records and what is left out."""
    row = cut.span.first.row
    for record in _records(file, source, cut.span):
        if record.error or record.left_out:
            yield _unread(row, record)
        else:
            text = record.data[record.body :].decode("utf-8", "surrogateescape")
            yield InputRecord(row, {source.text_field: text, **_document_fields(record.fields)})
        row += not record.left_out


def _record_starts(
    file: InputFile, source: SourceConfig, blocks: Iterator[bytes]
) -> Iterator[tuple[int, int]]:
    """Yield offset and row of each record that has one; BrokenStream if one of them is broken."""
    row = 0
    for record in _split_records(BlockStream(blocks), file.format, source.max_record_bytes):
        if record.error:
            raise BrokenStream(record.error)
        if not record.left_out and (file.format == "wet" or _is_page(record, source)):
            yield record.offset, row
            row += 1


def _records(file: InputFile, source: SourceConfig, span: Span) -> Iterator[_Record]:
    blocks = read_blocks(file, span.first, span.end.place)
    stream = BlockStream(blocks, span.first.offset)
    for record in _split_records(stream, file.format, source.max_record_bytes):
        if record.offset >= span.end.offset:
            return
        yield record


def _split_records(stream: BlockStream, file_format: str, max_bytes: int) -> Iterator[_Record]:
    """Yield all records, and what is broken; those of types that are not read have no data."""
    while ready := stream.peek(HEADER_BYTES):
        blank = len(ready[:64]) - len(ready[:64].lstrip(b"\r\n"))
        if blank:
            stream.take(blank)
            continue
        end = HEADER_END.search(ready) if RECORD_START.match(ready) else None
        header = ready[: end.end()] if end else b""
        fields = parse_fields(header)
        length, kind = _length(fields), _value(fields, "warc-type").lower()
        if length is not None and b"\r" not in header:
            length = _length_in_lf(stream, len(header), length, max_bytes)
        if length is None:
            offset, data = stream.offset, _to_next_record(stream)
            error = stream.broken or "no valid WARC header at this place"
            yield _Record(offset, data, 0, error)
        elif kind in WANTED[file_format]:
            yield _take_record(stream, len(header), length, max_bytes)
        else:
            yield _pass_over(stream, kind, len(header) + length)
    if stream.broken:
        yield _Record(stream.offset, stream.head, 0, stream.broken)


def _length(fields: Mapping[str, list[str]]) -> int | None:
    digits = _value(fields, "content-length")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 19 else None


def _length_in_lf(stream: BlockStream, body: int, length: int, max_bytes: int) -> int:
    """Return the length of a body whose archive may have lost its carriage returns.

    Then Content-Length is too large by their number, and the body ends before the next record.
    """
    size = body + length
    if size > max_bytes:
        return length
    ready = stream.peek(size + 64)
    behind = ready[size:].lstrip(b"\r\n")
    if len(ready) >= size and (not behind or RECORD_START.match(behind)):
        return length
    end = LF_END.search(ready, body)
    if end is None and len(ready) < size:
        end = FILE_END.search(ready, max(body, len(ready) - 2))
    return end.start() - body if end else length


def _value(fields: Mapping[str, list[str]], name: str) -> str:
    return fields.get(name, [""])[0]


def _take_record(stream: BlockStream, body: int, length: int, max_bytes: int) -> _Record:
    offset, size = stream.offset, body + length
    if size > max_bytes:
        head = stream.peek(RAW_LIMIT_BYTES)
        stream.skip(size)
        error = f"WARC record has {size:,} bytes, above max_record_bytes={max_bytes:,}"
        return _Record(offset, head, body, error)
    data, error = stream.take(size), ""
    if len(data) < size:
        error, stream.broken = stream.broken or _cut(len(data), size), FileFault()
    return _Record(offset, data, body, error)


def _pass_over(stream: BlockStream, kind: str, size: int) -> _Record:
    offset, num_skipped = stream.offset, stream.skip(size)
    if num_skipped < size:
        error = stream.broken or _cut(num_skipped, size)
        stream.broken = FileFault()
        return _Record(offset, b"", 0, error)
    return _Record(offset, b"", left_out=why_left_out_of_warc(kind))


def _cut(num_read: int, size: int) -> FileFault:
    return FileFault(f"WARC record ends after {num_read:,} of {size:,} bytes (truncated)")


def _to_next_record(stream: BlockStream) -> bytes:
    head = stream.peek(RAW_LIMIT_BYTES)
    stream.take(1)
    while ready := stream.peek(HEADER_BYTES):
        start = RECORD_START.search(ready)
        if start:
            stream.take(start.start())
            break
        stream.take(max(len(ready) - 16, 1))  # a record may start across the border
    return head


def _unread(row: int, record: _Record) -> InputRecord:
    return InputRecord(row, None, record.data, record.error, left_out=record.left_out)


def _read_page(row: int, record: _Record, source: SourceConfig) -> InputRecord:
    if record.error or record.left_out:
        return _unread(row, record)
    try:
        page = _html_page(record, source)
        if isinstance(page, str):
            return InputRecord(row, None, left_out=page)
        body = plain_body(page.message, source.max_record_bytes + 1)
        if len(body) > source.max_record_bytes:
            error = f"page unpacks to more than max_record_bytes={source.max_record_bytes:,}"
            return InputRecord(row, None, record.data, error)
        text = page_text(body, page.charset)
        headers = {field: page.message.fields.get(name) for name, field in USAGE_HEADERS.items()}
        usage = {field: ", ".join(values) for field, values in headers.items() if values}
        fields = _document_fields(record.fields) | usage
        return InputRecord(row, {source.text_field: text, **fields})
    except ValueError as error:
        return InputRecord(row, None, record.data, f"WARC record cannot be read: {error}")


def _is_page(record: _Record, source: SourceConfig) -> bool:
    """Return whether a record has a row: an HTML page, or one that cannot be read."""
    try:
        return isinstance(_html_page(record, source), _Page)
    except ValueError:
        return True


def _html_page(record: _Record, source: SourceConfig) -> _Page | str:
    """Return the HTML page of a record, or the reason to leave it out.

    A response is an HTTP message with status 200; a resource is a body alone, whose type is the
    record's. A body without a type is looked at.
    """
    body, types = record.data[record.body :], record.fields.get("content-type", [])
    message = parse_message(body)
    if message is None:
        message = Message(200, {}, body)
    else:
        types = message.fields.get("content-type", [])
    if message.status != 200:
        return OTHER_STATUS
    name, charset = media_type(types)
    is_page = name in PAGE_TYPES
    if "/" not in name or name in UNKNOWN_TYPES:
        is_page = bool(HTML_START.match(plain_body(message, source.max_record_bytes + 1)))
    return _Page(message, charset) if is_page else OTHER_CONTENT_TYPE


def _document_fields(fields: Mapping[str, list[str]]) -> dict[str, object]:
    """Return what is kept of a header; old crawls write URIs in angle brackets."""
    named = {key: _value(fields, name) for key, name in FIELDS.items()}
    named["url"] = named["url"].removeprefix("<").removesuffix(">")
    return {key: value for key, value in named.items() if value}


def _borders(file: InputFile, source: SourceConfig, part_bytes: int) -> Iterator[Border]:
    part_bytes *= CONTENT_PER_TEXT[file.format]
    return start_borders(file, partial(_record_starts, file, source), part_bytes)


WET = Format("wet", (".wet",), read_wet, borders=_borders, is_member=False, is_container=True)
WARC = replace(WET, name="warc", endings=(".warc",), read=read_warc, has_pages=True)
