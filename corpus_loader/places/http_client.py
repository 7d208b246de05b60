"""The http(s) client of the loader and of ingest, on the standard library.

One place for time limits, ranges, lengths, credentials, the meaning of a status, and the guard on
redirects. The environment's proxies are used. obstore's client is no substitute: it encodes a
signed query again and follows every redirect.
"""

from __future__ import annotations

import email.utils
import http.client
import ipaddress
import re
import socket
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, partial
from typing import IO, Any, Literal

from corpus_loader.places.errors import CorpusError
from corpus_loader.places.transports import BLOCK_BYTES, Interrupted
from corpus_loader.places.url_secrets import NetrcError, authorization, shown
from corpus_loader.places.urls import Url

CONNECT_SECONDS = 10.0
READ_SECONDS = 30.0  # for each read of the socket
ANSWER_SECONDS = 120.0  # for all headers of an answer
BLOCK_SECONDS = 60.0  # for each block of 1 MB
CLOSE_SECONDS = 1.0  # for the server to close the connection after the last byte
SECONDS_DIGITS = 9  # of a Retry-After that is taken for a number
OK, PARTIAL, NOT_MODIFIED, UNSATISFIABLE = 200, 206, 304, 416
TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
REDIRECTS = frozenset({301, 302, 303, 307, 308})
SECRET_HEADERS = frozenset({"Authorization", "Cookie", "Proxy-authorization"})  # as urllib spells
RATE_LIMIT = re.compile(r"\br=0;t=(\d+)")  # "api";r=0;t=55: none left for 55 s


class StatusError(CorpusError):
    """A status that another attempt will not change."""

    def __init__(self, url: str, status: int) -> None:
        self.status = status
        self.fact = status_text(status)
        super().__init__(f"{shown(url)}: {self.fact}")


