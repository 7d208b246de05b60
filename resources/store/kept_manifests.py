"""Kept manifests of a source, and the chain in which each names what it was made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from corpus_loader.places.stage_names import CHAIN
from resources.store.named_states import Tag
from resources.store.records import Manifest
from resources.store.store import Partition, Store, StoreError


def made_before(stage: str) -> tuple[str, ...]:
    """Return the stages that a stage of the chain was made of, the last first."""
    return CHAIN[CHAIN.index(stage) + 1 :]


class KeptManifests:
    """The kept manifests of a source, or of a phase, each read once; those of a tag, if given."""

    def __init__(self, store: Store, source: str, tag: Tag | None = None) -> None:
        self.store = store
        self.source = source
        self.tag = tag
        self.read: dict[tuple[str, int], Manifest] = {}

    def folder(self, stage: str) -> Partition:
        """Return the partition of a stage."""
        return self.store.partition(stage, self.source)

    def get(self, stage: str, number: int) -> Manifest:
        """Read a manifest."""
        if (stage, number) not in self.read:
            self.read[stage, number] = self.folder(stage).read_manifest(number)
        return self.read[stage, number]

    def numbers(self, stage: str) -> list[int]:
        """Return the numbers of the manifests of a stage, ascending."""
        if self.tag is None:
            return self.folder(stage).manifest_numbers()
        number = self.tag.number(stage, self.source)
        return [] if number is None else [number]

    def newest_first(self, stage: str) -> Iterator[tuple[int, Manifest]]:
        """Yield the manifests of a stage with their numbers."""
        for number in reversed(self.numbers(stage)):
            yield number, self.get(stage, number)

    def made_of(self, stage: str, key: str, fingerprint: str) -> tuple[int, Manifest] | None:
        """Return the newest manifest of a stage with a fingerprint: its own, or of its input."""
        for number, each in self.newest_first(stage):
            if fingerprint == (each.fingerprint if key == stage else each.provenance.get(key)):
                return number, each
        return None

    def chain(self, manifest: Manifest, stages: Sequence[str]) -> dict[str, tuple[int, Manifest]]:
        """Return what a manifest was made of, by stage, the last first, as far as it is kept."""
        chain: dict[str, tuple[int, Manifest]] = {}
        for earlier in stages:
            fingerprint = manifest.provenance.get(earlier)
            found = fingerprint and self.made_of(earlier, earlier, fingerprint)
            if not found:
                break
            chain[earlier], manifest = found, found[1]
        return chain

    def raw_of(self, stage: str, manifest: Manifest) -> Manifest | None:
        """Return the `raw` manifest that a manifest was made of; None if the chain is not kept."""
        found = {stage: (0, manifest), **self.chain(manifest, made_before(stage))}
        return found[CHAIN[-1]][1] if CHAIN[-1] in found else None

    def last_stage(self) -> str:
        """Return the last stage that the source has; StoreError if it has none."""
        for stage in CHAIN:
            if self.folder(stage).manifest_numbers():
                return stage
        raise StoreError(
            f"Nothing is built yet of {self.source!r} in {self.store}. Run: corpus build"
        )
