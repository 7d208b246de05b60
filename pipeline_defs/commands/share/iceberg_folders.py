"""Folders of Iceberg tables in the store; pyiceberg is needed only to write tables."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from resources.store.medium import medium_of
from resources.store.store import Store

TableName = Literal["filtered", "decisions", "shards", "deduped_copy"]
STAGES: dict[TableName, str] = {
    "filtered": "filtered",
    "decisions": "filtered",
    "shards": "sharded",
    "deduped_copy": "deduped",
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
        return self.store.root / f"iceberg-{self.name}" / self.source

    def remove(self, kept: Collection[str] = ()) -> None:
        """Remove all files but some."""
        below = medium_of(self.folder).files_below(self.folder)
        medium_of(self.folder).remove_all([self.folder / name for name in {*below} - {*kept}])


def iceberg_folders(store: Store) -> Iterator[IcebergFolder]:
    """Yield the tables that are there."""
    medium = medium_of(store.root)
    for name in STAGES:
        for source in medium.names(store.root / f"iceberg-{name}"):
            if medium.files_below(store.root / f"iceberg-{name}" / source):
                yield IcebergFolder(store, name, source)
