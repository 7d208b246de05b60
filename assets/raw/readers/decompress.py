"""Decompression of a file to a bounded stream of blocks.

Every decoder yields all bytes that can be decoded and then raises `BrokenStream` with the reason,
so that a reader keeps the records before a break. A block of output has at most 1 MiB, whatever the
input claims, and a stream that is both large and far too compressible is refused as a
decompression bomb.
"""

from __future__ import annotations

import bz2
import errno
import lzma
import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, BinaryIO, NamedTuple

from backports import zstd
from isal import igzip_lib

from assets.raw.readers.file_content import foreign_content, plain_content, zstd_window
from assets.raw.readers.input_file import (
    BEGIN,
    STREAM_END,
    Border,
    ChangedFileError,
    Compression,
    InputFile,
)
from assets.raw.readers.open_input import open_input
from corpus_loader.places.errors import CorpusError
from resources.errors import InputError

STEP_BYTES = 1 << 20
BLOCK_BYTES = 1 << 20
READ_BYTES = 1 << 16
BOMB_BYTES = 256 << 20  # natural text compresses 3 to 20 times, logs and zeros up to 1,000 (gz)
BOMB_RATIO = 200
XZ_MEMORY_BYTES = 256 << 20  # `xz -9` needs 65 MiB to decode
WRONG_CHECKSUM = "Error -6 Incorrect checksum found"  # igzip: of checksum and length
OF_PLACE = (CorpusError, ChangedFileError, InputError, ConnectionError, TimeoutError)
NO_THREAD = "can't start new thread"  # a RuntimeError
NO_MEMORY = "not enough memory"  # zstd's
LEAST_APART = 1 << 16  # bytes between places in a zst file, whose frames may be small
DAMAGE: Any = (OSError, EOFError, lzma.LZMAError, igzip_lib.error, zstd.ZstdError)
ALLOCATION = re.compile(r"alloc of size (\d+) failed")  # Arrow's


class Block(NamedTuple):
    """Content of a file, and how much of the file was read for it.

    `place` is the byte of the file at which decompression can begin, of the member or frame.
    """

    data: bytes
    num_read: int
    place: int


Blocks = Iterator[Block]


class FileFault(str):
    """Error that ends the reading of a file."""

    __slots__ = ()


class Damage(FileFault):
    """Error of a file whose bytes have changed: any of its rows may be wrong."""

    __slots__ = ()


