"""The text of pages, by a child process with limits of CPU time and memory.

A page that hangs its parser, or makes it explode, costs the child and not the run. A thread has one
child for all of its pages, since starting it takes 0.1 s. A page is to blame for what happens again
and is no one else's doing: the child is over a limit, or the page alone crashes two fresh children
while another page passes. Any other end, such as a SIGKILL for want of memory, is tried again, and
then ends the part: nothing is published for it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import weakref
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import NamedTuple

# Kinds: HTML as it was sent, HTML in UTF-8, wikitext behind a line with names of namespaces.
BYTES, TEXT, WIKITEXT = b"b", b"t", b"w"
SCRIPT = Path(__file__).with_name("html_child.py")
END_SECONDS = 10  # without the connection, a child works for as long as its limit of CPU time
WAIT_SECONDS = 600  # the child's own limits end it long before, unless it cannot run at all
TRIES = 4  # two that crash may come between two that something else ends
NO_MEMORY = 3  # exit code of a child that needs more than its limit for a page
OVER_LIMIT = frozenset({-signal.SIGXCPU, NO_MEMORY})
CRASHES = frozenset({-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS})
MOST_CRASHES = 2  # of fresh children, until the page is to blame
GOOD_PAGE, GOOD_TEXT = b"<html><body><main><p>A good page.</p></main></body></html>", "A good page."
ENDED = "page ends its parser: it needs more than 10 s of CPU time or 2 GiB of memory"
CRASHED = "page ends its parser: it crashes two processes in which another page passes"
_of_thread = threading.local()


class PageError(ValueError):
    """A page whose text cannot be extracted."""


class ChildError(RuntimeError):
    """The process that reads pages ends for a reason that is not the page's."""


class _Ended(Exception):
    """A child that has ended before it answered, by its exit code: -n for signal n."""

    def __init__(self, code: int) -> None:
        self.code = code
        super().__init__(signal.strsignal(-code) if code < 0 else f"exit code {code}")


class _Page(NamedTuple):
    """A page as html_child.py takes it."""

    body: bytes
    kind: bytes = BYTES
    charset: str = ""


class _Child:
    """A process that extracts texts, in a group of its own: Ctrl-C is for the parent."""

    def __init__(self) -> None:
        self.owner, self.is_fresh = os.getpid(), True
        self.pages, theirs = Pipe()
        with theirs:
            command = [sys.executable, "-P", str(SCRIPT)]
            command += map(str, (theirs.fileno(), self.owner, NO_MEMORY))
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], process_group=0
            )
        self.end = weakref.finalize(self, _end, self.pages, self.process)

    def text_of(self, page: _Page) -> str:
        """Return the text of a page; _Ended if the child has ended before."""
        name = page.charset.encode("utf-8", "replace")[:255]
        self.is_fresh = False
        try:
            self.pages.send_bytes(page.kind + bytes([len(name)]) + name + page.body)
            if not self.pages.poll(WAIT_SECONDS):
                self.process.kill()
            found = self.pages.recv_bytes()
        except (EOFError, OSError):
            self.end()
            raise _Ended(self.process.returncode) from None
        except BaseException:  # the answer would be taken for that of the next page
            self.process.kill()
            self.end()
            raise
        if found[:1] == b"-":
            raise PageError(f"page cannot be read: {found[1:].decode()}")
        return found[1:].decode()


def _end(pages: Connection, process: subprocess.Popen[bytes]) -> None:
    pages.close()
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def page_text(body: bytes, charset: str | None = None) -> str:
    """Return the main text of a page as it was sent; raise what `main_text` does."""
    return _text_of(_Page(body, charset=charset or ""))


def main_text(html: str) -> str:
    """Return the main text of a page.

    Raises PageError if its extraction fails or exceeds a limit, and ChildError if that cannot be
    told, since children end for other reasons.
    """
    return _text_of(_Page(html.encode(), TEXT))


def wikitext_text(wikitext: str, namespaces: tuple[str, str]) -> tuple[str, dict[str, int]]:
    """Return the text of wikitext, and the numbers of what is left out of it by kind.

    `namespaces` are the names of files and of categories, with a bar between them. Raises what
    `main_text` does.
    """
    page = "\t".join(namespaces) + "\n" + wikitext
    text, lost = json.loads(_text_of(_Page(page.encode(), WIKITEXT)))
    return text, lost


def _text_of(page: _Page) -> str:
    crashes, ends = 0, list[str]()
    for _ in range(TRIES):
        child = _child_of_thread()
        counts = child.is_fresh
        try:
            return child.text_of(page)
        except _Ended as end:
            if end.code in OVER_LIMIT:
                raise PageError(ENDED) from None
            crashes += counts and end.code in CRASHES
            ends.append(str(end))
        if crashes >= MOST_CRASHES and _passes(_Page(GOOD_PAGE)):
            raise PageError(CRASHED)
    raise ChildError(
        f"The process that reads HTML pages on {socket.gethostname()} ended {TRIES} times without "
        f"an answer ({', '.join(ends)}), which is no fault of the page. Look for a lack of memory "
        "there (`dmesg`), then build again."
    )


def _child_of_thread() -> _Child:
    child: _Child | None = getattr(_of_thread, "child", None)
    if child is None or child.owner != os.getpid() or not child.end.alive:
        child = _of_thread.child = _Child()
    return child


def _passes(page: _Page) -> bool:
    """Return whether a page of one paragraph is read."""
    try:
        return _child_of_thread().text_of(page) == GOOD_TEXT
    except (_Ended, PageError):
        return False
