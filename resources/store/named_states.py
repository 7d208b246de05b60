"""Tags and rollbacks: small files that name manifests, which no clean-up then removes.

    <store>/_tags/v1.json        the state of the whole corpus under a name
    <store>/_holds/web.json      the state that a source is rolled back to: runs leave it there

Both are created once and never written over: of two writers one commits. Deleting one is one step.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

import msgspec

from corpus_loader.places.files import TAGS, is_tag_name
from corpus_loader.seal import sealed, unsealed
from resources.store.medium import medium_of
from resources.store.records import StoreError, to_line
from resources.store.scratch import place_of

HOLDS = "_holds"
SUFFIX = ".json"


class NamedManifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A manifest of a partition, by its number, and the fingerprint that it has."""

    stage: str
    partition: str
    number: int
    fingerprint: str


class Tag(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A state of the whole corpus: a manifest of every partition that had one."""

    name: str
    manifests: tuple[NamedManifest, ...]

    def number(self, stage: str, partition: str) -> int | None:
        """Return the number of a partition's manifest, None if the tag has none of it."""
        return number_in(self.manifests, stage, partition)


class Rollback(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A source that is rolled back to an earlier state: a manifest of each of its stages.

    state   the state as it was asked for: a number, or a tag
    """

    source: str
    state: str
    reason: str
    manifests: tuple[NamedManifest, ...]

    def number(self, stage: str) -> int | None:
        """Return the number of a stage's manifest, None if the rollback leaves the stage alone."""
        return number_in(self.manifests, stage, self.source)

    def __str__(self) -> str:
        because = f" ({self.reason})" if self.reason else ""
        return f"{self.source!r} is rolled back to state {self.state}{because}"


Named = TypeVar("Named", Tag, Rollback)


def number_in(manifests: Iterable[NamedManifest], stage: str, partition: str) -> int | None:
    """Return the number of the manifest of a partition among some."""
    place = (stage, partition)
    return next((each.number for each in manifests if (each.stage, each.partition) == place), None)


def tag_path(root: Path, name: str) -> Path:
    """Return the path of a tag, whose name is checked."""
    return root / TAGS / f"{name}{SUFFIX}"


def rollback_path(root: Path, source: str) -> Path:
    """Return the path of the rollback of a source, whose name is that of a partition."""
    return root / HOLDS / f"{source}{SUFFIX}"


def read_tags(root: Path) -> dict[str, Tag]:
    """Return all tags by name; StoreError if the file of one is damaged."""
    return {name: each for name, each in read_folder(root / TAGS, Tag) if is_tag_name(name)}


def read_rollback(root: Path, source: str) -> Rollback | None:
    """Return the rollback of a source, None if there is none; StoreError if its file is damaged."""
    return read_named(rollback_path(root, source), Rollback)


def read_rollbacks(root: Path) -> dict[str, Rollback]:
    """Return the rollbacks by source; StoreError if the file of one is damaged."""
    return dict(read_folder(root / HOLDS, Rollback))


def read_folder(folder: Path, kind: type[Named]) -> list[tuple[str, Named]]:
    """Read the files of a folder of tags or rollbacks: (name, content), sorted by name."""
    medium = medium_of(folder)
    names = [name for name in medium.names(folder) if name.endswith(SUFFIX) and name[0] != "."]
    found = medium.each(lambda name: read_named(folder / name, kind), names)
    pairs = zip(names, found, strict=True)
    return [(name.removesuffix(SUFFIX), each) for name, each in pairs if each is not None]


def read_named(path: Path, kind: type[Named]) -> Named | None:
    """Read a tag or a rollback, None if there is none; StoreError if it is damaged."""
    try:
        return msgspec.json.decode(unsealed(medium_of(path.parent).read(path)), type=kind)
    except FileNotFoundError:
        return None
    except (msgspec.MsgspecError, ValueError) as error:
        raise StoreError(
            f"{place_of(path)} is damaged ({error}), so that nothing is known to be unnamed: "
            "nothing was removed. Put a copy of the file there, or delete it."
        ) from error


def create(path: Path, named: Tag | Rollback) -> bool:
    """Write a tag or a rollback if its name is free; False if it has other content."""
    return medium_of(path.parent).create(path, sealed(to_line(named)))


def delete(path: Path) -> bool:
    """Delete a tag or a rollback; False if there is none."""
    medium = medium_of(path.parent)
    is_there = medium.size(path) is not None
    medium.remove_all([path])
    return is_there


def numbers_named(root: Path, stage: str, partition: str) -> set[int]:
    """Return the numbers of a partition's manifests that a tag or a rollback names."""
    lists = [each.manifests for each in read_tags(root).values()]
    lists += [each.manifests for each in read_rollbacks(root).values()]
    numbers = {number_in(manifests, stage, partition) for manifests in lists}
    return {number for number in numbers if number is not None}


def wait_for_sweepers(root: Path, manifests: Iterable[NamedManifest]) -> list[NamedManifest]:
    """Wait for clean-ups that began before a file that names these manifests was written.

    Returns the manifests that one of them removed. Later clean-ups have seen the file: a sweeper
    reads tags and rollbacks only when it is alone in its partition.
    """
    gone = []
    for each in manifests:
        folder = root / each.stage / each.partition
        medium = medium_of(folder)
        with medium.hold(folder) as hold:
            hold.share()
            path = folder / "_manifests" / f"{each.number:08d}.json"
            if medium.size(path) is None:
                gone.append(each)
    return gone
