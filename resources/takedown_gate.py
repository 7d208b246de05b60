"""The gate of takedowns: whether a state of a source may be published, held, tagged or trained on.

Every command that makes a state the newest, or lets one be used, asks here. A state may not if its
`raw` manifest names a part in which a takedown found a document.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from resources.store.kept_manifests import KeptManifests
from resources.store.named_states import HeldSource
from resources.store.records import Manifest, as_json_object
from resources.store.store import Store, StoreError, part_stem
from resources.takedowns import Takedown, id_of, read_takedowns, task_name


@dataclass(frozen=True)
class Forbidden:
    """The takedowns that mean a document of a state of a source: their numbers and reasons."""

    source: str
    takedowns: tuple[tuple[int, str], ...]

    def __str__(self) -> str:
        number, reason = self.takedowns[0]
        more = f" and {len(self.takedowns) - 1:,} more" if len(self.takedowns) > 1 else ""
        return f"documents of takedown {number} ({reason}){more}"


def forbidden_documents(store: Store, raw: Manifest) -> Forbidden | None:
    """Return what forbids a `raw` manifest; None if no takedown means a document of it."""
    names = frozenset(task_name(part.name) for part in raw.parts)
    stems = frozenset(part_stem(part.name, part.fingerprint) for part in raw.parts)
    obeyed = frozenset(as_json_object(raw.provenance).get("takedowns", ()))
    found = tuple(
        (number, each.reason)
        for number, each in enumerate(read_takedowns(store.root), 1)
        if raw.partition in each.parts and is_found_in(each, raw.partition, names, stems, obeyed)
    )
    return Forbidden(raw.partition, found) if found else None


def is_found_in(
    takedown: Takedown,
    source: str,
    names: frozenset[str],
    stems: frozenset[str],
    obeyed: frozenset[str],
) -> bool:
    """Return whether a takedown found a document in a part, by its stem.

    Those of earlier versions name tasks only: then a manifest has one unless it says that it obeys.
    """
    if takedown.published:
        return not stems.isdisjoint(takedown.published.get(source, ()))
    return not names.isdisjoint(takedown.parts[source]) and id_of(takedown) not in obeyed


def forbidden_in_hold(store: Store, hold: HeldSource) -> Forbidden | None:
    """Return what forbids the state that a source is held in."""
    number = hold.number("raw")
    folder = store.partition("raw", hold.source)
    return None if number is None else forbidden_documents(store, folder.read_manifest(number))


def check_hold(store: Store, hold: HeldSource) -> None:
    """Raise StoreError if a source is held in a state with a forbidden document."""
    if found := forbidden_in_hold(store, hold):
        raise StoreError(
            f"{hold}, which has {found}. Nothing of it is published: give `corpus states rollback "
            f"{hold.source} --release`, then `corpus build`."
        )


def forbidden_in(
    store: Store, stage: str, manifest: Manifest, obeyed: Collection[str] = ()
) -> Forbidden | None:
    """Return what forbids a manifest of any stage of a source, by the `raw` one that it is made of.

    If that is not kept, every takedown that named the source counts, but for the ids in `obeyed`.
    """
    source = manifest.partition
    if not any(source in each.parts for each in read_takedowns(store.root)):
        return None
    if raw := KeptManifests(store, source).raw_of(stage, manifest):
        return forbidden_documents(store, raw)
    found = tuple(
        (number, each.reason)
        for number, each in enumerate(read_takedowns(store.root), 1)
        if source in each.parts and id_of(each) not in obeyed
    )
    return Forbidden(source, found) if found else None
