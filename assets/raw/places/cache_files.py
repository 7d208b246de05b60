"""Files under DAGSTER_HOME that spare the next planning some reading, and may be deleted."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeVar

import msgspec
import xxhash

CHECKSUM_BYTES = 16
Content = TypeVar("Content")


def write_cache(path: Path, content: object) -> None:
    """Write what is known, with a checksum."""
    path.parent.mkdir(parents=True, exist_ok=True)
    encoded = msgspec.msgpack.encode(content)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(xxhash.xxh3_128_digest(encoded) + encoded)
    temporary.replace(path)


def read_cache(path: Path, kind: type[Content]) -> Content | None:
    """Read what is known; None if it is missing, damaged or of another version."""
    try:
        content = memoryview(path.read_bytes())
        if content[:CHECKSUM_BYTES] != xxhash.xxh3_128_digest(content[CHECKSUM_BYTES:]):
            return None
        return msgspec.msgpack.decode(content[CHECKSUM_BYTES:], type=kind)
    except (OSError, msgspec.MsgspecError):
        return None
