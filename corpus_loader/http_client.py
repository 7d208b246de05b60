"""The http(s) client of the loader and of ingest, on the standard library.

One place for timeouts, ranges, the meaning of a status, and the guard on redirects. The
environment's proxies are used. obstore's client is no substitute: it encodes a signed query again
and follows every redirect.
"""

from __future__ import annotations

import http.client
import ipaddress
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import IO, Any, Literal

from corpus_loader.errors import CorpusError
from corpus_loader.transports import BLOCK_BYTES, Interrupted

CONNECT_SECONDS = 10.0
READ_SECONDS = 30.0
LISTING_BYTES = 1 << 24
OK, PARTIAL, NOT_MODIFIED = 200, 206, 304
NOT_THERE = frozenset({403, 404, 410})  # 403: what S3 says of a missing key to who may not list
TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
LINK = re.compile(rb'href="([^"?#/]+/?)"')
Reach = Literal["loopback", "link-local", "private", "public"]


class StatusError(CorpusError):
    """A status that another attempt will not change."""

    def __init__(self, url: str, status: int, reason: str) -> None:
        super().__init__(f"{url}: HTTP {status} {reason}")
        self.status = status
        self.fact = f"HTTP {status} {reason}"


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
        links = [
            urllib.parse.unquote(link.decode("ascii", "replace")) for link in LINK.findall(page)
        ]
        return sorted({link.rstrip("/") for link in links}) or None

    def ask(self, name: str, start: int) -> http.client.HTTPResponse:
        """Request a file from `start` on; the answer is open, successful and of that range."""
        url = f"{self.base}/{urllib.parse.quote(name)}"
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


def open_url(
    url: str, headers: Mapping[str, str], read_seconds: float | None = None
) -> http.client.HTTPResponse:
    """Send a GET request and return the open answer, whose status is a success.

    `read_seconds` bounds the wait for each block of bytes (default READ_SECONDS). Raises
    Interrupted for what another attempt may change, StatusError for any other status but success,
    CorpusError for a broken URL or a redirect that the guard refuses.
    """
    try:
        request = TracedRequest(url, headers=dict(headers))
        timeout = READ_SECONDS if read_seconds is None else read_seconds
        answer: http.client.HTTPResponse = opener().open(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code in TRY_AGAIN:
            raise Interrupted(f"HTTP {error.code} {error.reason}") from None
        raise StatusError(url, error.code, error.reason) from None
    except (ValueError, http.client.InvalidURL) as error:
        raise CorpusError(f"{url!r} is not a valid URL ({error}). Correct it.") from error
    except (OSError, http.client.HTTPException) as error:
        raise Interrupted(f"{url}: {type(error).__name__}: {error}") from error
    return answer


def read_block(answer: http.client.HTTPResponse) -> bytes:
    """Read the next block of an answer, b"" at its end; Interrupted if it ends too early."""
    try:
        block = answer.read(BLOCK_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise Interrupted(f"{type(error).__name__}: {error}") from error
    if not block and answer.length:
        raise Interrupted(f"the connection was cut {answer.length:,} bytes before the end")
    return block


class TracedRequest(urllib.request.Request):
    """A request that knows which network its connection reached, before any redirect."""

    reached: Reach | None = None
    is_redirected = False

    def arrive(self, reach: Reach) -> None:
        """Note the network of a connection; CorpusError if a redirect may not lead there.

        A redirect may lead to a public address, or stay in the kind of network it came from: a
        public server could else have us read the services of this machine or of its network.
        """
        if self.is_redirected and reach not in ("public", self.reached):
            raise CorpusError(
                f"{self.full_url} was not requested: a redirect from a {self.reached} address led "
                f"to it, a {reach} one. If it is meant, give this URL itself."
            )
        self.reached = reach


class Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to http and https URLs, with the trace that the guard needs."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> TracedRequest | None:
        """Return the request that a redirect asks for; CorpusError for other schemes."""
        if urllib.parse.urlsplit(newurl).scheme not in ("http", "https"):
            raise CorpusError(f"{req.full_url} redirects to {newurl}, which is not http(s)")
        plain = super().redirect_request(req, fp, code, msg, headers, newurl)
        if plain is None:
            return None
        request = TracedRequest(plain.full_url, headers=plain.headers, unverifiable=True)
        request.reached, request.is_redirected = getattr(req, "reached", None), True
        return request


class PlainConnection(http.client.HTTPConnection):
    """A connection that is given up sooner than an answer, and checked by the guard."""

    def __init__(self, *args: Any, traced: TracedRequest, **options: Any) -> None:
        super().__init__(*args, **options)
        self.traced = traced

    def connect(self) -> None:
        """Connect within CONNECT_SECONDS, then read with the request's own timeout."""
        read_seconds, self.timeout = self.timeout, CONNECT_SECONDS
        super().connect()
        arrive(self, self.traced)
        self.sock.settimeout(read_seconds)


class SecureConnection(PlainConnection, http.client.HTTPSConnection):
    """A PlainConnection over TLS."""


class PlainHandler(urllib.request.HTTPHandler):
    """Opens http URLs."""

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """Send a request."""
        return self.do_open(partial(PlainConnection, traced=req), req)  # type: ignore[arg-type]


class SecureHandler(urllib.request.HTTPSHandler):
    """Opens https URLs; certificates are checked as always."""

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """Send a request."""
        return self.do_open(partial(SecureConnection, traced=req), req)  # type: ignore[arg-type]


@cache
def opener() -> urllib.request.OpenerDirector:
    """Build the opener of URLs, which also uses the environment's proxies."""
    return urllib.request.build_opener(PlainHandler, SecureHandler, Redirects)


def arrive(connection: http.client.HTTPConnection, request: TracedRequest) -> None:
    """Tell a request the address that its connection has: of the peer, so DNS cannot change it.

    Behind a proxy the peer is the proxy; there the URL's own address is judged, if it is a number.
    """
    target = urllib.parse.urlsplit(request.full_url).hostname or ""
    is_direct = target == urllib.parse.urlsplit(f"//{connection.host}").hostname
    has_tunnel = getattr(connection, "_tunnel_host", None) is not None
    address = connection.sock.getpeername()[0] if is_direct and not has_tunnel else target
    try:
        request.arrive(reach_of(address))
    except CorpusError:
        connection.close()
        raise


def reach_of(host: str) -> Reach:
    """Return the kind of network of an address; a name counts as public, "localhost" excepted."""
    if host == "localhost":
        return "loopback"
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "public"
    mapped = getattr(address, "ipv4_mapped", None)
    address = mapped or address
    if address.is_loopback or address.is_unspecified:
        return "loopback"
    if address.is_link_local:
        return "link-local"
    return "public" if address.is_global else "private"
