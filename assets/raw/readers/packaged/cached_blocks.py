"""A remote file that is read at any place, as HDF5 is: by blocks, of which the last are held.

A library that jumps between an index and the data would fetch windows of RangeFile again and again:
334 MB of two files of 44 MB, and with blocks 44 MB.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import lru_cache, partial
from typing import BinaryIO, cast

from assets.raw.places.open_input import fetch_of, open_input
from assets.raw.places.range_files import Fetch, PlacedFile
from assets.raw.readers.input_file import InputFile

BLOCK_BYTES = 4 << 20
MOST_BLOCKS = 16  # that are held
Block = Callable[[int], bytes]


def cached_blocks(fetch: Fetch, num_bytes: int) -> Block:
    """Return the function that fetches a block by its number, unless it is held."""

    @lru_cache(MOST_BLOCKS)
    def block(number: int) -> bytes:
        start = number * BLOCK_BYTES
        return fetch(start, min(start + BLOCK_BYTES, num_bytes))

    return block


class CachedBlocks(PlacedFile):
    """The bytes of a remote file, read by blocks."""

    def __init__(self, block: Block, num_bytes: int) -> None:
        super().__init__(num_bytes)
        self._block = block

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read bytes from where the file is, up to the end of a block."""
        if self._at >= self._num_bytes or not len(buffer):
            return 0
        number, start = divmod(self._at, BLOCK_BYTES)
        data = memoryview(self._block(number))[start : start + len(buffer)]
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def open_anywhere(file: InputFile) -> Callable[[], BinaryIO]:
    """Return the function that opens a file which is read at any place, also several times."""
    if file.content is not None or not file.is_remote:
        return partial(open_input, file)
    block = cached_blocks(fetch_of(file), file.bytes)
    return lambda: cast(BinaryIO, io.BufferedReader(CachedBlocks(block, file.bytes)))
