"""File layout that MDS and litdata share: a table of 32-bit offsets, then the records."""

from __future__ import annotations

import struct
from pathlib import Path

from assets.sharded.formats.base import too_large
from assets.sharded.formats.flat_rows import FlatRows

MAX_BYTES = (1 << 32) - 1


def write_records(path: Path, name: str, records: FlatRows, config: bytes = b"") -> None:
    """Write u32 records, u32 offset[records + 1] from the file's start, the config, the records.

    Raises FormatError if the offsets do not reach the end of the file.
    """
    first = 4 * (len(records.starts) + 1) + len(config)
    size = first + int(records.starts[-1])
    if size > MAX_BYTES:
        raise too_large(name, f"{size:,} bytes", "its offsets end at 4 GiB")
    with open(path, "wb") as file:
        file.write(struct.pack("<I", len(records.starts) - 1))
        (records.starts + first).astype("<u4").tofile(file)
        file.write(config)
        records.content.tofile(file)
