"""Shards that kept mixtures draw from: a job may still train on them after another build."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from corpus_loader.mixture import MIXTURE_FILE, drawn_paths
from corpus_loader.places.stage_names import MIXED
from resources.store.records import Manifest
from resources.store.store import Partition, Store, StoreError, newest_first


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
        found = [places_by_folder(store, one) for each in kept for one in each]
    except StoreError:
        medium, root = partition.medium, partition.folder
        files = medium.sizes(root).keys()
        rows = {name for name in files if name.endswith(".rows")}
        return {root / name for name in rows | (set(medium.names(root)) - files)}
    return {place for places in found for place in places.get(partition.folder, ())}


def places_of(store: Store, manifest: Manifest) -> set[Path]:
    """Return the places that a mixture draws from.

    Raises DamagedFileError if its file is damaged.
    """
    return set[Path]().union(*places_by_folder(store, manifest).values())


def places_by_folder(store: Store, manifest: Manifest) -> Mapping[Path, set[Path]]:
    """Return the places that a mixture draws from, by their folder.

    Raises DamagedFileError if its file is damaged.
    """
    file = store.part_file(manifest, manifest.parts[0], MIXTURE_FILE)
    return drawn_places(store.root, file.checked().read_bytes())


@lru_cache(maxsize=8)  # each of 500 sources asks for those of the same mixtures
def drawn_places(root: Path, content: bytes) -> Mapping[Path, set[Path]]:
    """Return the places that a mixture names, by folder; none if no loader can read it."""
    places: dict[Path, set[Path]] = {}
    try:
        for path in drawn_paths(content):
            places.setdefault((root / path).parent, set()).add(root / path)
    except (ValueError, KeyError, TypeError):
        return {}
    return places
