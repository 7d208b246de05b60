"""Extract the main text of HTML pages in a process of its own: run as a script by page_child.py.

    page: one byte, its kind; one byte, the length of the charset; the charset; the page
    answer: "+" and the text, or "-" and an error

A limit ends this process and not its parent, which a process that cannot set its limits fails. CPU
time counts, not the clock's, so that a busy machine quarantines the same pages.

resiliparse drops any `<ul>` with less than four ancestors below the root as navigation, whatever is
in it, and no option says otherwise. So lists that are not mostly links get three more ancestors.
Of 187 pages of the web, 3 gain 215 words (0.1 %), 208 of them of the main text, and none loses one;
all lists of navigation stay out. Price: 2 ms for a page of 120 KB, of 5.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import re
import resource
import signal
import sys
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

from assets.raw.readers.page_child import TEXT, WIKITEXT

# `[^<>]*+` gives nothing back and stops at the next tag: linear for any text.
TOKEN = re.compile(r"<(?:!--|(/?(?:ul|a|script|style))(?=[\s/>])[^<>]*+>)", re.I)
TAG_OR_SPACE = re.compile(r"<[^<>]*+>|\s+")
HIDDEN = {  # what ends each
    "": re.compile("-->"),
    "script": re.compile("</script", re.I),
    "style": re.compile("</style", re.I),
}
OPEN, CLOSE = "<div>" * 3, "</div>" * 3
CPU_SECONDS = 10  # real pages take 3 ms
SPARE_BYTES = 64 << 20  # that looking for memory may take itself
NO_PAGE = TEXT + b"\0<p>"
PR_SET_PDEATHSIG = 1  # of prctl(2): the signal when the thread that started this process ends
MEMORY_BYTES = 2 << 30  # of address space: a page of 64 MiB takes up to 20 times its size


def text_of(kind: bytes, body: bytes, charset: str) -> str:
    """Return the main text of a page; `charset` is what its HTTP header says, or nothing.

    Of wikitext that is JSON: the text, and the numbers of what is left out.
    """
    if kind == WIKITEXT:
        from assets.raw.readers.wikitext import plain_wikitext

        head, _, wikitext = body.decode().partition("\n")
        files, categories = (frozenset(names.split("|")) for names in head.split("\t"))
        return json.dumps(plain_wikitext(wikitext, files, categories))
    from resiliparse.extract.html2text import extract_plain_text

    from assets.raw.readers.decode_page import decode_page
    from assets.raw.readers.html_child import deepen_lists

    page = body.decode() if kind == TEXT else decode_page(body, charset)
    return str(extract_plain_text(deepen_lists(page), main_content=True))


def answer(request: bytes) -> bytes:
    """Return the answer to a page."""
    end = 2 + request[1]
    try:
        return b"+" + text_of(request[:1], request[end:], request[2:end].decode()).encode()
    except (ValueError, RuntimeError, LookupError) as error:
        return f"-{type(error).__name__}: {error}".encode("utf-8", "backslashreplace")


def serve(pages: Connection, parent: int, no_memory: int) -> None:
    """Answer page after page until the parent closes the connection or ends.

    `no_memory` is the exit code if a page needs more than MEMORY_BYTES to be read, parsed or
    answered.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is for the parent, which ends this process
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return
    answer(NO_PAGE)  # what is imported for it is no page's doing
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most_seconds = resource.getrlimit(resource.RLIMIT_CPU)
    while True:
        try:
            request = pages.recv_bytes()
            until = int(time.process_time()) + 1 + CPU_SECONDS
            resource.setrlimit(resource.RLIMIT_CPU, (until, most_seconds))
            pages.send_bytes(answer(request))
        except EOFError:
            return
        except MemoryError:
            sys.exit(no_memory if has_room() else 1)


def has_room() -> bool:
    """Return whether there is memory up to the limit of this process, and not another limit."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    try:
        mmap.mmap(-1, max(MEMORY_BYTES - used - SPARE_BYTES, 1), mmap.MAP_PRIVATE).close()
    except (OSError, MemoryError):
        return False
    return True


def deepen_lists(html: str) -> str:
    """Return a page in which each outermost list that is not mostly links is nested deeper."""
    parts, at = list[str](), 0
    for start, end in _prose_lists(html):
        parts += [html[at:start], OPEN, html[start:end], CLOSE]
        at = end
    return "".join([*parts, html[at:]]) if parts else html


def _prose_lists(html: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of the outermost lists in which at most half of the text is in links."""
    depth = start = link_start = num_linked = at = 0
    while token := TOKEN.search(html, at):
        at, name = token.end(), (token[1] or "").lower()
        if name in HIDDEN:
            end = HIDDEN[name].search(html, at)
            at = end.end() if end else len(html)
        elif name == "ul":
            if not depth:
                start, link_start, num_linked = token.start(), 0, 0
            depth += 1
        elif name == "/ul" and depth:
            depth -= 1
            if not depth and 2 * num_linked <= _num_shown(html[start:at]):
                yield start, at
        elif name == "a" and depth:
            link_start = at
        elif name == "/a" and link_start:
            num_linked += _num_shown(html[link_start : token.start()])
            link_start = 0


def _num_shown(html: str) -> int:
    shown = TAG_OR_SPACE.sub("", html) if "<" in html else "".join(html.split())
    return len(shown)


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])), *map(int, sys.argv[2:]))
