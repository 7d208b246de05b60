"""Published parts of a partition at one moment, from its newest manifest and a listing.

For many parts: to read the record of one, and to look at each of its files, takes 120 us.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from resources.store.medium import medium_of
from resources.store.records import FileRecord, PartRecord
from resources.store.store import Partition, StoreError, record_name


class Listing:
    """Sizes of the files of a partition, listed folder by folder when they are asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sizes: dict[str, dict[str, int]] = {}  # by folder and name

    def has_size(self, file: FileRecord) -> bool:
        """Return whether a file is there with the size of its record."""
        folder, _, name = file.path.rpartition("/")
        if folder not in self.sizes:
            self.sizes[folder] = medium_of(self.folder).sizes(self.folder / folder)
        return self.sizes[folder].get(name) == file.bytes


class Snapshot:
    """Parts of a partition that were published when it was made."""

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.records = partition.medium.sizes(partition.records).keys()
        self.files = Listing(partition.folder)
        self.parts = {(part.name, part.fingerprint): part for part in newest_parts(partition)}

    @cached_property
    def unnamed(self) -> dict[str, PartRecord | None]:
        """Records that the newest manifest does not name, as of a run that was killed."""
        named = {record_name(*key) for key in self.parts}
        names = [name for name in self.records if name not in named]
        records = self.partition.medium.each(self.partition.read_record, names)
        return dict(zip(names, records, strict=True))

    def find_part(self, name: str, fingerprint: str) -> PartRecord | None:
        """Return the published part of that name and fingerprint, None if a file is missing.

        As `Partition.find_part` does, but the record of a part that the newest manifest names is
        not read: the manifest has it.
        """
        file_name = record_name(name, fingerprint)
        if file_name not in self.records:
            return None
        record = self.parts.get((name, fingerprint)) or self.unnamed.get(file_name)
        if record is None or (record.name, record.fingerprint) != (name, fingerprint):
            return None
        return record if all(map(self.files.has_size, record.files)) else None


def newest_parts(partition: Partition) -> tuple[PartRecord, ...]:
    """Return the parts of the newest manifest; none if there is none that can be read."""
    try:
        manifest = partition.newest_manifest()
    except StoreError:
        return ()
    return () if manifest is None else manifest.parts
