"""HTTP messages of web archives, whose headers may no longer be true of their bodies."""

import contextlib
import gzip
import zlib

import brotli
from input_files import zst
from prelude import given, pytest, st

from assets.raw.readers.http_messages import Message, media_type, parse_message, plain_body

HTML = b"<html><body>" + b"<p>A page of text.</p>" * 20
RAW_DEFLATE = zlib.compress(HTML)[2:-4]


def chunked(data: bytes, size: int = 100) -> bytes:
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    return b"".join(b"%x;x=1\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def body(data: bytes, content: str = "", transfer: str = "", most: int = 1 << 20) -> bytes:
    fields = {"content-encoding": [content], "transfer-encoding": [transfer]}
    return plain_body(Message(200, fields, data), most)


@pytest.mark.parametrize(
    ("data", "content", "transfer"),
    [
        (gzip.compress(HTML), "gzip", ""),
        (gzip.compress(HTML), "X-GZIP", ""),
        (gzip.compress(HTML[:50]) + gzip.compress(HTML[50:]), "gzip", ""),
        (gzip.compress(HTML) + b"junk", "gzip", ""),
        (gzip.compress(gzip.compress(HTML)), "gzip, gzip", ""),
        (zlib.compress(HTML), "deflate", ""),
        (RAW_DEFLATE, "deflate", ""),
        (brotli.compress(HTML), "br", ""),
        (zst(HTML), "zstd", ""),
        (chunked(HTML), "", "chunked"),
        (chunked(HTML)[:-5], "", "chunked"),
        (chunked(HTML).replace(b"\r\n", b"\n"), "", "Chunked"),
        (chunked(gzip.compress(HTML)), "gzip", "chunked"),
        (gzip.compress(chunked(HTML)), "", "chunked, gzip"),
    ],
)
def test_a_body_is_read_in_its_encodings(data: bytes, content: str, transfer: str) -> None:
    assert body(data, content, transfer) == HTML


@pytest.mark.parametrize(
    "content", ["gzip", "deflate", "br", "zstd", "identity", "none", "utf-8", "gzip, br", ""]
)
@pytest.mark.parametrize("transfer", ["", "chunked", "gzip, chunked"])
def test_a_body_that_was_decoded_before_is_taken_as_it_is(content: str, transfer: str) -> None:
    assert body(HTML, content, transfer) == HTML


@pytest.mark.parametrize(
    ("data", "content", "transfer", "error"),
    [
        (gzip.compress(HTML)[:-12], "gzip", "", "ends early"),
        (gzip.compress(HTML)[:-8] + b"\0" * 8, "gzip", "", "damaged: .* incorrect data check"),
        (brotli.compress(HTML)[:-5], "br", "", "is no text"),
        (gzip.compress(HTML), "br", "", "is no text"),
        (chunked(HTML)[:-50], "", "chunked", "no valid chunk"),
    ],
)
def test_a_body_that_is_damaged_is_an_error(
    data: bytes, content: str, transfer: str, error: str
) -> None:
    with pytest.raises(ValueError, match=error):
        body(data, content, transfer)


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_no_more_is_unpacked_than_is_asked_for(coding: str) -> None:
    data, pack = b"<" + b"\0" * (1 << 24), {"br": brotli.compress, "zstd": zst}
    packed = pack.get(coding, {"gzip": gzip.compress}.get(coding, zlib.compress))(data)
    assert body(packed, coding, most=1000) == data[:1000]


@given(st.binary(max_size=200), st.sampled_from(["gzip", "deflate", "br", "zstd", "chunked"]))
def test_any_body_is_read_or_an_error(data: bytes, coding: str) -> None:
    message = parse_message(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: %b\n\n" % coding.encode() + data
    )
    assert message is not None
    with contextlib.suppress(ValueError):
        plain_body(message, 1000)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Text/HTML", ("text/html", "")),
        ("text/html; charset=UTF-8", ("text/html", "UTF-8")),
        ('text/html;x=1;Charset="a b"; y=2', ("text/html", "a b")),
        ("text/html; charset=utf-8,utf-8", ("text/html", "utf-8,utf-8")),
        ("", ("", "")),
    ],
)
def test_a_content_type_has_a_type_and_a_charset(value: str, expected: tuple[str, str]) -> None:
    assert media_type([value]) == expected
