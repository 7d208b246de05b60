"""Open an input file, on this machine or on another one: the one way to its bytes.

    fetch(start, stop) -> bytes        RangeFile(fetch, num_bytes) -> a raw file

A remote file is read by ranges, with no copy on disk, by the function that its `fetch_of` gives.
Whoever reads on from where the last read ended gets windows that double up to WINDOW_BYTES, AHEAD
of which are asked for in threads while one is read: so the network works while the reader does, and
a reader that waits stops the requests. A read elsewhere begins again with one window of the size
that it needs. Memory: AHEAD + 2 windows.
"""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from functools import partial
from typing import BinaryIO, NamedTuple, cast

import pyarrow as pa

from assets.raw.readers.input_file import STREAM_END, Fetch, InputFile
from corpus_loader.places.threads import in_thread

BUFFER_BYTES = 1 << 16
SMALL_BYTES = 4 << 20  # of a file that is fetched whole: by ranges it would be three requests
IN_FLIGHT = 16  # small files that are asked for while one is read
HELD_BYTES = 32 << 20  # of them
WINDOW_BYTES = 8 << 20
FIRST_BYTES = 1 << 20  # of a window that may be all that is read, as a header or a footer
LEAST_BYTES = 1 << 16  # of a window behind the stop
AHEAD = 2  # windows: one connection to S3 gives 50 to 90 MB/s, a reader takes up to 300
LOOK_SECONDS = 0.2  # between two looks at whether a signal came


def open_input(file: InputFile, stop: int = STREAM_END) -> BinaryIO:
    """Open a file as a seekable, buffered stream; no byte from `stop` on is fetched ahead."""
    if file.content is not None:
        return io.BytesIO(file.content)
    if file.is_remote:
        ranges = RangeFile(_fetch(file), file.bytes, stop)
        return cast(BinaryIO, io.BufferedReader(ranges, BUFFER_BYTES))
    return open(file.place, "rb")


def open_arrow(file: InputFile, stop: int = STREAM_END) -> pa.NativeFile:
    """Open a file for Arrow: a local one by Arrow itself, which is faster."""
    if file.content is not None:
        return pa.BufferReader(file.content)
    if file.is_remote:
        return pa.PythonFile(RangeFile(_fetch(file), file.bytes, stop), "r")
    return pa.OSFile(file.place)


def open_columns(file: InputFile) -> pa.NativeFile:
    """Open a file for Arrow to read its end, or some of its columns: nothing else is fetched."""
    if file.content is not None or not file.is_remote:
        return open_arrow(file)
    ranges = RangeFile(_fetch(file), file.bytes, stop=0, least_bytes=0)
    return pa.PythonFile(ranges, "r")


def with_content(files: Iterable[InputFile]) -> Iterator[InputFile]:
    """Yield the files in order, small remote ones with their content, which is fetched ahead."""
    ahead: deque[tuple[InputFile, Window | None]] = deque()
    num_bytes = 0
    for file in files:
        is_small = file.is_remote and file.content is None and 0 < file.bytes <= SMALL_BYTES
        ahead.append((file, begin(_fetch(file), 0, file.bytes) if is_small else None))
        num_bytes += file.bytes if is_small else 0
        while len(ahead) > IN_FLIGHT or num_bytes > HELD_BYTES:
            first = fetched(*ahead.popleft())
            num_bytes -= len(first.content or b"")
            yield first
    while ahead:
        yield fetched(*ahead.popleft())


def fetched(file: InputFile, content: Window | None) -> InputFile:
    """Return a file with its content, if that was asked for."""
    return file if content is None else file._replace(content=content.data())


def _fetch(file: InputFile) -> Fetch:
    assert file.fetch_of is not None, f"{file.name} is remote, and nothing fetches it"
    return file.fetch_of(file)


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
