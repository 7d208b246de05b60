"""A web server on the loopback address that sends ranges of files, and can be disturbed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import md5

from served import Answering, served


@dataclass
class RangeSite:
    """Files by path, the ranges that were asked for, and what is wrong.

    refusals   statuses and headers of the next requests for a range of more than one byte
    cuts       bytes after which the next answers end
    seconds    wait before each answer
    ready      called before each answer
    headers    headers of answers by path
    """

    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, int, int]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    refusals: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    cuts: list[int] = field(default_factory=list)
    seconds: float = 0.0
    ready: Callable[[], object] = bool
    headers: dict[str, dict[str, str]] = field(default_factory=dict)
    place: str = ""

    def url(self, name: str) -> str:
        """Return the URL of a file."""
        return f"http://{self.place}/{name}"

    @property
    def num_bytes(self) -> int:
        """Count the bytes that were asked for."""
        return sum(stop - start for _, start, stop in self.asked)


@contextmanager
def range_site() -> Iterator[RangeSite]:
    """Serve files."""
    site, lock = RangeSite(), threading.Lock()

    class Handler(Answering):
        def do_GET(self) -> None:
            path, _, wanted = self.path.partition("?")[0], "", self.headers.get("Range", "")
            body = site.files.get(path.strip("/"))
            if body is None:
                self.send_error(404)
                return
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            start, stop = (int(first), int(last) + 1) if wanted else (0, len(body))
            etag = f'"{md5(body).hexdigest()}"'
            if start and start >= len(body):
                self.send_error(416)
                return
            with lock:
                site.asked.append((path.strip("/"), start, stop))
                site.times.append(time.monotonic())
                is_data = stop - start > 1
                refusal = site.refusals.pop(0) if site.refusals and is_data else None
                cut = site.cuts.pop(0) if site.cuts and is_data else None
            time.sleep(site.seconds)
            site.ready()
            if refusal:
                self.answer(refusal[0], {"Content-Length": "0", **refusal[1]}, b"")
                return
            data = body[start:stop]
            headers = {"Content-Length": str(len(data)), "ETag": etag}
            headers |= site.headers.get(path.strip("/"), {})
            if self.headers.get("If-None-Match") == etag:
                self.answer(304, {"ETag": etag}, b"")
            elif wanted:
                headers["Content-Range"] = f"bytes {start}-{start + len(data) - 1}/{len(body)}"
                self.answer(206, headers, data[:cut])
            else:
                self.answer(200, headers, data[:cut])

    with served(Handler) as url:
        site.place = url.removeprefix("http://")
        yield site
