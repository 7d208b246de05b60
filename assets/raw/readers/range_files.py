"""A remote file as a seekable stream, read by ranges with a bounded read-ahead.

    fetch(start, stop) -> bytes        RangeFile(fetch, num_bytes) -> a raw file

Whoever reads on from where the last read ended gets windows that double up to WINDOW_BYTES, AHEAD
of which are asked for in threads while one is read: so the network works while the reader does, and
a reader that waits stops the requests. A read elsewhere begins again with one window of the size
that it needs. Memory: AHEAD + 2 windows.
"""

from __future__ import annotations

import io
from collections import deque
from concurrent.futures import Future
from functools import partial
from typing import NamedTuple

from assets.raw.readers.input_file import Fetch
from corpus_loader.places.threads import in_thread

WINDOW_BYTES = 8 << 20
FIRST_BYTES = 1 << 20  # of a window that may be all that is read, as a header or a footer
LEAST_BYTES = 1 << 16  # of a window behind the stop
AHEAD = 2  # windows: one connection to S3 gives 50 to 90 MB/s, a reader takes up to 300
LOOK_SECONDS = 0.2  # between two looks at whether a signal came


class Window(NamedTuple):
    """Bytes [start, stop) of a file, that are asked for."""

    start: int
    stop: int
    answer: Future[bytes]

    def has(self, place: int) -> bool:
        """Return whether a byte is in the window."""
        return self.start <= place < self.stop

    def data(self) -> bytes:
        """Wait for the bytes, and let Ctrl-C in."""
        while True:
            try:
                return self.answer.result(LOOK_SECONDS)
            except TimeoutError:
                if self.answer.done():
                    raise


def begin(fetch: Fetch, start: int, stop: int) -> Window:
    """Ask for a window in a thread."""
    return Window(start, stop, in_thread(partial(fetch, start, stop)))


class RangeFile(io.RawIOBase):
    """The bytes of a remote file; behind `stop` only what is asked for is fetched.

    A read elsewhere than at a window's end fetches at least `least_bytes`.
    """

    def __init__(
        self, fetch: Fetch, num_bytes: int, stop: int, least_bytes: int = FIRST_BYTES
    ) -> None:
        self._fetch = fetch
        self._num_bytes = num_bytes
        self._stop = min(stop, num_bytes)
        self._least = least_bytes
        self._size = least_bytes  # of the next window
        self._at = 0  # the next byte
        self._behind: Window | None = None  # decoders step back over what they did not use
        self._windows: deque[Window] = deque()

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the place of the next byte."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to another place; nothing is fetched for it."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._num_bytes}[whence]
        if base + offset < 0:
            raise ValueError(f"seek to byte {base + offset:,} of a file: give 0 or more")
        self._at = base + offset
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Read so many bytes, or to the end: a raw file may return fewer, which Arrow refuses."""
        most = max(self._num_bytes - self._at, 0)
        data = memoryview(bytearray(most if size < 0 else min(size, most)))
        done = 0
        while done < len(data):
            done += self.readinto(data[done:])
        return bytes(data)

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read bytes from where the file is; fewer than the buffer takes at a window's end."""
        if self._at >= self._num_bytes or not len(buffer):
            return 0
        window = self._window(len(buffer))
        start = self._at - window.start
        data = memoryview(window.data())[start : start + len(buffer)]
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def close(self) -> None:
        """Forget what was fetched; a request under way ends by itself."""
        self._leave()
        super().close()

    def _leave(self) -> None:
        self._windows.clear()
        self._behind = None

    def _window(self, num_wanted: int) -> Window:
        """Return the window of the next byte, with those ahead of it under way."""
        while self._windows and self._windows[0].stop <= self._at:
            self._behind = self._windows.popleft()
        if self._windows and self._windows[0].has(self._at):
            self._look_ahead(num_wanted, goes_on=True)
            return self._windows[0]
        before = self._behind
        if before and before.has(self._at):
            return before
        if before is None or before.stop != self._at or self._windows:
            self._leave()
            self._size = max(self._least, min(num_wanted, WINDOW_BYTES))
        self._look_ahead(num_wanted, goes_on=before is not None and before.stop == self._at)
        return self._windows[0]

    def _look_ahead(self, num_wanted: int, *, goes_on: bool) -> None:
        """Ask for up to AHEAD windows more, as far as it is known that they are read."""
        needed = self._at + num_wanted
        while len(self._windows) <= AHEAD:
            start = self._windows[-1].stop if self._windows else self._at
            known = max(needed, self._stop if goes_on else 0)
            if start >= self._num_bytes or (self._windows and start >= known):
                return
            most = self._stop if start < self._stop else max(needed, start + LEAST_BYTES)
            stop = min(start + self._size, most, self._num_bytes)
            self._windows.append(begin(self._fetch, start, stop))
            self._size = min(2 * self._size, WINDOW_BYTES)
