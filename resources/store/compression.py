"""Compression of the tables in the store (`compression` of pipeline.yaml)."""

from typing import Literal

Compression = Literal["zstd", "lz4", "none"]
DEFAULT_COMPRESSION: Compression = "zstd"
LEVEL = 1  # of zstd: level 3 takes twice as long, for a tenth less
POLARS_NAMES: dict[Compression, Literal["zstd", "lz4", "uncompressed"]] = {
    "zstd": "zstd",
    "lz4": "lz4",
    "none": "uncompressed",
}


def compression_in_fingerprints(compression: Compression) -> tuple[str, ...]:
    """Return the part of a fingerprint that says how tables are written: nothing by default."""
    return () if compression == DEFAULT_COMPRESSION else (compression,)
