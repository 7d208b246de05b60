"""Shards that kept mixtures draw from: a job may still train on them after another build."""

from __future__ import annotations

from pathlib import Path

from corpus_loader.mixture import MIXTURE_FILE, drawn_paths
from resources.store.records import Manifest
from resources.store.store import Partition, Store, StoreError, newest_first

MIXED = "mixed"


def pinned_places(partition: Partition, keep_manifests: int | None = None) -> set[Path]:
    """Return the folders of a source's shards, and the files of removed rows, of kept mixtures.

    `keep_manifests`: of those mixtures that are left when so many are kept, and of tags. A mixture
    that is damaged may name any of them: all stay until it is repaired.
    """
    store = Store(partition.folder.parent.parent)
    names = partition.medium.names(store.root / MIXED)
    phases = [store.partition(MIXED, name) for name in names]
    try:
        kept = (
            newest_first(phase)
            if keep_manifests is None
            else map(phase.read_manifest, phase.kept_numbers(keep_manifests))
            for phase in phases
        )
        places = {place for each in kept for one in each for place in places_of(store, one)}
    except StoreError:
        medium, root = partition.medium, partition.folder
        files = medium.sizes(root).keys()
        rows = {name for name in files if name.endswith(".rows")}
        return {root / name for name in rows | (set(medium.names(root)) - files)}
    return {place for place in places if place.parent == partition.folder}


def places_of(store: Store, manifest: Manifest) -> set[Path]:
    """Return the places that a mixture draws from; none if no loader can read what it says.

    Raises DamagedFileError if its file is damaged.
    """
    content = store.part_file(manifest, manifest.parts[0], MIXTURE_FILE).checked().read_bytes()
    try:
        return {store.root / path for path in drawn_paths(content)}
    except (ValueError, KeyError, TypeError):
        return set()