def open_url(
    url: str,
    headers: Mapping[str, str],
    read_seconds: float | None = None,
    body: bytes | None = None,
) -> Answer:
    """Send a GET request, a POST with a body, and return the open answer of a success.

    A user and password in the URL, or in netrc for its host, are sent as Basic authorization, to
    that host only. `read_seconds` bounds the wait for each byte (default READ_SECONDS). Raises
    Interrupted for what another attempt may change, StatusError for any other status but success,
    CorpusError for a broken URL or a redirect that the guard refuses.
    """
    try:
        request = TracedRequest(without_user(url), body, dict(headers))
        if "Authorization" not in request.headers and (credentials := authorization(url)):
            request.add_header("Authorization", credentials)
        timeout = READ_SECONDS if read_seconds is None else read_seconds
        answer: Answer = opener().open(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code in TRY_AGAIN:
            limit = RATE_LIMIT.search(error.headers.get("RateLimit", ""))
            asked = error.headers.get("Retry-After") or (limit[1] if limit else "")
            raise Interrupted(status_text(error.code), retry_after=pause_asked(asked)) from None
        raise StatusError(url, error.code) from None
    except NetrcError as error:
        raise CorpusError(str(error)) from None
    except (ValueError, http.client.InvalidURL):  # their messages quote the URL
        raise CorpusError(f"{shown(url)!r} is not a valid URL. Correct it.") from None
    except (OSError, http.client.HTTPException) as error:
        raise Interrupted(f"{shown(url)}: {type(error).__name__}: {error}") from error
    return answer


def status_text(status: int) -> str:
    """Return a status in words: the standard's, since the server's own could be anything."""
    if status in REDIRECTS:
        return f"HTTP {status}: too many redirects, no target, or one that is not http(s)"
    return f"HTTP {status} {http.client.responses.get(status, '')}".rstrip()


def without_user(url: str) -> str:
    """Return a URL without user and password, which urllib would take for the host."""
    user = Url(url).user
    return url.replace(f"://{user}@", "://", 1) if user else url


def pause_asked(header: str) -> float:
    """Return the seconds of a Retry-After (RFC 9110 10.2.3); 0 for none, or one that is broken."""
    if header.isdecimal() and len(header) < SECONDS_DIGITS:
        return float(header)
    try:
        date = email.utils.parsedate_to_datetime(header)
    except ValueError:
        return 0.0
    return max(0.0, date.timestamp() - time.time())


class Answer(http.client.HTTPResponse):
    """An answer that can be cut off from another thread."""

    def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.socket = sock


def read_block(answer: Answer, most: int | None = None) -> bytes:
    """Read the next block of an answer, of `most` bytes if that is less; b"" at its end.

    Raises Interrupted if the answer ends too early, or the block takes over BLOCK_SECONDS.
    """
    block, size = bytearray(), BLOCK_BYTES if most is None else min(BLOCK_BYTES, most)
    try:
        with at_most(BLOCK_SECONDS, answer.socket):
            while len(block) < size and (some := answer.read1(size - len(block))):
                block += some
    except Interrupted:
        raise
    except (OSError, http.client.HTTPException) as error:
        raise Interrupted(f"{type(error).__name__}: {error}") from error
    if not block and answer.length:
        raise Interrupted(f"the connection was cut {answer.length:,} bytes before the end")
    return bytes(block)


def whole_body(answer: Answer, max_bytes: int) -> Iterator[bytes]:
    """Yield the blocks of an answer that must have the length it announces, `max_bytes` at most."""
    announced, received = answer.length, 0
    answer.length = None  # http.client would stop at it, and hide bytes that follow
    if announced is not None and announced > max_bytes:
        raise CorpusError(f"the server announces {announced:,} bytes, over {max_bytes:,}")
    while announced is None or received < announced:
        block = read_block(answer, (max_bytes + 1 if announced is None else announced) - received)
        received += len(block)
        if received > max_bytes:
            raise CorpusError(f"the server sends over {max_bytes:,} bytes")
        if block:
            yield block
        elif announced is None:
            return
        else:
            cut = announced - received
            raise Interrupted(f"the connection was cut {cut:,} bytes before the end")
    if sends_more(answer):
        raise CorpusError(f"the server sends more than the {announced:,} bytes that it announces")


def sends_more(answer: Answer) -> bool:
    """Check for bytes after the last; a server that keeps the connection open sends none."""
    try:
        with at_most(CLOSE_SECONDS, answer.socket):
            return bool(answer.read1(1))
    except (OSError, http.client.HTTPException):
        return False


@contextmanager
def at_most(seconds: float, connection: socket.socket) -> Iterator[None]:
    """Cut a connection after so many seconds, and raise Interrupted: a server may drip for ever.

    A socket's own timeout starts again with every byte.
    """
    is_late = threading.Event()

    def cut() -> None:
        is_late.set()
        with suppress(OSError):
            socket.socket.shutdown(connection, socket.SHUT_RDWR)  # of TLS too: no farewell

    timer = threading.Timer(seconds, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    except (OSError, http.client.HTTPException):
        if not is_late.is_set():
            raise
    finally:
        timer.cancel()
    if is_late.is_set():
        raise Interrupted(f"the server is too slow: not done within {seconds:g} s")


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
                f"{shown(self.full_url)} was not requested: a redirect from a {self.reached} "
                f"address led to it, a {reach} one. If it is meant, give this URL itself."
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
            raise CorpusError(
                f"{shown(req.full_url)} redirects to {shown(newurl)}, which is not http(s)"
            )
        plain = super().redirect_request(req, fp, code, msg, headers, without_user(newurl))
        if plain is None:
            return None
        fp.close()  # unread: its body may have no end
        request = TracedRequest(plain.full_url, headers=plain.headers, unverifiable=True)
        for name in SECRET_HEADERS if origin_of(newurl) != origin_of(req.full_url) else ():
            request.remove_header(name)
        request.reached, request.is_redirected = getattr(req, "reached", None), True
        return request


def origin_of(url: str) -> tuple[str, str | None, int | None]:
    """Return scheme, host and port: credentials are meant for all three of them."""
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.hostname, parts.port


class PlainConnection(http.client.HTTPConnection):
    """A connection that is given up sooner than an answer, and checked by the guard."""

    response_class = Answer

    def __init__(self, *args: Any, traced: TracedRequest, **options: Any) -> None:
        super().__init__(*args, **options)
        self.traced = traced

    def connect(self) -> None:
        """Connect within CONNECT_SECONDS, then read with the request's own timeout."""
        read_seconds, self.timeout = self.timeout, CONNECT_SECONDS
        super().connect()
        arrive(self, self.traced)
        self.sock.settimeout(read_seconds)

    def getresponse(self) -> http.client.HTTPResponse:
        """Receive all headers within ANSWER_SECONDS."""
        with at_most(ANSWER_SECONDS, self.sock):
            return super().getresponse()


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
    """Build the opener of http(s) URLs, which also uses the environment's proxies."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        PlainHandler(),
        SecureHandler(),
        Redirects(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.UnknownHandler(),
    ):
        opener.add_handler(handler)
    return opener


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


Reach = Literal["loopback", "link-local", "private", "public"]
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # RFC 6052: an IPv4 address in the last 32 bits
COMPATIBLE = ipaddress.IPv6Network("::/96")  # RFC 4291 2.5.5.1, the same, obsolete
SITE_LOCAL = ipaddress.IPv6Network("fec0::/10")


def reach_of(host: str) -> Reach:
    """Return the kind of network of an address; a name counts as public, "localhost" excepted."""
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return "loopback"
    address = address_of(name)
    if address is None:
        return "public"
    if address.is_loopback or address.is_unspecified:
        return "loopback"
    if address.is_link_local:
        return "link-local"
    is_local = address in SITE_LOCAL or address.is_multicast
    return "public" if address.is_global and not is_local else "private"


def address_of(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the address that a host is, also one inside another or written as 0x7f.1; or None."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        try:
            return ipaddress.IPv4Address(socket.inet_aton(host))
        except (OSError, UnicodeEncodeError, ValueError):
            return None
    if isinstance(address, ipaddress.IPv4Address) or address.is_loopback or address.is_unspecified:
        return address
    if address in NAT64 or address in COMPATIBLE:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address
