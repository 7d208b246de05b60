"""Open an input file, on this machine or on another one: the one way to its bytes.

A remote file is read by ranges, with no copy on disk, by the function that its `fetch_of` gives.
"""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Iterable, Iterator
from typing import BinaryIO, cast

import pyarrow as pa

from assets.raw.readers.input_file import STREAM_END, Fetch, InputFile
from assets.raw.readers.range_files import RangeFile, Window, begin

BUFFER_BYTES = 1 << 16
SMALL_BYTES = 4 << 20  # of a file that is fetched whole: by ranges it would be three requests
IN_FLIGHT = 16  # small files that are asked for while one is read
HELD_BYTES = 32 << 20  # of them


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
