"""Rows of shards that are no longer drawn: where the manifest of `sharded` lists them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from assets.sharded.shard_files import INDEX, RemovedRows
from resources.store.records import FileRecord, Manifest, numbers_of
from resources.store.store import StoreError, published_file

REMOVED_FILE = "removed"  # kind of the file, in the part `index`
ROW = np.dtype("<u4")


@dataclass(frozen=True)
class ListedRows:
    """Removed rows of one shard: `rows` entries of `file` from `first` on, and their tokens.

    The path of `file` is relative to the store.
    """

    file: FileRecord
    first: int
    rows: int
    tokens: int

    def read(self, root: Path) -> NDArray[np.uint32]:
        """Read the row numbers, ascending."""
        path = published_file(root / self.file.path, self.file).checked()
        return np.fromfile(path, ROW, self.rows, offset=self.first * ROW.itemsize)


def removed_of(manifest: Manifest[Any, Any]) -> dict[str, ListedRows]:
    """Return the removed rows of the shards of a source by the names of their parts, if any."""
    last = next((part for part in manifest.parts if part.name == INDEX), None)
    if last is None or (found := last.file(REMOVED_FILE)) is None:
        return {}
    file = structs.replace(found, path=f"{manifest.stage}/{manifest.partition}/{found.path}")
    numbers = numbers_of(last, RemovedRows)
    removed, first = {}, 0
    for part in manifest.parts:
        if rows := numbers.removed_rows.get(part.name, 0):
            tokens = numbers.removed_tokens[part.name]
            removed[part.name] = ListedRows(file, first, rows, tokens)
            first += rows
    if first * ROW.itemsize != file.bytes:
        raise StoreError(
            f"{file.path} has {file.bytes:,} bytes, but its manifest names {first:,} removed rows "
            f"of {ROW.itemsize} bytes. Materialize `sharded` for {manifest.partition!r} again."
        )
    return removed
