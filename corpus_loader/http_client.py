"""The http(s) client, by the standard library."""

from __future__ import annotations

import http.client
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from functools import cache
from typing import Any

from corpus_loader.errors import CorpusError
from corpus_loader.transports import BLOCK_BYTES, Interrupted

CONNECT_SECONDS = 10.0
READ_SECONDS = 30.0
LISTING_BYTES = 1 << 24
OK, PARTIAL = 200, 206
NOT_THERE = frozenset({403, 404, 410})  # 403: what S3 says of a missing key to who may not list
TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
LINK = re.compile(rb'href="([^"?#/]+/?)"')


class HttpTransport:
    """Files under an http or https URL."""

    def __init__(self, url: str) -> None:
        self.base = url.rstrip("/")

    def blocks(self, name: str, start: int) -> Iterator[bytes]:
        """The bytes of a file from `start` on, by a range request."""
        with self.ask(name, start) as answer:
            skip = start if answer.status == OK else 0  # a server that knows no ranges
            while block := read_block(answer):
                if len(block) > skip:
                    yield block[skip:]
                skip = max(0, skip - len(block))

    def names(self, folder: str) -> list[str] | None:
        """What the page of the folder links to, as most servers make it."""
        try:
            with self.ask(f"{folder}/", 0) as answer:
                page = answer.read(LISTING_BYTES)
        except (FileNotFoundError, Interrupted, CorpusError):
            return None
        links = [
            urllib.parse.unquote(link.decode("ascii", "replace")) for link in LINK.findall(page)
        ]
        return sorted({link.rstrip("/") for link in links}) or None

    def ask(self, name: str, start: int) -> Any:
        """Send a request; the answer is open and says that all is well."""
        url = f"{self.base}/{urllib.parse.quote(name)}"
        headers = {"Range": f"bytes={start}-"} if start else {}
        request = urllib.request.Request(url, headers=headers)
        try:
            answer = opener().open(request, timeout=CONNECT_SECONDS)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code in NOT_THERE:
                raise FileNotFoundError(f"{url}: HTTP {error.code} {error.reason}") from None
            if error.code in TRY_AGAIN:
                raise Interrupted(f"HTTP {error.code} {error.reason}") from None
            raise CorpusError(f"{url}: HTTP {error.code} {error.reason}") from None
        except (OSError, http.client.HTTPException) as error:
            raise Interrupted(f"{url}: {type(error).__name__}: {error}") from error
        begins = answer.headers.get("Content-Range", "").startswith(f"bytes {start}-")
        if answer.status == PARTIAL and not begins:
            answer.close()
            raise CorpusError(f"{url}: the server sent another range than from byte {start}")
        return answer


class PlainConnection(http.client.HTTPConnection):
    """Slower to give up an answer than a connection."""

    def connect(self) -> None:
        """Connect within the time that was given, then read with more."""
        super().connect()
        self.sock.settimeout(READ_SECONDS)


class SecureConnection(http.client.HTTPSConnection):
    """The same over TLS."""

    def connect(self) -> None:
        """Connect within the time that was given, then read with more."""
        super().connect()
        self.sock.settimeout(READ_SECONDS)


class PlainHandler(urllib.request.HTTPHandler):
    """Opens http URLs."""

    def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        """Send a request."""
        return self.do_open(PlainConnection, request)


class SecureHandler(urllib.request.HTTPSHandler):
    """Opens https URLs; certificates are checked as always."""

    def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        """Send a request."""
        return self.do_open(SecureConnection, request)


@cache
def opener() -> urllib.request.OpenerDirector:
    """What opens URLs, also through the environment's proxies."""
    return urllib.request.build_opener(PlainHandler, SecureHandler)


def read_block(answer: Any) -> bytes:
    """The next block of an answer, empty at its end; Interrupted if it ends before its length."""
    try:
        block: bytes = answer.read(BLOCK_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise Interrupted(f"{type(error).__name__}: {error}") from error
    if not block and answer.length:
        raise Interrupted(f"the connection was cut {answer.length:,} bytes before the end")
    return block
