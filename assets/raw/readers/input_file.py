"""An input file of a source."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from resources.settings.sources import FileFormat

Compression = Literal["gz", "zst", "bz2", "xz"]


@dataclass(frozen=True)
class InputFile:
    """One input file; `name` is its identity, `digest` the xxh3_128 of its bytes (32 hex)."""

    path: Path
    name: str
    format: FileFormat
    compression: Compression | None
    bytes: int
    digest: str
