"""Shards that phases draw from: a job may train on them long after `sharded` was built anew."""

from __future__ import annotations

from pathlib import Path

from assets.mixed.mixture_files import read_mixture
from resources.lineage import newest_first
from resources.store.records import Manifest
from resources.store.store import Partition, Store, StoreError

MIXED = "mixed"


def drawn_folders(partition: Partition) -> set[Path]:
    """Folders of a source's shards that a mixture names which is still there."""
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
    """Folders of the shards of a mixture; none if it is damaged: no job can read it."""
    try:
        sources = read_mixture(store, manifest)["sources"]
        return {(store.root / shard["path"]).parent for each in sources for shard in each["shards"]}
    except (StoreError, OSError, ValueError, KeyError, TypeError):
        return set()
