"""WebDataset: a tar with one .npy per row, for readers that stream it.

A row takes 512 bytes of tar header and 128 of npy header, and is filled up to a multiple of 512:
20 % more at 2,048 tokens of 16 bits. Keys are shard and row, "00003-00000017": unique over the
shards of a source, and without a dot, which would end a key. Headers are those of Python's tarfile
(USTAR) with the mode and names of WebDataset's own writer (0444, bigdata, bigdata), and no time.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.sharded.formats.base import ShardFormat, ShardSchema, rows_of
from assets.sharded.formats.flat_rows import FlatRows, by_length, headed

BLOCK = 512
RECORD = 20 * BLOCK  # tar files end on a whole one
ROW_DIGITS = 8
CHECKSUM = slice(148, 156)


def write(paths: list[Path], shard: pl.DataFrame, schema: ShardSchema) -> None:
    """Write one tar."""
    rows = rows_of(shard, schema, "webdataset")
    arrays = headed(
        by_length(rows.lengths, lambda n: npy_header(n, schema.token_dtype)), rows.as_bytes()
    )
    number = int(re.findall(r"(\d+)\.tar$", paths[0].name)[0])
    headers = tar_headers(number, arrays.lengths)
    starts = np.arange(len(headers) + 1) * BLOCK
    members = headed(FlatRows(headers.reshape(-1), starts), arrays, unit=BLOCK)
    size = len(members.content)
    with open(paths[0], "wb") as file:
        members.content.tofile(file)
        file.write(bytes(-(-(size + 2 * BLOCK) // RECORD) * RECORD - size))


def npy_header(length: int, dtype: str) -> bytes:
    """Return the header of a .npy file of version 1.0 with one array of one dimension."""
    fields = f"{{'descr': '{np.dtype(dtype).str}', 'fortran_order': False, 'shape': ({length},), }}"
    # numpy leaves room for a first dimension of 21 digits, then fills up to 64 bytes.
    fields += " " * (21 - len(str(length)))
    size = -(-(10 + len(fields) + 1) // 64) * 64
    text = fields.ljust(size - 11).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def tar_headers(shard: int, sizes: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Make the header block of every member, uint8 [rows, 512]."""
    headers = np.zeros((len(sizes), BLOCK), np.uint8)
    name = f"{shard:05d}-{0:0{ROW_DIGITS}d}.npy".encode()
    first_digit = name.index(b"-") + 1
    for start, field in (
        (0, name),
        (100, b"0000444\x000000000\x000000000\x00"),
        (136, b"00000000000\x00" + b" " * 8 + b"0"),
        (257, b"ustar\x0000bigdata"),
        (297, b"bigdata"),
    ):
        headers[:, start : start + len(field)] = np.frombuffer(field, np.uint8)
    row_digits = digits(np.arange(len(sizes)), 10, ROW_DIGITS)
    headers[:, first_digit : first_digit + ROW_DIGITS] = row_digits
    headers[:, 124:135] = digits(sizes, 8, 11)
    sums = headers.sum(axis=1, dtype=np.int64)
    headers[:, CHECKSUM] = np.frombuffer(b"000000\x00 ", np.uint8)
    headers[:, CHECKSUM.start : CHECKSUM.start + 6] = digits(sums, 8, 6)
    return headers


def digits(numbers: NDArray[np.int64], base: int, width: int) -> NDArray[np.uint8]:
    """Write numbers as ASCII digits with leading zeros, uint8 [n, width]."""
    powers = base ** np.arange(width - 1, -1, -1, dtype=np.int64)
    return (numbers[:, None] // powers % base + ord("0")).astype(np.uint8)


WEBDATASET = ShardFormat("webdataset", ("tar",), write)
