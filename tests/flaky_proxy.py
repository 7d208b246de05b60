"""A proxy on the loopback address, before a store, whose network can be disturbed."""

from __future__ import annotations

import socket
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from socketserver import BaseRequestHandler

from served import served

BLOCK = 1 << 16
REFUSAL = "HTTP/1.1 {status} No\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n{body}"


class FlakyProxy:
    """Passes bytes on to `endpoint`; refuses requests or cuts answers when told to."""

    def __init__(self, endpoint: str) -> None:
        parts = urllib.parse.urlsplit(endpoint)
        self.target = (parts.hostname or "", parts.port or 80)
        self.refusal = b""
        self.cuts: list[int] = []  # bytes of an answer, of the next connections in turn
        self.refusals = 0  # still to be sent
        self.refused, self.passed = 0, 0  # requests; bytes of answers
        self.open: set[socket.socket] = set()
        self.endpoint = ""

    def refuse(self, status: int, body: str = "", most: int = 1 << 30) -> None:
        """Answer requests with a status from now on; connections that are open are cut."""
        text = REFUSAL.format(status=status, size=len(body), body=body)
        self.refusal, self.refusals = text.encode(), most
        self.drop()

    def recover(self) -> None:
        """Pass everything on again."""
        self.refusals = 0

    def cut(self, *num_bytes: int) -> None:
        """Cut the answers of the next connections after so many bytes."""
        self.cuts += num_bytes
        self.drop()

    def count(self, num_bytes: int) -> None:
        """Count bytes of answers."""
        self.passed += num_bytes

    def drop(self) -> None:
        """Cut all connections that are open."""
        for connection in list(self.open):
            shut(connection)

    def serve(self, client: socket.socket) -> None:
        """Handle one connection to its end."""
        if self.refusals:
            self.refusals -= 1
            self.refused += 1
            client.recv(BLOCK)
            client.sendall(self.refusal)
            shut(client)
            return
        cut = self.cuts.pop(0) if self.cuts else None
        with socket.create_connection(self.target) as server:
            self.open |= {client, server}
            upward = threading.Thread(target=pump, args=(client, server, None, ignore), daemon=True)
            upward.start()
            pump(server, client, cut, self.count)
            for connection in (client, server):
                shut(connection)
            upward.join()
            self.open -= {client, server}


def ignore(_: int) -> None:
    """Count nothing: requests."""


def pump(
    source: socket.socket, target: socket.socket, most: int | None, count: Callable[[int], None]
) -> None:
    """Pass bytes on to the end, or `most` of them; they are counted before they arrive."""
    done = 0
    with suppress(OSError):
        while (size := BLOCK if most is None else min(BLOCK, most - done)) and (
            block := source.recv(size)
        ):
            done += len(block)
            count(len(block))
            target.sendall(block)
    if most is None:
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)


def shut(connection: socket.socket) -> None:
    """Close both directions of a connection."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


@contextmanager
def flaky_proxy(endpoint: str) -> Iterator[FlakyProxy]:
    """Run a proxy before an endpoint."""
    proxy = FlakyProxy(endpoint)

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                proxy.serve(self.request)

    with served(Handler) as url:
        proxy.endpoint = url
        yield proxy
