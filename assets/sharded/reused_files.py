"""Keep the files of shards that are still good when formats are added or a file is lost.

Names and bytes of a format's files depend on the rows and their order alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from assets.sharded.shard_files import ShardSet, files_of, part_fingerprint
from resources.settings.shards import FormatName
from resources.store.published import PublishedFile
from resources.store.records import FileRecord, PartRecord
from resources.store.store import Partition, published_file
from resources.store.store_errors import DamagedFileError


def earlier_files(folder: Partition, shards: ShardSet) -> dict[str, PartRecord]:
    """Return the newest manifest's shards of the same rows, by name, with the files to keep."""
    manifest = folder.newest_manifest()
    if manifest is None:
        return {}
    formats = manifest.config.get("formats", ())
    return {
        part.name: msgspec.structs.replace(part, files=whole_files(folder, part, shards.formats))
        for part in manifest.parts
        if part.fingerprint == part_fingerprint(shards.data, formats, part.name)
    }


def whole_files(
    folder: Partition, part: PartRecord, formats: Sequence[FormatName]
) -> tuple[FileRecord, ...]:
    """Return a part's files of these formats, except formats of which a file is damaged."""
    files_by_format = [files_of(part, name) for name in formats]
    return tuple(
        file
        for files in files_by_format
        if all(is_whole(published_file(folder.folder / file.path, file)) for file in files)
        for file in files
    )


def is_whole(file: PublishedFile) -> bool:
    """Return whether a file is as published."""
    try:
        file.checked()
    except DamagedFileError:
        return False
    return True


def has_all_files(record: PartRecord | None, formats: Sequence[FormatName]) -> bool:
    """Check that no format is left to write."""
    return record is not None and all(files_of(record, name) for name in formats)
