"""Documents that are a whole file, or a whole member of an archive: text, Markdown and HTML.

The front matter of Markdown (YAML between two lines `---`) goes to the other fields, bounded in
bytes and in what its aliases expand to. What is no such mapping stays in the text.

The main text of HTML comes from a child process with limits of CPU time and memory: a page that
hangs its parser, or makes it explode, costs the child and not the run. A thread has one child for
all of its pages, since starting it takes 0.1 s. A page is to blame for what happens again and is no
one else's doing: the child is over a limit, or the page alone crashes two fresh children while
another page passes. Any other end, such as a SIGKILL for want of memory, is tried again, and then
ends the part: nothing is published for it.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import weakref
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from datetime import date
from multiprocessing.connection import Connection, Pipe
from pathlib import Path

import msgspec
import yaml

from assets.raw.readers.decompress import BrokenStream, read_blocks
from assets.raw.readers.format import Format
from assets.raw.readers.input_file import WHOLE_FILE, InputFile, Slice
from assets.raw.readers.input_record import RAW_LIMIT_BYTES, InputRecord
from resources.settings.named_files import check_size
from resources.settings.sources import SourceConfig

SCRIPT = Path(__file__).with_name("html_child.py")
END_SECONDS = 10  # without the connection, a child works for as long as its limit of CPU time
WAIT_SECONDS = 600  # the child's own limits end it long before, unless it cannot run at all
TRIES = 4  # two that crash may come between two that something else ends
NO_MEMORY = 3  # exit code of a child that needs more than its limit for a page
OVER_LIMIT = frozenset({-signal.SIGXCPU, NO_MEMORY})
CRASHES = frozenset({-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS})
MOST_CRASHES = 2  # of fresh children, until the page is to blame
GOOD_PAGE, GOOD_TEXT = b"<html><body><main><p>A good page.</p></main></body></html>", "A good page."
ENDED = "HTML page ends its parser: it needs more than 10 s of CPU time or 2 GiB of memory"
CRASHED = "HTML page ends its parser: it crashes two processes in which another page passes"
_of_thread = threading.local()
FRONT_MATTER = re.compile(rb"---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
MOST_FRONT_BYTES = 1 << 16
MOST_DEPTH = 50
ENCODE = msgspec.json.Encoder(enc_hook=str, order="deterministic").encode  # YAML has sets
DECODE_OBJECT = msgspec.json.Decoder(dict[str, object]).decode
NO_MAPPING = (yaml.YAMLError, ValueError, TypeError, OverflowError, RecursionError)


def read_page(
    file: InputFile, source: SourceConfig, _cut: Slice = WHOLE_FILE
) -> Iterator[InputRecord]:
    """Yield the one record of a Markdown or HTML file; an empty file has none."""
    data = whole_file(file, source)
    if isinstance(data, InputRecord):
        yield data
    elif data:
        yield page_record(0, data, file.format, source)


def whole_file(file: InputFile, source: SourceConfig) -> bytes | InputRecord:
    """Return the content of a file, or its fault: it is broken, or above `max_record_bytes`."""
    data, error = bytearray(), ""
    try:
        for block in read_blocks(file):
            data += block
            if len(data) > source.max_record_bytes:
                error = f"{file.format} file is above max_record_bytes={source.max_record_bytes:,}"
                break
    except BrokenStream as broken:
        error, data = broken.reason, data or bytearray(broken.head)
    return InputRecord(0, None, bytes(data[:RAW_LIMIT_BYTES]), error) if error else bytes(data)


def page_record(row: int, data: bytes, file_format: str, source: SourceConfig) -> InputRecord:
    """Return the record of a whole text, Markdown or HTML file."""
    front: Mapping[str, object] = {}
    match file_format:
        case "html":
            try:
                return InputRecord(row, {source.text_field: page_text(data)})
            except PageError as error:
                return InputRecord(row, None, data, str(error))
        case "md":
            front, data = split_front_matter(data.removeprefix(BOM_UTF8))
    text = data.removeprefix(BOM_UTF8).decode("utf-8", "surrogateescape")
    return InputRecord(row, {**front, source.text_field: text})


def split_front_matter(data: bytes) -> tuple[dict[str, object], bytes]:
    """Return the front matter of a Markdown file, and its text; all is text without one."""
    head = FRONT_MATTER.match(data, 0, MOST_FRONT_BYTES)
    if head is None:
        return {}, data
    try:
        fields = _mapping(head[1].decode())
    except NO_MAPPING:
        return {}, data
    return fields, data[head.end() :]


def _mapping(text: str) -> dict[str, object]:
    """Return a YAML mapping as JSON has it; one of NO_MAPPING if it is none."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MOST_DEPTH:  # libyaml composes nodes by recursion, to the end of the stack
            raise ValueError("nested too deeply")
    loader = yaml.CSafeLoader(text)
    try:
        root = loader.get_single_node()
        if not isinstance(root, yaml.MappingNode):
            raise ValueError("no mapping")
        check_size(root, {})
        encoded = ENCODE(
            {_key(key): value for key, value in loader.construct_document(root).items()}
        )
    finally:
        loader.dispose()
    return DECODE_OBJECT(encoded)


def _key(key: object) -> str:
    return key.isoformat() if isinstance(key, date) else str(key)


class PageError(ValueError):
    """A page whose text cannot be extracted."""


class ChildError(RuntimeError):
    """The process that reads pages ends for a reason that is not the page's."""


class _Ended(Exception):
    """A child that has ended before it answered, by its exit code: -n for signal n."""

    def __init__(self, code: int) -> None:
        self.code = code
        super().__init__(signal.strsignal(-code) if code < 0 else f"exit code {code}")


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

    def text_of(self, body: bytes, charset: str) -> str:
        """Return the text of a page; _Ended if the child has ended before."""
        name = charset.encode("utf-8", "replace")[:255]
        self.is_fresh = False
        try:
            self.pages.send_bytes(bytes([len(name)]) + name + body)
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
            raise PageError(f"HTML page cannot be read: {found[1:].decode()}")
        return found[1:].decode()


def _end(pages: Connection, process: subprocess.Popen[bytes]) -> None:
    pages.close()
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def page_text(body: bytes, charset: str | None = None) -> str:
    """Return the main text of a page.

    Raises PageError if its extraction fails or exceeds a limit, and ChildError if that cannot be
    told, since children end for other reasons.
    """
    crashes, ends = 0, list[str]()
    for _ in range(TRIES):
        child = _child_of_thread()
        counts = child.is_fresh
        try:
            return child.text_of(body, charset or "")
        except _Ended as end:
            if end.code in OVER_LIMIT:
                raise PageError(ENDED) from None
            crashes += counts and end.code in CRASHES
            ends.append(str(end))
        if crashes >= MOST_CRASHES and _passes(GOOD_PAGE):
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


def _passes(page: bytes) -> bool:
    """Return whether a page of one paragraph is read."""
    try:
        return _child_of_thread().text_of(page, "") == GOOD_TEXT
    except (_Ended, PageError):
        return False


MARKDOWN = Format("md", (".md", ".markdown"), read_page)
HTML = Format("html", (".html", ".htm"), read_page, has_pages=True)
