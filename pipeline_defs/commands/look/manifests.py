"""Manifests in which documents are looked up, and the files of their parts."""

from __future__ import annotations

from pathlib import Path

from resources.corpus import Corpus
from resources.store.records import Manifest, PartRecord
from resources.store.store import StoreError

LEAST_PREFIX = 4  # characters of an id: of 1e9 documents, 15,000 begin alike
MAX_SUGGESTED = 5  # ids


def raw_manifest(corpus: Corpus, manifest: Manifest) -> Manifest:
    """Return the manifest of `raw` that decisions were made from; StoreError if it is gone."""
    folder = corpus.store.partition("raw", manifest.partition)
    for number in reversed(folder.manifest_numbers()):
        raw = folder.read_manifest(number)
        if raw.fingerprint == manifest.provenance.get("raw"):
            return raw
    raise StoreError(
        f"filtered[{manifest.partition}] was made of raw documents that are no longer there. "
        f"Materialize `filtered` for {manifest.partition!r} again."
    )


def filtered_manifests(corpus: Corpus) -> list[Manifest]:
    """Return the newest manifest of `filtered` of every source that has one."""
    folders = [corpus.store.partition("filtered", n) for n in corpus.settings.source_names()]
    return [manifest for folder in folders if (manifest := folder.newest_manifest())]


def path_of(corpus: Corpus, manifest: Manifest, part: PartRecord, kind: str) -> Path:
    """Return the path of a part's file of a kind; DamagedFileError if it is not as published."""
    return corpus.store.part_file(manifest, part, kind).checked()
