"""The files of a corpus under an http(s) URL, read by one request each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import quote, unquote

from corpus_loader.places.errors import CorpusError
from corpus_loader.places.http_client import (
    OK,
    PARTIAL,
    Answer,
    StatusError,
    open_url,
    read_block,
)
from corpus_loader.places.transports import Interrupted

LISTING_BYTES = 1 << 24
NOT_THERE = frozenset({403, 404, 410})  # 403: what S3 says of a missing key to who may not list
LINK = re.compile(rb'href="([^"?#/]+/?)"')


class HttpTransport:
    """Files under an http or https URL, as a Transport (transports.py)."""

    def __init__(self, url: str) -> None:
        self.base = url.rstrip("/")

    def blocks(self, name: str, start: int) -> Iterator[bytes]:
        """Yield the bytes of a file from `start` on, by a range request."""
        with self.ask(name, start) as answer:
            skip = start if answer.status == OK else 0  # a server that knows no ranges
            while block := read_block(answer):
                if len(block) > skip:
                    yield block[skip:]
                skip = max(0, skip - len(block))

    def names(self, folder: str) -> list[str] | None:
        """List the links on the page of a folder, as most servers make it; None without a page."""
        try:
            with self.ask(f"{folder}/", 0) as answer:
                page = answer.read(LISTING_BYTES)
        except (FileNotFoundError, Interrupted, CorpusError):
            return None
        links = [unquote(link.decode("ascii", "replace")) for link in LINK.findall(page)]
        return sorted({link.rstrip("/") for link in links}) or None

    def ask(self, name: str, start: int) -> Answer:
        """Request a file from `start` on; the answer is open, successful and of that range."""
        url = f"{self.base}/{quote(name)}"
        try:
            answer = open_url(url, {"Range": f"bytes={start}-"} if start else {})
        except StatusError as error:
            if error.status in NOT_THERE:
                raise FileNotFoundError(str(error)) from None
            raise
        begins = answer.headers.get("Content-Range", "").startswith(f"bytes {start}-")
        if answer.status == PARTIAL and not begins:
            answer.close()
            raise CorpusError(f"{url}: the server sent another range than from byte {start}")
        return answer
