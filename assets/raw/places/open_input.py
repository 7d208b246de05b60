"""Open an input file, on this machine or on another one: the one way to its bytes.

A remote file is read by ranges, with no copy on disk. Each answer proves that it is of the version
that was planned with, else ChangedFileError; each request is repeated for the time of
TOKENMILL_RETRY_SECONDS. A kind of place is a function that returns the `Fetch` of a file.
"""

from __future__ import annotations

import io
from typing import BinaryIO, cast

import pyarrow as pa

from assets.raw.places.range_files import Fetch, RangeFile
from assets.raw.readers.input_file import STREAM_END, InputFile
from corpus_loader.errors import CorpusError

BUFFER_BYTES = 1 << 16


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
    if file.is_remote or file.content is not None:
        return pa.PythonFile(open_input(file, stop), "r")
    return pa.OSFile(file.place)


def fetch_of(file: InputFile) -> Fetch:
    """Return the function that fetches ranges of a remote file."""
    match file.place.partition("://")[0].lower():
        case "s3" | "gs" | "az":
            from assets.raw.places.object_copies import fetch_of_object

            return fetch_of_object(file)
        case scheme:
            raise CorpusError(f"{file.name}: {scheme}:// is not read by ranges. Copy the file.")
