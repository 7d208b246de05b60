"""Folders of Iceberg tables in the store; pyiceberg is needed only to write tables."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from corpus_loader.places.stage_names import DEDUPED, FILTERED, SHARDED
from corpus_loader.seal import unsealed
from resources.store.inventory import TABLES
from resources.store.medium import medium_of
from resources.store.records import FileRecord, StoreError
from resources.store.scratch import place_of
from resources.store.store import Store

TableName = Literal["filtered", "decisions", "shards", "deduped_copy"]
STAGES: dict[TableName, str] = {
    "filtered": FILTERED,
    "decisions": FILTERED,
    "shards": SHARDED,
    "deduped_copy": DEDUPED,
}


@dataclass(frozen=True)
class IcebergFolder:
    """The folder of the table of a source."""

    store: Store
    name: TableName
    source: str

    @property
    def folder(self) -> Path:
        """Its path."""
        return self.store.root / f"{TABLES}{self.name}" / self.source

    def remove(self, kept: Collection[str] = ()) -> None:
        """Remove all files but some."""
        below = medium_of(self.folder).files_below(self.folder)
        medium_of(self.folder).remove_all([self.folder / name for name in {*below} - {*kept}])


class TableDigests(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The files that a push left in the folder of a table."""

    files: tuple[FileRecord, ...]


def read_digests(path: Path) -> tuple[FileRecord, ...]:
    """Return the files of a table with the digests of the last push; StoreError if it has none."""
    try:
        content = unsealed(medium_of(path.parent).read(path))
        return msgspec.json.decode(content, type=TableDigests).files
    except (FileNotFoundError, msgspec.MsgspecError, ValueError) as error:
        raise StoreError(
            f"{place_of(path)}: no digests of the table's files: {error}. Push the table again."
        ) from error


def iceberg_folders(store: Store) -> Iterator[IcebergFolder]:
    """Yield the tables that are there."""
    medium = medium_of(store.root)
    for name in STAGES:
        for source in medium.names(store.root / f"{TABLES}{name}"):
            if medium.files_below(store.root / f"{TABLES}{name}" / source):
                yield IcebergFolder(store, name, source)
