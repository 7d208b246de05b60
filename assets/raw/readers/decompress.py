"""Decompression of a file to a bounded stream of blocks.

Every decoder yields the good bytes before a break and then raises `BrokenStream` with the reason,
so that a reader keeps the records before it. A block of output has at most 1 MiB, whatever the
input claims, and a stream that is both large and far too compressible is refused as a
decompression bomb.
"""

import bz2
import lzma
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from isal import igzip_lib

from assets.raw.readers.input_file import Compression

Blocks = Iterator[tuple[bytes, int]]

BLOCK_BYTES = 1 << 20
READ_BYTES = 1 << 16
BOMB_BYTES = 256 << 20  # natural text compresses 3 to 20 times, logs and zeros up to 1,000 (gz)
BOMB_RATIO = 200
XZ_MEMORY_BYTES = 256 << 20  # `xz -9` needs 65 MiB to decode


class BrokenStream(ValueError):
    """A stream that ends early, is damaged, has another format than its name says, or is a bomb.

    `head` holds the first bytes of the file (64 KiB) if nothing could be decoded.
    """

    head = b""


def read_blocks(path: Path, compression: Compression | None, start: int = 0) -> Iterator[bytes]:
    """Yield a file's uncompressed bytes in blocks of at most 1 MiB.

    `start` is a byte offset, for files without compression. Raises BrokenStream after the last good
    bytes. An empty file yields nothing, whatever its name.
    """
    if compression is None:
        yield from _read_plain(path, start)
        return
    num_written = 0
    try:
        for block in _bounded_blocks(path, compression):
            num_written += len(block)
            yield block
    except BrokenStream as error:
        error.head = b"" if num_written else file_head(path)
        raise


def file_head(path: Path) -> bytes:
    """Return the first bytes of a file as it is stored, 64 KiB at most."""
    with path.open("rb") as file:
        return file.read(READ_BYTES)


def _bounded_blocks(path: Path, compression: Compression) -> Iterator[bytes]:
    blocks = _read_zstd(path) if compression == "zst" else _read_members(path, compression)
    num_written = 0
    for block, num_read in blocks:
        num_written += len(block)
        if num_written > BOMB_BYTES and num_written > BOMB_RATIO * num_read:
            raise BrokenStream(
                f"decompression bomb: {num_read:,} bytes of {compression} became {num_written:,}, "
                f"over {BOMB_BYTES:,} bytes and {BOMB_RATIO}:1; unpack the file to read it anyway"
            )
        yield block


def _read_plain(path: Path, start: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        file.seek(start)
        while block := file.read(BLOCK_BYTES):
            yield block


def _new_gzip() -> Any:
    return igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)


def _new_xz() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(memlimit=XZ_MEMORY_BYTES)


DECODERS: dict[str, Callable[[], Any]] = {
    "gz": _new_gzip,
    "bz2": bz2.BZ2Decompressor,
    "xz": _new_xz,
}
DAMAGE: Any = (OSError, EOFError, lzma.LZMAError, igzip_lib.error)


def _read_members(path: Path, compression: Compression) -> Blocks:
    """Yield blocks of all members of a gz, bz2 or xz file (RFC 1952 2.2), each with bytes read."""
    with path.open("rb") as file:
        data = file.read(READ_BYTES)
        while data:
            decoder = DECODERS[compression]()
            while not decoder.eof:
                try:
                    block = decoder.decompress(data, BLOCK_BYTES)
                except DAMAGE as error:
                    raise _damaged(compression, file.tell(), str(error)) from error
                if block:
                    yield block, file.tell()
                data = file.read(READ_BYTES) if decoder.needs_input and not decoder.eof else b""
                if not data and decoder.needs_input and not decoder.eof:
                    raise _damaged(compression, file.tell(), "the stream ends early (truncated)")
            data = decoder.unused_data.lstrip(b"\0") or file.read(READ_BYTES).lstrip(b"\0")


def _read_zstd(path: Path) -> Blocks:
    """Yield blocks of all frames of a zst file, each with the number of bytes read.

    Windows over 2^27 bytes are refused, as `zstd -d` does by default.
    """
    num_written = 0
    with pa.OSFile(str(path)) as file:
        if file.size() == 0:
            return
        stream = pa.CompressedInputStream(file, "zstd")
        try:
            while block := stream.read(READ_BYTES):
                num_written += len(block)
                yield block, file.tell()
        except OSError as error:
            if rest := _last_good_bytes(path, num_written):
                yield rest, file.size()
            raise _damaged("zst", file.tell(), str(error)) from error


def _last_good_bytes(path: Path, start: int) -> bytes:
    # A failing read loses what it had decoded (at most 64 KiB): only then read again, byte by byte.
    good = bytearray()
    with pa.OSFile(str(path)) as file:
        stream = pa.CompressedInputStream(file, "zstd")
        try:
            while start > 0:
                start -= len(stream.read(min(start, READ_BYTES)))
            while byte := stream.read(1):
                good += byte
        except OSError:
            return bytes(good)
    return bytes(good)


def _damaged(compression: Compression, num_read: int, reason: str) -> BrokenStream:
    return BrokenStream(
        f"{compression} stream is broken near byte {num_read:,} of the file: {reason}"
    )
