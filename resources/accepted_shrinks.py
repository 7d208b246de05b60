"""Consents to states of a source that lack many documents of the state before.

    <store>/_accepted/web-00000007-3f9a....json

A consent is created once and never changed: a later build of the same input finds it, and takes the
same state without being asked. One that names no state comes from the release of a hold: the first
build after it may give anything.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from corpus_loader.seal import sealed
from resources.store.inventory import ACCEPTED
from resources.store.medium import medium_of
from resources.store.records import to_line

ANY_STATE = "released"


class AcceptedShrink(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A state of a source that was accepted.

    after      number of the source's newest manifest of `raw` at that time
    state      fingerprint of the manifest of `raw` that was accepted, or ANY_STATE
    lost       documents of the last good state that it lacks, of `documents`; all if that state
               cannot be read any more
    """

    source: str
    after: int
    state: str
    lost: int = 0
    documents: int = 0


def path_of(root: Path, source: str, after: int, state: str) -> Path:
    """Return the path of a consent."""
    return root / ACCEPTED / f"{source}-{after:08d}-{state}.json"


def record_consent(root: Path, accepted: AcceptedShrink) -> None:
    """Keep a consent; one that is there already stays as it is."""
    path = path_of(root, accepted.source, accepted.after, accepted.state)
    medium_of(root).create(path, sealed(to_line(accepted)))


def has_consent(root: Path, source: str, after: int, state: str) -> bool:
    """Return whether a state that would follow a manifest was accepted, or the source released."""
    size = medium_of(root).size
    return any(size(path_of(root, source, after, each)) for each in (state, ANY_STATE))


def end_release(root: Path, source: str, after: int) -> None:
    """Use up the consent of a release: a build after it gave the state that was there."""
    path = path_of(root, source, after, ANY_STATE)
    if medium_of(root).size(path):
        medium_of(root).remove_all([path])
