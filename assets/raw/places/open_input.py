"""Open an input file, on this machine or on another one: the one way to its bytes.

A remote file is read by ranges, with no copy on disk. Each answer proves that it is of the version
that was planned with, else ChangedFileError; each request is repeated for the time of
TOKENMILL_RETRY_SECONDS. The pace of a source is kept by all processes of this machine: a file per
host, under DAGSTER_HOME, has the time of the next request. A kind of place is a function that
returns the `Fetch` of a file.
"""

from __future__ import annotations

import fcntl
import io
import os
import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import BinaryIO, cast

import pyarrow as pa

from assets.raw.places.hub_files import endpoint
from assets.raw.places.range_files import Fetch, RangeFile, Window, begin
from assets.raw.readers.input_file import STREAM_END, InputFile
from corpus_loader.places.errors import CorpusError
from corpus_loader.places.url_secrets import split_url
from resources.dagster_home import dagster_home
from resources.settings.sources import is_hub_url
from resources.store.disk import make_folder
from resources.store.records import fingerprint_of

FOLDER = "tokenmill_hosts"
MOST_WAIT_SECONDS = 3600.0  # a time further off is of before a restart, when the clock began
BUFFER_BYTES = 1 << 16
SMALL_BYTES = 4 << 20  # of a file that is fetched whole: by ranges it would be three requests
IN_FLIGHT = 16  # small files that are asked for while one is read
HELD_BYTES = 32 << 20  # of them


def open_input(file: InputFile, stop: int = STREAM_END) -> BinaryIO:
    """Open a file as a seekable, buffered stream; no byte from `stop` on is fetched ahead."""
    if file.content is not None:
        return io.BytesIO(file.content)
    if file.is_remote:
        ranges = RangeFile(fetch_of(file), file.bytes, stop)
        return cast(BinaryIO, io.BufferedReader(ranges, BUFFER_BYTES))
    return open(file.place, "rb")


def open_arrow(file: InputFile, stop: int = STREAM_END) -> pa.NativeFile:
    """Open a file for Arrow: a local one by Arrow itself, which is faster."""
    if file.content is not None:
        return pa.BufferReader(file.content)
    if file.is_remote:
        return pa.PythonFile(RangeFile(fetch_of(file), file.bytes, stop), "r")
    return pa.OSFile(file.place)


def open_columns(file: InputFile) -> pa.NativeFile:
    """Open a file for Arrow to read its end, or some of its columns: nothing else is fetched."""
    if file.content is not None or not file.is_remote:
        return open_arrow(file)
    ranges = RangeFile(fetch_of(file), file.bytes, stop=0, least_bytes=0)
    return pa.PythonFile(ranges, "r")


def with_content(files: Iterable[InputFile]) -> Iterator[InputFile]:
    """Yield the files in order, small remote ones with their content, which is fetched ahead."""
    ahead: deque[tuple[InputFile, Window | None]] = deque()
    num_bytes = 0
    for file in files:
        is_small = file.is_remote and file.content is None and 0 < file.bytes <= SMALL_BYTES
        ahead.append((file, begin(fetch_of(file), 0, file.bytes) if is_small else None))
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


def fetch_of(file: InputFile) -> Fetch:
    """Return the function that fetches ranges of a remote file, at the pace of its source."""
    fetch = fetch_at_once(file)
    if not file.requests_per_second:
        return fetch
    host = endpoint() if is_hub_url(file.place) else file.place

    def fetch_in_turn(start: int, stop: int) -> bytes:
        time.sleep(seconds_to_turn(host, file.requests_per_second))
        return fetch(start, stop)

    return fetch_in_turn


def fetch_at_once(file: InputFile) -> Fetch:
    """Return the function that fetches ranges of a remote file."""
    match file.place.partition("://")[0].lower():
        case "s3" | "gs" | "az":
            from assets.raw.places.object_files import fetch_of_object

            return fetch_of_object(file)
        case "hf":
            from assets.raw.places.hub_files import fetch_from_hub

            return fetch_from_hub(file)
        case "http" | "https":
            from assets.raw.places.web_ranges import fetch_of_url

            return fetch_of_url(file)
        case "hdfs":
            from assets.raw.places.hadoop_files import fetch_of_hadoop_file

            return fetch_of_hadoop_file(file)
        case scheme:
            raise CorpusError(f"{file.name}: {scheme}:// is not read by ranges. Copy the file.")


def seconds_to_turn(url: str, per_second: float) -> float:
    """Take the next turn of the host of a URL, and return the seconds until it."""
    parts = split_url(url)
    path = dagster_home() / FOLDER / fingerprint_of(parts.scheme, parts.host)
    make_folder(path.parent)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        now, told = time.monotonic(), os.pread(descriptor, 32, 0)
        turn = float(told) if told else now
        turn = now if turn - now > MOST_WAIT_SECONDS else max(turn, now)
        os.pwrite(descriptor, f"{turn + 1 / per_second:032.6f}".encode(), 0)
    finally:
        os.close(descriptor)
    return turn - now
