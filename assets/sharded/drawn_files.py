"""Find shards that phases draw from: a job may still train on them after another build."""

from __future__ import annotations

from pathlib import Path

from corpus_loader.mixture import MIXTURE_FILE, shard_paths
from resources.store.records import Manifest, required_file
from resources.store.store import Partition, Store, StoreError, newest_first

MIXED = "mixed"


def drawn_folders(partition: Partition) -> set[Path]:
    """Return the folders of a source's shards that any kept mixture names.

    A mixture that is damaged may name any of them: all stay until it is repaired.
    """
    store = Store(partition.folder.parent.parent)
    phases = [phase for phase in store.partitions() if phase.stage == MIXED]
    try:
        manifests = [manifest for phase in phases for manifest in newest_first(phase)]
        folders = {folder for each in manifests for folder in folders_of(store, each)}
    except StoreError:
        return {path for path in partition.folder.iterdir() if path.is_dir()}
    return {folder for folder in folders if folder.parent == partition.folder}


def folders_of(store: Store, manifest: Manifest) -> set[Path]:
    """Return the folders of the shards of a mixture; none if no loader can read what it says.

    Raises DamagedFileError if its file is damaged.
    """
    file = required_file(manifest, manifest.parts[0], MIXTURE_FILE)
    content = store.file_of(manifest, file).checked().read_bytes()
    try:
        paths = shard_paths(content)
    except (ValueError, KeyError, TypeError):
        return set()
    return {(store.root / path).parent for path in paths}
