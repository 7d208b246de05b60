"""Mail, a document for each message: of mailboxes (.mbox, RFC 4155), and of a file of one (.eml).

A message begins at a line `From ` with a time behind a blank line; without one at its start, a file
is a single message. The text is that of its parts in text/plain and text/html, of alternatives the
plain one (RFC 2046, 5.1.4: they say the same). All other parts are left out as attachments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from email import message_from_bytes, policy
from email.errors import MessageError
from email.headerregistry import HeaderRegistry
from email.message import EmailMessage
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

from assets.raw.readers.archive_names import ATTACHMENT
from assets.raw.readers.decode_page import decode_page
from assets.raw.readers.html_fields import plain_text
from assets.raw.readers.input_file import InputFile, Slice
from assets.raw.readers.input_record import InputRecord
from assets.raw.readers.read_lines import Line, read_lines
from resources.settings.sources import SourceConfig

MOST_FROM, MOST_HEADER = 1000, 2000  # bytes: the parser's time for a header is quadratic
MOST_NESTED = 50  # comments in a header, and parts in others: they are parsed by recursion
FROM = re.compile(rb"From \S.*\d:\d\d\b.*\d{4}\b.*")
QUOTED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)
HEADERS = re.compile(  # that are parsed, of a message and its parts
    rb"^(?:content-[\w-]+|subject|date|message-id):(?:[^\n]*\n[ \t])*[^\n]*", re.MULTILINE | re.I
)
INTRODUCES = re.compile(  # quoted lines: somebody wrote, or an address or a year
    r"(?:\b(?:wrote|writes|said|schrieb|écrit|escribió|escreveu|scritto|schreef|skrev|napisał|"
    r"пишет|писал)\b|[@<]|\b(?:19|20)\d\d\b).*[:：]\s*$"
)
QUOTE = re.compile(
    r"(?P<lead>(?:^(?!>)[^\S\n]*+\S.*+\n){1,2}\n*+)?(?P<quote>(?:^>.*+(?:\n|\Z))++)", re.MULTILINE
)
MANY_BLANK = re.compile(r"\n{3,}")
NO_HEADER = "it does not begin with a header such as `Subject: ...`"
# Each look at a header would parse it again, and messages have few kinds of content between them.
POLICY = policy.default.clone(header_factory=lru_cache(256)(HeaderRegistry()))
FAULTS = (MessageError, ValueError, LookupError, TypeError, AttributeError, AssertionError)


class _Message(NamedTuple):
    line: int
    data: bytes
    error: str


def read(file: InputFile, source: SourceConfig, cut: Slice) -> Iterator[InputRecord]:
    """Yield the record of each message, behind one for each of its attachments."""
    messages = _messages(read_lines(file, source, cut.span), source.max_record_bytes)
    for row, message in enumerate(messages):
        for record in _records(message, source):
            yield record._replace(row=row, line=message.line)


def _messages(lines: Iterable[Line], max_bytes: int) -> Iterator[_Message]:
    """Yield the messages of a file; of one above `max_bytes`, or that breaks, what there is."""
    parts, size, error, first, is_mailbox, is_blank = list[bytes](), 0, "", 1, False, True
    for number, line in enumerate(chain(lines, [None]), 1):
        can_start = is_blank and (is_mailbox or number == 1)
        if line is None or (can_start and _is_start(line)):
            data = b"\n".join(parts)
            if error or data.strip():
                yield _Message(first, data, error)
            parts, size, error, first, is_mailbox = [], 0, "", number, True
            continue
        size += len(line.data) + 1
        error = error or line.error
        is_blank = not line.data.strip()
        if size <= max_bytes:
            parts.append(line.data)
        else:
            error = error or f"message is above max_record_bytes={max_bytes:,}"


def _is_start(line: Line) -> bool:
    return not line.error and len(line.data) <= MOST_FROM and FROM.match(line.data) is not None


def _records(found: _Message, source: SourceConfig) -> Iterator[InputRecord]:
    if found.error:
        yield InputRecord(0, None, found.data, found.error)
        return
    try:
        _check_headers(found.data)
        message = message_from_bytes(QUOTED_FROM.sub(rb"\1", found.data), policy=POLICY)
        if not message.keys():
            raise ValueError(NO_HEADER)
        parts = [*_shown(message)]
        texts = [_text(part) for part in parts if _is_text(part)]
        fields = _fields(message)
    except FAULTS as error:
        yield InputRecord(0, None, found.data, f"message cannot be read: {error}")
        return
    for _ in range(len(parts) - len(texts)):
        yield InputRecord(0, None, left_out=ATTACHMENT)
    if texts:
        text, num_quoted = "\n\n".join(texts).strip("\n"), 0
        if source.quotes == "fold":
            text, num_quoted = _folded(text)
        counts = {"quoted_lines": num_quoted} if num_quoted else {}
        yield InputRecord(0, {**fields, **counts, source.text_field: text})


def _check_headers(data: bytes) -> None:
    """Raise ValueError where the parser would take long, or all of the stack."""
    headers = HEADERS.findall(data)
    for header in headers:
        if len(header) > MOST_HEADER or header.count(b"(") > MOST_NESTED:
            raise ValueError(f"the header {header[:40].decode(errors='replace')!r}... is too long")
    if sum(b"multipart/" in each or b"message/" in each for each in headers) > MOST_NESTED:
        raise ValueError(f"it has more than {MOST_NESTED} parts that hold parts")


def _shown(part: EmailMessage) -> Iterator[EmailMessage]:
    """Yield the parts without parts, of alternatives one: the plain text, or else the last."""
    if not part.is_multipart():
        yield part
        return
    inner: Any = part.get_payload()
    if part.get_content_type() == "multipart/alternative":
        plain = (each for each in inner if each.get_content_type() == "text/plain")
        inner = [next((each for each in plain if _text(each).strip()), inner[-1])]
    for each in inner:
        yield from _shown(each)


def _is_text(part: EmailMessage) -> bool:
    is_file = part.is_attachment() or part.get_filename()
    return part.get_content_type() in ("text/plain", "text/html") and not is_file


def _text(part: EmailMessage) -> str:
    data: Any = part.get_payload(decode=True)
    text = decode_page(data or b"", part.get_content_charset("")).replace("\r\n", "\n")
    return plain_text(text) if part.get_content_type() == "text/html" else text.strip("\n")


def _fields(message: EmailMessage) -> dict[str, str]:
    """Return the id, the date (ISO 8601, as far as it is one) and the subject, where there."""
    date = message["date"]
    when = getattr(date, "datetime", None)
    found = {
        "id": str(message["message-id"] or "").strip("<> \t"),
        "date": when.isoformat() if isinstance(when, datetime) else str(date or ""),
        "subject": str(message["subject"] or ""),
    }
    return {name: value for name, value in found.items() if value}


def _folded(text: str) -> tuple[str, int]:
    """Return a text without quoted lines and the one or two that introduce them; their number."""
    parts, at, num_lines = list[str](), 0, 0
    for found in QUOTE.finditer(text):
        lead = (found["lead"] or "").splitlines(keepends=True)
        shown = [line for line in lead if line.strip()]
        is_paragraph = found.start() < 2 or text[found.start() - 2] == "\n"
        num_leading = 0
        if shown and INTRODUCES.search(shown[-1]):
            num_leading = len(shown) if is_paragraph else 1
        parts += [text[at : found.start()], *shown[: len(shown) - num_leading], "\n"]
        at = found.end()
        num_lines += num_leading + found["quote"].rstrip("\n").count("\n") + 1
    rest = "".join([*parts, text[at:]])
    return (MANY_BLANK.sub("\n\n", rest).strip("\n"), num_lines) if num_lines else (text, 0)
