"""Takedowns: documents that the store must not hold, as requests that are never changed.

    <store>/_takedowns/00000001.json

A request holds hashes only (assets/text/marks.py), so that it can tell a document and its text,
and give neither. `raw` leaves these documents out. A part of `raw` that had one when the request
came is named in it, and gets another fingerprint by it; all other parts keep theirs.

Every command that makes a state the newest, or lets one be used, asks here. A state may not be
published, rolled back to, tagged or trained on if its `raw` manifest names a part in which a
takedown found a document.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from corpus_loader.places import stage_names
from corpus_loader.places.files import TAKEDOWNS
from corpus_loader.seal import sealed, unsealed
from resources.store.kept_manifests import KeptManifests
from resources.store.medium import medium_of
from resources.store.named_states import Rollback
from resources.store.records import Manifest, StoreError, as_json_object, fingerprint_of, to_line
from resources.store.scratch import place_of
from resources.store.store import Store, part_stem

URL_FORM = 2  # that of `resources/urls.py`
Kind = Literal["url", "domain", "doc", "match", "withdraw"]


class UrlForm(msgspec.Struct, frozen=True, array_like=True):
    """The form of the URLs and hosts that a request has the hashes of.

    version              URL_FORM when it was recorded
    tracking_parameters  names of the parameters that are left out
    """

    version: int
    tracking_parameters: tuple[str, ...]


class Takedown(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request, and what it found.

    kind, reason  what was asked for, and why, as the user wrote it
    near          True if near copies were asked for
    addresses     sha256 of normalised URLs
    domains       sha256 of domains; a domain covers those below it
    form          how they are normalised; without it they are in lower case, without scheme,
                  "www." and slashes at the end
    ids           marks of the ids of the documents that were found
    texts         marks of their texts: any document with one of these texts is meant
    passages      marks of passages in them, by which later copies are told, alone or within more
    copies        passages of each text: their places in `passages`, uint32; unset by earlier
                  versions, where all passages are taken as those of one text
    runs          hashes of runs of five words of each text, by which changed copies are told; unset
                  by earlier versions
    text_form     version of the form of texts of these; unset by earlier versions: as they were
    parts         names of the tasks of `raw` that have one of the documents, by source
    documents     number of documents that were found
    published     parts of `raw` that have one of the documents: the stems of their files, by
                  source; unset by earlier versions
    date          date of the notice, as the user wrote it
    withdraws     number of the request that this one withdraws; `parts` are then those that have
                  left out documents since
    """

    kind: Kind
    reason: str
    near: bool = False
    addresses: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    form: UrlForm | UnsetType = UNSET
    ids: bytes = b""
    texts: bytes = b""
    passages: bytes = b""
    copies: tuple[bytes, ...] | UnsetType = UNSET
    runs: tuple[bytes, ...] | UnsetType = UNSET
    text_form: int | UnsetType = UNSET
    parts: dict[str, tuple[str, ...]] = {}
    documents: int = 0
    published: dict[str, tuple[str, ...]] | UnsetType = UNSET
    date: str | UnsetType = UNSET
    withdraws: int | UnsetType = UNSET


def path_of(root: Path, number: int) -> Path:
    """Return the path of a request: they are numbered from 1."""
    return root / TAKEDOWNS / f"{number:08d}.json"


def count_takedowns(root: Path) -> int:
    """Return the number of requests that a store has."""
    names = medium_of(root).names(root / TAKEDOWNS)
    return max((int(name[:-5]) for name in names if name[:-5].isdecimal()), default=0)


def read_takedowns(root: Path, count: int | None = None) -> tuple[Takedown, ...]:
    """Return the first requests of a store, all by default; a withdrawn one means nothing."""
    recorded = read_recorded(root, count)
    withdrawn = {each.withdraws for each in recorded if each.withdraws}
    return tuple(
        Takedown(each.kind, each.reason) if number in withdrawn else each
        for number, each in enumerate(recorded, 1)
    )


def read_recorded(root: Path, count: int | None = None) -> tuple[Takedown, ...]:
    """Return the first requests of a store as they were recorded, in the order of coming."""
    return _read(root, count_takedowns(root) if count is None else count)


@lru_cache(maxsize=4)  # a request never changes
def _read(root: Path, count: int) -> tuple[Takedown, ...]:
    paths = [path_of(root, number) for number in range(1, count + 1)]
    return tuple(medium_of(root).each(read_takedown, paths))


def read_takedown(path: Path) -> Takedown:
    """Read a request; StoreError if it is missing or damaged."""
    try:
        return msgspec.json.decode(unsealed(medium_of(path.parent).read(path)), type=Takedown)
    except (FileNotFoundError, msgspec.MsgspecError, ValueError) as error:
        raise StoreError(
            f"{place_of(path)}: not a takedown: {error}. Without it, documents that must not be in "
            "the corpus would come back. Restore the file from a backup."
        ) from error


def add_takedown(root: Path, *takedowns: Takedown) -> int:
    """Add requests to a store, one after the other; return the number of the first."""
    first = count_takedowns(root) + 1
    for number, takedown in enumerate(takedowns, first):
        if not medium_of(root).create(path_of(root, number), sealed(to_line(takedown))):
            place = place_of(path_of(root, number))
            raise StoreError(f"{place}: another takedown came meanwhile. Give the command again.")
    return first


def id_of(takedown: Takedown) -> str:
    """Return the fingerprint of all that a request says."""
    return fingerprint_of(takedown)


def takedowns_by_part(takedowns: Sequence[Takedown], source: str) -> dict[str, tuple[str, ...]]:
    """Return the ids of the requests that name a task of a source, by the task's name."""
    named: dict[str, tuple[str, ...]] = {}
    for takedown in takedowns:
        for name in takedown.parts.get(source, ()):
            named[name] = (*named.get(name, ()), id_of(takedown))
    return named


def takedowns_by_source(takedowns: Sequence[Takedown]) -> frozenset[tuple[str, str]]:
    """Return source and name of every task of `raw` that a request names."""
    return frozenset(
        (source, name)
        for takedown in takedowns
        for source, names in takedown.parts.items()
        for name in names
    )


def task_name(part: str) -> str:
    """Return the name of the task of `raw` that made a part, from the part's name.

    A name is the digest of the first file, the number of its slice and that of the part.
    """
    return "-".join(part.split("-")[:2])


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
    """Return the takedowns that forbid a `raw` manifest, None if none means a document of it."""
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


def forbidden_in_rollback(store: Store, rollback: Rollback) -> Forbidden | None:
    """Return the takedowns that forbid the state that a source is rolled back to."""
    number = rollback.number(stage_names.RAW)
    folder = store.partition(stage_names.RAW, rollback.source)
    return None if number is None else forbidden_documents(store, folder.read_manifest(number))


def check_rollback(store: Store, rollback: Rollback) -> None:
    """Raise StoreError if a source is rolled back to a state with a forbidden document."""
    if found := forbidden_in_rollback(store, rollback):
        raise StoreError(
            f"{rollback}, which has {found}. Nothing of it is published: give `corpus states "
            f"rollback {rollback.source} --release`, then `corpus build`."
        )


def forbidden_in(
    store: Store, stage: str, manifest: Manifest, obeyed: Collection[str] = ()
) -> Forbidden | None:
    """Return the takedowns that forbid a manifest of a stage, by the `raw` one it is made of.

    If that is not kept, every takedown that named the source counts, except those in `obeyed`.
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
