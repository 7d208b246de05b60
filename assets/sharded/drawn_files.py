"""Find shards that phases draw from: a job may still train on them after another build."""

from __future__ import annotations

from pathlib import Path

from corpus_loader.mixture import MIXTURE_FILE, shard_paths
from resources.store.records import Manifest, required_file
from resources.store.store import Partition, Store, StoreError, newest_first

MIXED = "mixed"


def drawn_folders(partition: Partition) -> set[Path]:
    """Return the folders of a source's shards that any kept mixture names."""
    store = Store(partition.folder.parent.parent)
    folders = {
        folder
        for phase in store.partitions()
        if phase.stage == MIXED
        for manifest in newest_first(phase)
        for folder in folders_of(store, manifest)
    }
    return {folder for folder in folders if folder.parent == partition.folder}


def folders_of(store: Store, manifest: Manifest) -> set[Path]:
    """Return the folders of the shards of a mixture; none if it is damaged: no job can read it."""
    try:
        file = required_file(manifest, manifest.parts[0], MIXTURE_FILE)
        paths = shard_paths(store.path_of(manifest, file).read_bytes())
    except (StoreError, OSError, ValueError, KeyError, TypeError):
        return set()
    return {(store.root / path).parent for path in paths}
