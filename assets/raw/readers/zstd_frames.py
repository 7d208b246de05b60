"""Frames of a zst file, found without decompression (RFC 8878 3.1)."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO

FRAME = 0xFD2FB528
SKIPPABLE = 0x184D2A50  # and the 15 numbers after it
HEADER_BYTES = 14  # of the largest header of a frame without its magic number: 1 + 1 + 4 + 8
LEAST_APART = 1 << 16  # bytes between the frames that are told: a decoder costs as much as 10 kB


def frame_spans(file: BinaryIO, size: int) -> Iterator[tuple[int, int]]:
    """Yield [start, stop) of the frames of a file, of several where they are small.

    Of a file that is not whole, the last one ends before the file or behind it.
    """
    start = at = 0
    for at in _frame_ends(file):
        if at - start >= LEAST_APART and at < size:
            yield start, at
            start = at
    yield start, at


def _frame_ends(file: BinaryIO) -> Iterator[int]:
    """Yield the end of each frame up to the end of the file, or to what is no frame."""
    at = 0
    while len(head := _bytes_at(file, at, 4 + HEADER_BYTES)) >= 5:
        magic = int.from_bytes(head[:4], "little")
        if magic & ~15 == SKIPPABLE:
            at += 8 + int.from_bytes(head[4:8], "little")
        elif magic == FRAME:
            at = _blocks_end(file, at + 4 + _header_size(head[4])) + 4 * (head[4] >> 2 & 1)
        else:
            return
        yield at


def _header_size(descriptor: int) -> int:
    """Return the size of a frame's header, by its first byte (RFC 8878 3.1.1.1)."""
    is_single = descriptor >> 5 & 1
    content = (is_single, 2, 4, 8)[descriptor >> 6]
    dictionary = (0, 1, 2, 4)[descriptor & 3]
    return 1 + (1 - is_single) + dictionary + content


def _blocks_end(file: BinaryIO, at: int) -> int:
    is_last = 0
    while not is_last and len(data := _bytes_at(file, at, 3)) == 3:
        header = int.from_bytes(data, "little")
        is_last, kind = header & 1, header >> 1 & 3
        at += 3 + (1 if kind == 1 else header >> 3)  # 1: a byte that is repeated
    return at


def _bytes_at(file: BinaryIO, at: int, size: int) -> bytes:
    file.seek(at)
    return file.read(size)


class FrameFile(io.RawIOBase):
    """The bytes of a file up to `stop`, as a file."""

    def __init__(self, file: BinaryIO, stop: int) -> None:
        self._file = file
        self._stop = stop

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read bytes from where the file is."""
        data = self._file.read(min(len(buffer), self._stop - self._file.tell()))
        buffer[: len(data)] = data
        return len(data)


def end_of_blocks(head: bytes) -> int:
    """Return the end of the last whole block in the first bytes of a zst file, 0 without one."""
    file, at, end = io.BytesIO(head), 0, 0
    while len(data := _bytes_at(file, at, 4 + HEADER_BYTES)) >= 5:
        magic = int.from_bytes(data[:4], "little")
        if magic & ~15 == SKIPPABLE:
            at += 8 + int.from_bytes(data[4:8], "little")
            continue
        if magic != FRAME:
            break
        has_checksum, at, is_last = data[4] >> 2 & 1, at + 4 + _header_size(data[4]), 0
        while not is_last and len(block := _bytes_at(file, at, 3)) == 3:
            header = int.from_bytes(block, "little")
            is_last = header & 1
            at += 3 + (1 if header >> 1 & 3 == 1 else header >> 3)
            if at > len(head):
                return end
            end = at
        at += 4 * has_checksum
    return end


def content_of_frame(head: bytes) -> int:
    """Return the size of the content that the first frame's header tells, 0 if it does not."""
    if len(head) < 5 or int.from_bytes(head[:4], "little") != FRAME:
        return 0
    descriptor = head[4]
    size = (descriptor >> 5 & 1, 2, 4, 8)[descriptor >> 6]
    start = 4 + _header_size(descriptor) - size
    told = int.from_bytes(head[start : start + size], "little")
    return told + 256 if size == 2 else told
