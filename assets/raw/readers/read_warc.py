"""Web archives: the main text of HTML pages in WARC files, and the texts of WET files.

The framing (header, Content-Length, body; ISO 28500:2017) is parsed here and each page is passed to
fastwarc on its own: fastwarc's iterator stops at a broken header and returns a cut body as if it
were whole. A damaged header costs the bytes up to the next record, not the file. Price: nearly all
of the time of a WARC file goes into resiliparse's parser and main-content rules.
"""

import io
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from assets.raw.readers.block_stream import BlockStream
from assets.raw.readers.decompress import BrokenStream, FileFault, read_blocks
from assets.raw.readers.documents import RAW_LIMIT_BYTES
from assets.raw.readers.input_file import WHOLE, InputFile, Span
from assets.raw.readers.input_record import InputRecord
from assets.raw.readers.page_texts import PageError, page_text
from resources.settings.sources import SourceConfig

HEADER_BYTES = 1 << 16
RECORD_START = re.compile(rb"WARC/1\.[01]\r\n")
CONTENT_LENGTH = re.compile(rb"^content-length:[ \t]*(\d{1,18})[ \t]*\r?$", re.I | re.M)
RESPONSE = re.compile(rb"^warc-type:[ \t]*response[ \t]*\r?$", re.I | re.M)
CONVERSION = re.compile(rb"^warc-type:[ \t]*conversion[ \t]*\r?$", re.I | re.M)
FIELDS = {
    "url": "warc-target-uri",
    "language": "warc-identified-content-language",
    "warc_date": "warc-date",
    "warc_record_id": "warc-record-id",
}
UNREADABLE = (OSError, ValueError, RuntimeError)


class _Record(NamedTuple):
    """A record of a wanted type, or the bytes at `offset` with an error.

    `body` is where its body begins in `data`.
    """

    offset: int
    data: bytes
    body: int = 0
    error: str = ""


def read_warc(file: InputFile, source: SourceConfig, span: Span = WHOLE) -> Iterator[InputRecord]:
    """Yield records of HTTP 200 text/html responses and of broken records; others do not count."""
    row = span.first.row
    for record in _records(file, source, span, RESPONSE):
        if record.error:
            yield InputRecord(row, None, record.data, record.error)
        else:
            page = _page_record(row, record.data, source)
            if page is None:
                continue
            yield page
        row += 1


def read_wet(file: InputFile, source: SourceConfig, span: Span = WHOLE) -> Iterator[InputRecord]:
    """Yield the texts of conversion records and broken records; others do not count."""
    for row, record in enumerate(_records(file, source, span, CONVERSION), span.first.row):
        if record.error:
            yield InputRecord(row, None, record.data, record.error)
        else:
            text = record.data[record.body :].decode("utf-8", "surrogateescape")
            fields = _text_fields(record.data[: record.body])
            yield InputRecord(row, {source.text_field: text, **fields})


def warc_starts(
    file: InputFile, source: SourceConfig, blocks: Iterator[bytes]
) -> Iterator[tuple[int, int]]:
    """Yield offset and row of each record that counts; BrokenStream if one of them is broken."""
    row, is_warc = 0, file.format == "warc"
    stream = BlockStream(blocks)
    wanted = RESPONSE if is_warc else CONVERSION
    for record in _split_records(stream, wanted, source.max_record_bytes):
        if record.error:
            raise BrokenStream(record.error)
        if not is_warc or _is_page(record.data):
            yield record.offset, row
            row += 1


def _records(
    file: InputFile, source: SourceConfig, span: Span, wanted: re.Pattern[bytes]
) -> Iterator[_Record]:
    blocks = read_blocks(file, span.first, span.end.place)
    stream = BlockStream(blocks, span.first.offset)
    for record in _split_records(stream, wanted, source.max_record_bytes):
        if record.offset >= span.end.offset:
            return
        yield record


def _split_records(
    stream: BlockStream, wanted: re.Pattern[bytes], max_bytes: int
) -> Iterator[_Record]:
    """Yield records of the wanted type and broken ones; records of other types are passed over."""
    while ready := stream.peek(HEADER_BYTES):
        blank = len(ready[:64]) - len(ready[:64].lstrip(b"\r\n"))
        if blank:
            stream.take(blank)
            continue
        header_end = ready.find(b"\r\n\r\n", 0, HEADER_BYTES) + 4
        header = ready[:header_end] if header_end > 3 else b""
        length = CONTENT_LENGTH.search(header)
        if length is None or RECORD_START.match(header) is None:
            offset, data = stream.offset, _to_next_record(stream)
            error = stream.broken or "no valid WARC header at this place"
            yield _Record(offset, data, 0, error)
        elif wanted.search(header) is None:
            stream.skip(header_end + int(length[1]))
        else:
            yield _take_record(stream, header_end, int(length[1]), max_bytes)
    if stream.broken:
        yield _Record(stream.offset, stream.head, 0, stream.broken)


def _take_record(stream: BlockStream, body: int, length: int, max_bytes: int) -> _Record:
    offset, size = stream.offset, body + length
    if size > max_bytes:
        head = stream.peek(RAW_LIMIT_BYTES)
        stream.skip(size)
        error = f"WARC record has {size:,} bytes, above max_record_bytes={max_bytes:,}"
        return _Record(offset, head, body, error)
    data, error = stream.take(size), ""
    if len(data) < size:
        cut = f"WARC record ends after {len(data):,} of {size:,} bytes (truncated)"
        error, stream.broken = stream.broken or cut, FileFault()
    return _Record(offset, data, body, error)


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


def _page_record(row: int, record: bytes, source: SourceConfig) -> InputRecord | None:
    try:
        page = _html_page(record)
        if page is None:
            return None
        body = page.reader.read(source.max_record_bytes + 1)
        if len(body) > source.max_record_bytes:
            error = f"page unpacks to more than max_record_bytes={source.max_record_bytes:,}"
            return InputRecord(row, None, record, error)
        charset, fields = page.http_charset, _page_fields(page.headers)
    except UNREADABLE as error:
        return InputRecord(row, None, record, f"WARC record cannot be read: {error}")
    try:
        return InputRecord(row, {source.text_field: page_text(body, charset), **fields})
    except PageError as error:
        return InputRecord(row, None, record, f"WARC record cannot be read: {error}")


def _is_page(record: bytes) -> bool:
    """Return whether a record has a row: an HTML page, or one that cannot be read."""
    try:
        return _html_page(record) is not None
    except UNREADABLE:
        return True


def _html_page(record: bytes) -> Any | None:
    """Return the page of an HTTP 200 text/html response, None of any other."""
    from fastwarc.warc import ArchiveIterator

    records = ArchiveIterator(io.BytesIO(record), parse_http=False, stream_detect=False)
    page = next(iter(records), None)
    if page is None:
        raise ValueError("fastwarc finds none in it")
    page.parse_http(auto_decode="all")
    headers = page.http_headers
    if headers is None or headers.status_code != 200:
        return None
    return page if (page.http_content_type or "").lower() == "text/html" else None


def _page_fields(headers: object) -> dict[str, object]:
    names = {
        "url": "WARC-Target-URI",
        "warc_date": "WARC-Date",
        "warc_record_id": "WARC-Record-ID",
    }
    values = dict(headers.items())  # type: ignore[attr-defined]
    return {key: values[name] for key, name in names.items() if name in values}


def _text_fields(header: bytes) -> dict[str, object]:
    lines = header.decode("utf-8", "backslashreplace").split("\r\n")[1:]
    named = {name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    return {key: named[name] for key, name in FIELDS.items() if named.get(name)}
