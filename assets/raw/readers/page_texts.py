"""Main texts of HTML pages, from a child process with limits of CPU time and memory.

A page that hangs its parser, or makes it explode, costs the child and not the run: the next page
starts another one. A thread has one child for all of its pages, since starting it takes 0.1 s.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import weakref
from multiprocessing.connection import Connection, Pipe
from pathlib import Path

SCRIPT = Path(__file__).with_name("html_child.py")
WAIT_SECONDS = 600  # the child's own limits end it long before, unless it cannot run at all
ENDED = "HTML page ends its parser: it needs more than 10 s of CPU time or 2 GiB of memory"
_of_thread = threading.local()


class PageError(ValueError):
    """A page whose text cannot be extracted."""


class _Child:
    """A process that extracts texts."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.pages, theirs = Pipe()
        with theirs:
            command = [sys.executable, "-P", str(SCRIPT), str(theirs.fileno())]
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()]
            )
        self.end = weakref.finalize(self, _end, self.pages, self.process)

    def text_of(self, body: bytes, charset: str) -> str:
        """Return the text of a page."""
        name = charset.encode("utf-8", "replace")[:255]
        try:
            self.pages.send_bytes(bytes([len(name)]) + name + body)
            if not self.pages.poll(WAIT_SECONDS):
                raise EOFError
            found = self.pages.recv_bytes()
        except (EOFError, OSError):
            self.process.kill()
            self.end()
            raise PageError(ENDED) from None
        if found[:1] == b"-":
            raise PageError(f"HTML page cannot be read: {found[1:].decode()}")
        return found[1:].decode()


def _end(pages: Connection, process: subprocess.Popen[bytes]) -> None:
    pages.close()
    process.wait()


def page_text(body: bytes, charset: str | None = None) -> str:
    """Return the main text of a page; PageError if its extraction fails or exceeds a limit."""
    child: _Child | None = getattr(_of_thread, "child", None)
    if child is None or child.owner != os.getpid() or not child.end.alive:
        child = _of_thread.child = _Child()
    return child.text_of(body, charset or "")
