"""A patch of a record in quarantine, as readers take it (places/patch_files.py)."""

from __future__ import annotations

import msgspec
import xxhash

RAW_LIMIT_BYTES = 65536  # that quarantine shows of a record
PatchKey = tuple[str, int, str]


class Patch(msgspec.Struct, frozen=True, array_like=True):
    """The JSON text of a record, by the file and row of the one that it replaces.

    `replaced` is the xxh3_128 of the bytes that quarantine shows of that one.
    """

    file: str
    row: int
    replaced: str
    record: str

    @property
    def key(self) -> PatchKey:
        """The record that it replaces."""
        return self.file, self.row, self.replaced

    @property
    def name(self) -> str:
        """Name of the patch in the counts of those that were used."""
        return f"{self.file} {self.row} {self.replaced}"


def shown_digest(raw: bytes) -> str:
    """Return the digest of a record, of the bytes that quarantine shows."""
    return xxhash.xxh3_128_hexdigest(raw[:RAW_LIMIT_BYTES])