class BrokenStream(ValueError):
    """A stream that ends early, is damaged, has another format than its name says, or is a bomb.

    `head` holds the first bytes of the file (64 KiB) if nothing could be decoded. With
    `is_complete` only a checksum is wrong: the last line is whole.
    """

    def __init__(self, reason: str, *, head: bytes = b"", is_complete: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason if isinstance(reason, FileFault) else FileFault(reason)
        self.head = head
        self.is_complete = is_complete


def raise_unless_of_content(error: Exception, num_bytes: int = STREAM_END) -> None:
    """Raise an error of the machine or of a server again: it says nothing about a file's content.

    Decoders set no errno. EINVAL may be due to an offset that a hostile file holds, and a lack of
    memory to a size, if that is out of proportion to the file's `num_bytes`.
    """
    if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
        raise error
    if isinstance(error, OF_PLACE) or (isinstance(error, RuntimeError) and NO_THREAD in str(error)):
        raise error
    if isinstance(error, MemoryError) or NO_MEMORY in str(error):
        claimed = ALLOCATION.search(str(error))
        if claimed is None or int(claimed[1]) <= max(BOMB_BYTES, BOMB_RATIO * num_bytes):
            raise error


def read_blocks(file: InputFile, first: Border = BEGIN, stop: int = STREAM_END) -> Iterator[bytes]:
    """Yield a file's uncompressed bytes from a border on, in blocks of at most 1 MiB.

    The caller needs few bytes of the file from `stop` on: none of them is fetched ahead. Raises
    BrokenStream after the last good bytes, and at once where the bytes are of another format than
    text; a later slice of a plain file of such a format is empty. An empty file yields nothing,
    whatever its name.
    """
    if first.place and file.compression is None and _foreign(file, file_head(file)):
        return
    blocks = _read_packed(file, first, stop)
    head = next(blocks, b"")
    if not first.place and (foreign := _foreign(file, head)):
        raise BrokenStream(foreign, head=head[:READ_BYTES])
    skipped = first.skip
    while head:
        if skipped < len(head):
            yield head[skipped:]
        skipped = max(skipped - len(head), 0)
        head = next(blocks, b"")


def _foreign(file: InputFile, head: bytes, own: Compression | None = None) -> str:
    return foreign_content(head, own, file.format)


def _read_packed(file: InputFile, first: Border, stop: int) -> Iterator[bytes]:
    compression, num_written = file.compression, first.offset - first.skip
    if compression is None:
        yield from (block.data for block in _read_plain(file, first.place, stop))
        return
    try:
        for data, *_ in _bounded(_read_members(file, first.place, stop), compression, num_written):
            num_written += len(data)
            yield data
    except BrokenStream as error:
        if num_written:
            raise
        head = file_head(file)
        if hint := _foreign(file, head, compression) or plain_content(head, compression):
            reason = f"{compression} stream is broken near byte 0 of the file: {hint}"
            raise BrokenStream(reason, head=head) from error
        if compression == "zst" and zstd_window(head) > 1 << file.zstd_window_log:
            raise BrokenStream(_window_error(file, zstd_window(head))) from error
        error.head = head
        raise


def placed_blocks(file: InputFile) -> Blocks:
    """Yield all of a file; places in it are LEAST_APART at least.

    Raises BrokenStream as `read_blocks` does.
    """
    if file.compression is None:
        yield from _read_plain(file, 0)
        return
    place = 0
    for block in _bounded(_read_members(file), file.compression):
        if block.place - place >= LEAST_APART or file.compression != "zst":
            place = block.place
        yield block._replace(place=place)


def file_head(file: InputFile) -> bytes:
    """Return the first bytes of a file as it is stored, 64 KiB at most."""
    with open_input(file, READ_BYTES) as stream:
        return stream.read(READ_BYTES)


def _bounded(blocks: Blocks, compression: Compression, num_written: int = 0) -> Blocks:
    for block in blocks:
        num_written += len(block.data)
        if num_written > BOMB_BYTES and num_written > BOMB_RATIO * block.num_read:
            raise BrokenStream(
                f"decompression bomb: {block.num_read:,} bytes of {compression} became "
                f"{num_written:,}, over {BOMB_BYTES:,} bytes and {BOMB_RATIO}:1; unpack the file "
                "to read it anyway"
            )
        yield block


def _read_plain(file: InputFile, start: int, stop: int = STREAM_END) -> Blocks:
    with open_input(file, stop) as stream:
        stream.seek(start)
        most = BLOCK_BYTES
        while data := stream.read(most):
            yield Block(data, start + len(data), start)
            start += len(data)
            most = min(BLOCK_BYTES, stop - start) if start < stop else READ_BYTES


def _decoders(file: InputFile) -> Callable[[], Any]:
    """Return the function that makes a decoder of a member of a file."""
    window: dict[int, int] = {zstd.DecompressionParameter.window_log_max: file.zstd_window_log}
    decoders: dict[str | None, Callable[[], Any]] = {
        "gz": partial(igzip_lib.IgzipDecompressor, flag=igzip_lib.DECOMP_GZIP),
        "bz2": bz2.BZ2Decompressor,
        "xz": partial(lzma.LZMADecompressor, memlimit=XZ_MEMORY_BYTES),
        "zst": partial(zstd.ZstdDecompressor, options=window),
    }
    return decoders[file.compression]


def _read_members(packed: InputFile, start: int = 0, stop: int = STREAM_END) -> Blocks:
    """Yield blocks of the members of a gz, bz2 or xz file from one on (RFC 1952 2.2), or frames.

    A gz member whose checksum or length alone is wrong is read whole, and so are those behind it,
    and those behind zeros that no padding is: of a download into a file of full size.
    """
    wrong: BrokenStream | None = None
    with open_input(packed, stop) as file:
        file.seek(start)
        is_next = True
        while is_next:
            try:
                if is_next := _is_at_member(file, packed):
                    yield from _read_member(file, packed)
            except BrokenStream as error:
                if not error.is_complete:
                    raise
                wrong = wrong or error
    if wrong:
        raise wrong


def _is_at_member(file: BinaryIO, packed: InputFile) -> bool:
    """Skip zeros between members, and return whether bytes follow.

    Raises a complete BrokenStream for zeros that are no padding. Of gz, gzip(1) pads the end; of
    xz, four zeros at a time stand anywhere (its format, 2.2).
    """
    start, rest = file.tell(), b""
    while not rest and (data := file.read(READ_BYTES)):
        rest = data.lstrip(b"\0") if start else data
    file.seek(-len(rest), os.SEEK_CUR)
    num_zeros = file.tell() - start
    is_padding = {"gz": not rest, "xz": num_zeros % 4 == 0}.get(str(packed.compression), False)
    if num_zeros and not is_padding:
        reason = f"{num_zeros:,} zeros stand where a member or the end should"
        raise _damaged(packed, start, reason, is_complete=True)
    return bool(rest)


def _read_member(file: BinaryIO, packed: InputFile) -> Blocks:
    """Yield the blocks of one member, and leave the file at its end."""
    start, num_written, decoder = file.tell(), 0, _decoders(packed)()
    fed = start  # offset of the last input, from which a failed member is read byte by byte
    while not decoder.eof:
        data = b""
        if decoder.needs_input:
            fed = file.tell()
            data = file.read(READ_BYTES)
        if not data and decoder.needs_input:
            raise _damaged(packed, file.tell(), "the stream ends early (truncated)")
        try:
            block = decoder.decompress(data, BLOCK_BYTES)
        except DAMAGE:
            yield from _last_good_blocks(file, packed, (start, fed), num_written)
            return
        num_written += len(block)
        if block:
            yield Block(block, file.tell(), start)
    file.seek(-len(decoder.unused_data), os.SEEK_CUR)


def _last_good_blocks(
    file: BinaryIO, packed: InputFile, member: tuple[int, int], num_written: int
) -> Blocks:
    """Yield the bytes after `num_written` that decode, and raise BrokenStream.

    A failing call of a decoder loses the output of its input, so the member's last input is read
    byte by byte. `member` is its start and the offset of that input.
    """
    start, slow = member
    file.seek(start)
    decoder, num_skipped = _decoders(packed)(), 0
    try:
        while True:
            data = b""
            if decoder.needs_input:
                data = file.read(min(READ_BYTES, slow - file.tell()) if file.tell() < slow else 1)
            block = decoder.decompress(data, BLOCK_BYTES)
            num_skipped += (num_again := min(len(block), num_written - num_skipped))
            if len(block) > num_again:
                yield Block(block[num_again:], file.tell(), start)
    except DAMAGE as error:
        raise_unless_of_content(error)
        is_complete = str(error) == WRONG_CHECKSUM
        raise _damaged(packed, file.tell(), str(error), is_complete=is_complete) from error


def _window_error(file: InputFile, window: int) -> str:
    long = (window - 1).bit_length()
    name = file.place.rpartition("/")[2]
    allow = f"set `zstd_window_log: {long}` of the source if you trust the file, or " * (long < 32)
    return (
        f"zst stream is broken near byte 0 of the file: this window is {window:,} bytes, above "
        f"{1 << file.zstd_window_log:,}: {allow}compress it again with a smaller one, "
        f"zstd -dc --long={long} {name} | zstd -o new-{name}"
    )


def _damaged(
    file: InputFile, num_read: int, reason: str, *, is_complete: bool = False
) -> BrokenStream:
    text = f"{file.compression} stream is broken near byte {num_read:,} of the file: {reason}"
    return BrokenStream(Damage(text), is_complete=is_complete)


class BlockStream:
    """Stream of bytes over blocks, of which as many are held as were asked for.

    `offset` is the place in the content; `broken` is the reason if the blocks ended early, and
    `head` what is shown for it.
    """

    def __init__(self, blocks: Iterator[bytes], offset: int = 0) -> None:
        self._blocks = blocks
        self._ready = b""
        self._at = 0
        self.offset = offset
        self.broken = FileFault()
        self.head = b""

    def peek(self, num_bytes: int) -> bytes:
        """Return the bytes ahead, `num_bytes` unless the stream ends; take none."""
        if self._at + num_bytes > len(self._ready):
            self._fill(num_bytes)
        return self._ready[self._at : self._at + num_bytes]

    def _fill(self, num_bytes: int) -> None:
        parts = [self._ready[self._at :]]
        size = len(parts[0])
        try:
            while size < num_bytes and (block := next(self._blocks, b"")):
                parts.append(block)
                size += len(block)
        except BrokenStream as error:
            self.broken, self.head = error.reason, error.head
        self._ready, self._at = b"".join(parts), 0

    def take(self, num_bytes: int) -> bytes:
        """Take up to `num_bytes`."""
        taken = self.peek(num_bytes)
        self._at += len(taken)
        self.offset += len(taken)
        return taken

    def skip(self, num_bytes: int) -> int:
        """Drop up to `num_bytes` without holding them; return the number of dropped bytes."""
        skipped = 0
        while skipped < num_bytes and (data := self.take(min(num_bytes - skipped, STEP_BYTES))):
            skipped += len(data)
        return skipped
