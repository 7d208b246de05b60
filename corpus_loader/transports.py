"""Bytes of a corpus that lies elsewhere: over http(s) by the standard library, else by obstore.

A transport gives the blocks of a file from an offset on, and the names in a folder if it can. It
raises FileNotFoundError where there is no such file, Interrupted where another attempt may help,
CorpusError where none will. `read_blocks` tries again, from where the last attempt was cut.
"""

from __future__ import annotations

import http.client
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any, Protocol

from corpus_loader.files import CorpusError

ATTEMPTS = 6  # without a byte in between: waits of 0.5, 1, 2, 4 and 8 seconds
FIRST_WAIT_SECONDS = 0.5
TIMEOUT_SECONDS = 60.0  # of one read
BLOCK_BYTES = 1 << 20
LISTING_BYTES = 1 << 24
OK, PARTIAL = 200, 206
NOT_THERE = frozenset({403, 404, 410})  # 403: what S3 says of a missing key to who may not list
TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
LINK = re.compile(rb'href="([^"?#/]+/?)"')


class Interrupted(ConnectionError):
    """The connection failed in a way that may pass."""


class Transport(Protocol):
    """Where bytes come from."""

    def blocks(self, name: str, start: int) -> Iterator[bytes]:
        """The bytes of a file from `start` on."""

    def names(self, folder: str) -> list[str] | None:
        """Names of files and folders in a folder; None if that cannot be known."""


def open_transport(url: str) -> Transport:
    """The transport of a URL's scheme."""
    scheme = urllib.parse.urlsplit(url).scheme
    return HttpTransport(url) if scheme in ("http", "https") else ObjectTransport(url)


def read_blocks(transport: Transport, name: str) -> Iterator[bytes]:
    """All bytes of a file; CorpusError after ATTEMPTS attempts in a row that brought none."""
    done, failures = 0, 0
    while True:
        try:
            for block in transport.blocks(name, done):
                done, failures = done + len(block), 0
                yield block
            return
        except Interrupted as error:
            failures += 1
            if failures == ATTEMPTS:
                raise CorpusError(
                    f"{name} could not be read: {error} (byte {done:,}, attempt {failures} of "
                    f"{ATTEMPTS}). Check the network and start again from the last state."
                ) from error
        time.sleep(FIRST_WAIT_SECONDS * 2 ** (failures - 1))


def is_there(transport: Transport, name: str) -> bool:
    """True if there is such a file."""
    try:
        next(read_blocks(transport, name), b"")
    except FileNotFoundError:
        return False
    return True


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
            answer = urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS)
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


def read_block(answer: Any) -> bytes:
    """The next block of an answer, empty at its end; Interrupted if it ends before its length."""
    try:
        block: bytes = answer.read(BLOCK_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise Interrupted(f"{type(error).__name__}: {error}") from error
    if not block and answer.length:
        raise Interrupted(f"the connection was cut {answer.length:,} bytes before the end")
    return block


class ObjectTransport:
    """Objects under an s3://, gs:// or az:// URL; keys and regions come from the environment."""

    def __init__(self, url: str) -> None:
        try:
            import obstore
            import obstore.exceptions as errors
            from obstore.store import from_url
        except ImportError:
            raise CorpusError(
                f"{url!r} needs the package obstore: pip install 'tokenmill[remote]', or copy the "
                "corpus to a local disk."
            ) from None
        self.url = url
        self.obstore = obstore
        self.errors = errors
        try:
            self.store = from_url(url)
        except (errors.BaseError, ValueError) as error:
            raise CorpusError(
                f"{url!r} is no place of a corpus ({error}). Give a folder, or a URL that begins "
                "with http, https, file, s3, gs or az."
            ) from None

    def __reduce__(self) -> tuple[type[ObjectTransport], tuple[str]]:
        """A copy in another process connects by itself: modules and clients cannot be sent."""
        return ObjectTransport, (self.url,)

    def blocks(self, name: str, start: int) -> Iterator[bytes]:
        """The bytes of an object from `start` on."""
        options = {"range": {"offset": start}} if start else None
        try:
            found = self.obstore.get(self.store, name, options=options)
            for block in found.stream(min_chunk_size=BLOCK_BYTES):
                yield bytes(block)
        except (FileNotFoundError, self.errors.NotFoundError) as error:
            raise FileNotFoundError(f"{name}: {error}") from None
        except (self.errors.PermissionDeniedError, self.errors.UnauthenticatedError) as error:
            raise CorpusError(f"{name} may not be read: {error}. Check the keys.") from None
        except self.errors.BaseError as error:
            raise Interrupted(f"{name}: {error}") from error

    def names(self, folder: str) -> list[str] | None:
        """Names of objects and folders in a folder."""
        try:
            found = self.obstore.list_with_delimiter(self.store, f"{folder}/")
        except self.errors.BaseError as error:
            raise CorpusError(f"{folder} cannot be listed: {error}") from error
        paths = [each["path"] for each in found["objects"]] + list(found["common_prefixes"])
        return sorted(path.rstrip("/").rsplit("/", 1)[-1] for path in paths)
