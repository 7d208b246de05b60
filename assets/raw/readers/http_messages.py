"""HTTP messages of web archives: the header, and the body without its encodings (RFC 9110, 9112).

Crawlers store bodies decoded and keep the headers of the transfer, so that a body that is not in
the encoding that its header names is taken as it is. One that is damaged in it is an error.
Decompression stops behind the bytes that the caller has a use for.
"""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fastwarc.stream_io import WarcReader

HEADER_END = re.compile(rb"\r?\n\r?\n")
FOLDED = re.compile(rb"\r?\n[ \t]+")
STATUS = re.compile(rb"HTTP/\d(?:\.\d)?[ \t]+(\d{3})")
CHARSET = re.compile(r""";\s*charset\s*=\s*(?:"([^"]*)"|([^;]*))""", re.I)
CHUNK = re.compile(rb"[ \t]*([0-9a-fA-F]{1,15})[ \t]*(?:;[^\r\n]*)?\r?\n")
LINE_END = re.compile(rb"\r?\n")
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
ANY_WINDOW, ZLIB, RAW = 47, 15, -15  # of zlib.decompressobj: 47 is gzip or zlib
BINARY = re.compile(
    rb"(?!\xff\xfe|\xfe\xff|<\0|\0<).{,63}[\0-\x08\x0e-\x1a]", re.DOTALL
)  # not UTF-16


class Message(NamedTuple):
    """An HTTP response; its fields are the values of each name, in lower case."""

    status: int
    fields: Mapping[str, list[str]]
    body: bytes


def parse_message(data: bytes) -> Message | None:
    """Return the message that the bytes begin with; None if they are no HTTP response."""
    status = STATUS.match(data)
    if status is None:
        return None
    end = HEADER_END.search(data)
    header, body = (data[: end.start()], data[end.end() :]) if end else (data, b"")
    return Message(int(status[1]), parse_fields(header), body)


def parse_fields(header: bytes) -> dict[str, list[str]]:
    """Return the values of the fields behind the first line of a header, of HTTP or WARC."""
    fields = dict[str, list[str]]()
    text = FOLDED.sub(b" ", header).decode("utf-8", "backslashreplace")
    for line in text.split("\n")[1:]:
        name, colon, value = line.partition(":")
        if colon:
            fields.setdefault(name.strip().lower(), []).append(value.strip())
    return fields


def media_type(values: Iterable[str]) -> tuple[str, str]:
    """Return the type that the last value of Content-Type names, in lower case, and its charset."""
    *_, value = ("", *values)
    charset = CHARSET.search(value)
    label = next(filter(None, charset.groups()), "") if charset else ""
    return value.partition(";")[0].strip().lower(), label.strip(" \t'")


def plain_body(message: Message, most: int) -> bytes:
    """Return the body without its encodings; what is behind the first `most` bytes may be cut.

    Raises ValueError for a body that is damaged, or is neither so encoded nor text.
    """
    body, is_stale = message.body, False
    for name in ("transfer-encoding", "content-encoding"):
        codings = ",".join(message.fields.get(name, ())).lower().split(",")
        for coding in reversed(codings):
            plain = _without(coding.strip(), body, most)
            is_stale |= plain is None
            body = body if plain is None else plain
    if is_stale and BINARY.match(body):
        raise ValueError("its body is not in the encoding that its header names, and is no text")
    return body


def _without(coding: str, body: bytes, most: int) -> bytes | None:
    """Return a body without an encoding; None if it does not have that, or nobody knows it."""
    from fastwarc.stream_io import BrotliReader, ZstdReader

    match coding.removeprefix("x-"):
        case "gzip":
            return _inflated(body, ANY_WINDOW, most) if body.startswith(GZIP) else None
        case "deflate":  # zlib by the standard, raw by some servers
            unpack = partial(_inflated, body, most=most)
            return _if_valid(partial(unpack, ZLIB)) or _if_valid(partial(unpack, RAW))
        case "zstd":
            return _read(ZstdReader(io.BytesIO(body)), most) if body.startswith(ZSTD) else None
        case "br":  # it has no mark
            return _if_valid(partial(_read, BrotliReader(io.BytesIO(body)), most))
        case "chunked":
            return _joined_chunks(body)
        case "identity" | "":
            return body
    return None


def _read(reader: WarcReader, most: int) -> bytes:
    parts, left = list[bytes](), most
    try:
        while left > 0 and (data := reader.read(left)):
            parts.append(data)
            left -= len(data)
    except OSError as error:  # of memory, not of a disk
        raise ValueError(f"its body is damaged: {error}") from None
    return b"".join(parts)


def _if_valid(unpack: Callable[[], bytes]) -> bytes | None:
    try:
        return unpack()
    except ValueError:
        return None


def _inflated(body: bytes, window: int, most: int) -> bytes:
    """Return what zlib unpacks, of all members of gzip; ValueError if it is cut or damaged."""
    parts, left = list[bytes](), most
    while left > 0:
        stream = zlib.decompressobj(window)
        try:
            parts.append(stream.decompress(body, left))
        except zlib.error as error:
            raise ValueError(f"its body is damaged: {error}") from None
        left -= len(parts[-1])
        if left > 0 and not stream.eof:
            raise ValueError("its body ends early (truncated)")
        body = stream.unused_data
        if not body.startswith(GZIP):
            break
    return b"".join(parts)


def _joined_chunks(body: bytes) -> bytes | None:
    """Return the chunks of a body; None if it does not begin with one."""
    parts, at = list[bytes](), 0
    while head := CHUNK.match(body, at):
        size = int(head[1], 16)
        if not size:
            return b"".join(parts)
        parts.append(body[head.end() : head.end() + size])
        if len(parts[-1]) < size:
            break
        at = head.end() + size
        if end := LINE_END.match(body, at):
            at = end.end()
        if at == len(body):  # the last, empty one is often left out
            return b"".join(parts)
    if not at:
        return None
    raise ValueError("its body has no valid chunk at some place, or ends in one (truncated)")
