"""Web servers on the loopback address, for as long as a test needs them."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import BaseRequestHandler
from threading import Thread
from typing import Any


class Server(ThreadingHTTPServer):
    request_queue_size = 64  # of 5, some of 16 at once would wait a second to be let in


class Quiet(SimpleHTTPRequestHandler):
    """Files of a folder, without a log."""

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class Answering(BaseHTTPRequestHandler):
    """Sends whole answers, without a log."""

    def answer(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Send an answer; whoever asked may be gone."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        with suppress(OSError):
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def served(handler: Callable[..., BaseRequestHandler]) -> Iterator[str]:
    """The URL of a server whose requests a handler answers."""
    with Server(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def served_folder(folder: Path) -> AbstractContextManager[str]:
    """The URL of a server of a folder's files."""
    return served(partial(Quiet, directory=str(folder)))
