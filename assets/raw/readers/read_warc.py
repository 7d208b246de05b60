"""Web archives: the main text of HTML pages in WARC files (ISO 28500:2017).

The framing (header, Content-Length, body) is parsed here and each record is passed to fastwarc on
its own: fastwarc's iterator stops at a broken header and returns a cut body as if it were whole. A
damaged header costs the bytes up to the next record, not the file. Price: nearly all of the time
goes into resiliparse's parser and main-content rules.
"""

import io
import re
from collections.abc import Iterator

from assets.raw.readers.decompress import BrokenStream, read_blocks
from assets.raw.readers.documents import RAW_LIMIT_BYTES
from assets.raw.readers.input_file import InputFile
from assets.raw.readers.input_record import InputRecord
from resources.settings.sources import SourceConfig

HEADER_BYTES = 1 << 16
RECORD_START = re.compile(rb"WARC/1\.[01]\r\n")
CONTENT_LENGTH = re.compile(rb"^content-length:[ \t]*(\d{1,18})[ \t]*\r?$", re.I | re.M)
RESPONSE = re.compile(rb"^warc-type:[ \t]*response[ \t]*\r?$", re.I | re.M)


def read_warc(file: InputFile, source: SourceConfig) -> Iterator[InputRecord]:
    """Yield records of HTTP 200 text/html responses and of broken records; others do not count."""
    row = 0
    stream = _Stream(read_blocks(file))
    for record, error in _split_records(stream, source.max_record_bytes):
        if error:
            yield InputRecord(row, None, record, error)
        else:
            page = _page_record(row, record, source)
            if page is None:
                continue
            yield page
        row += 1


class _Stream:
    """Stream of bytes over blocks; `broken` is the reason if the blocks ended early."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._ready = b""
        self.broken = ""
        self.head = b""

    def fill(self, num_bytes: int) -> bytes:
        """Return the bytes ahead, at least `num_bytes` unless the stream ends; take none."""
        parts, size = [self._ready], len(self._ready)
        try:
            while size < num_bytes and (block := next(self._blocks, b"")):
                parts.append(block)
                size += len(block)
        except BrokenStream as error:
            self.broken, self.head = error.reason, error.head
        self._ready = b"".join(parts) if len(parts) > 1 else self._ready
        return self._ready

    def take(self, num_bytes: int) -> bytes:
        """Take up to `num_bytes`."""
        ready = self.fill(num_bytes)
        self._ready = ready[num_bytes:]
        return ready[:num_bytes]

    def skip(self, num_bytes: int) -> int:
        """Drop up to `num_bytes` without holding them; return the number of dropped bytes."""
        skipped = 0
        while skipped < num_bytes and (data := self.take(min(num_bytes - skipped, 1 << 20))):
            skipped += len(data)
        return skipped


def _split_records(stream: _Stream, max_bytes: int) -> Iterator[tuple[bytes, str]]:
    """Yield (response record, "") and (bytes, error); records of other types are passed over."""
    while ready := stream.fill(HEADER_BYTES):
        blank = len(ready[:64]) - len(ready[:64].lstrip(b"\r\n"))
        if blank:
            stream.take(blank)
            continue
        header_end = ready.find(b"\r\n\r\n", 0, HEADER_BYTES) + 4
        header = ready[:header_end] if header_end > 3 else b""
        length = CONTENT_LENGTH.search(header)
        if length is None or RECORD_START.match(header) is None:
            yield _to_next_record(stream), stream.broken or "no valid WARC header at this place"
        elif RESPONSE.search(header) is None:
            stream.skip(header_end + int(length[1]))
        else:
            yield _take_record(stream, header_end + int(length[1]), max_bytes)
    if stream.broken:
        yield stream.head, stream.broken


def _take_record(stream: _Stream, size: int, max_bytes: int) -> tuple[bytes, str]:
    if size > max_bytes:
        head = stream.fill(RAW_LIMIT_BYTES)[:RAW_LIMIT_BYTES]
        stream.skip(size)
        return head, f"WARC record has {size:,} bytes, above max_record_bytes={max_bytes:,}"
    record = stream.take(size)
    if len(record) == size:
        return record, ""
    error = stream.broken or f"WARC record ends after {len(record):,} of {size:,} bytes (truncated)"
    stream.broken = ""
    return record, error


def _to_next_record(stream: _Stream) -> bytes:
    head = stream.fill(HEADER_BYTES)[:RAW_LIMIT_BYTES]
    stream.take(1)
    while ready := stream.fill(HEADER_BYTES):
        start = RECORD_START.search(ready)
        if start:
            stream.take(start.start())
            break
        stream.take(max(len(ready) - 16, 1))  # a record may start across the border
    return head


def _page_record(row: int, record: bytes, source: SourceConfig) -> InputRecord | None:
    from fastwarc.warc import ArchiveIterator

    try:
        for page in ArchiveIterator(io.BytesIO(record), parse_http=False, stream_detect=False):
            page.parse_http(auto_decode="all")
            headers = page.http_headers
            if headers is None or headers.status_code != 200:
                return None
            if (page.http_content_type or "").lower() != "text/html":
                return None
            body = page.reader.read(source.max_record_bytes + 1)
            if len(body) > source.max_record_bytes:
                error = f"page unpacks to more than max_record_bytes={source.max_record_bytes:,}"
                return InputRecord(row, None, record, error)
            text = _main_text(body, page.http_charset)
            return InputRecord(row, {source.text_field: text, **_page_fields(page.headers)})
    except (OSError, ValueError, RuntimeError) as error:
        return InputRecord(row, None, record, f"WARC record cannot be read: {error}")
    return InputRecord(row, None, record, "WARC record cannot be read: fastwarc finds none in it")


def _main_text(body: bytes, charset: str | None) -> str:
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.encoding import bytes_to_str, detect_encoding

    encoding = charset or detect_encoding(body, from_html_meta=True) or "utf-8"
    return str(extract_plain_text(bytes_to_str(body, encoding), main_content=True))


def _page_fields(headers: object) -> dict[str, object]:
    names = {
        "url": "WARC-Target-URI",
        "warc_date": "WARC-Date",
        "warc_record_id": "WARC-Record-ID",
    }
    values = dict(headers.items())  # type: ignore[attr-defined]
    return {key: values[name] for key, name in names.items() if name in values}
