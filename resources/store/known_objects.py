"""What a run knows of the objects of a store: a stage is listed once in a step.

A listing takes a request per 1,000 keys, and what it answers takes none: the partitions of a stage
are planned, compared, checked and swept with one. What this process writes or removes is listed
again when it is asked for; a partition that workers write to is known again when they have ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence

from corpus_loader.places import stage_names
from corpus_loader.places.files import TAGS
from corpus_loader.places.objects import ObjectInfo, Objects

Children = dict[str, ObjectInfo | None]  # of a folder, by name; None: a folder
Tree = dict[str, Children]  # by folder
OnListed = Callable[[Sequence[ObjectInfo]], object]
MOST_OBJECTS = 1_000_000  # known from one step to the next, some 700 MB


class KnownObjects:
    """Objects as they were listed: whole folders of the store's root, then single partitions."""

    def __init__(self, objects: Objects, on_listed: OnListed) -> None:
        """`on_listed` gets all objects of a folder of the root that was listed."""
        self.objects = objects
        self.on_listed = on_listed
        self.root: Children | None = None
        self.trees: dict[str, Tree] = {}  # by folder of the root
        self.stale: set[str] = set()  # partitions, and folders of the root
        self.live: set[str] = set()
        self.guard = threading.RLock()

    def begin_step(self, stage: str, *, sweeps: bool) -> None:
        """Forget what others may have changed: the stage, holds, takedowns and the like.

        For a sweep also tags and mixtures: they name files that stay.
        """
        self.root = None
        folders = (children for tree in self.trees.values() for children in tree.values())
        if sum(map(len, folders)) > MOST_OBJECTS:
            self.trees = {}
        beside = {top for top in self.trees if top.startswith("_")}
        self.stale |= {stage, *beside, stage_names.MIXED} if sweeps else {stage, *beside} - {TAGS}

    def forget(self, key: str) -> None:
        """List the partition of an object again when it is asked for."""
        self.root = None
        self.stale.add(place_of(key.rpartition("/")[0]))

    def write_to(self, folder: str) -> None:
        """Know nothing of a partition that other processes write to, until it is settled."""
        self.live.add(place_of(folder))

    def settle(self, folder: str) -> None:
        """Know a partition again after others wrote to it."""
        if (place := place_of(folder)) in self.live:
            self.stale.add(place)
            self.live.discard(place)

    def children(self, folder: str) -> Mapping[str, ObjectInfo | None] | None:
        """Return what is directly in a folder; None if it must be asked for."""
        top, place = folder.partition("/")[0], place_of(folder)
        is_live = any(not top or each.startswith(f"{top}/") for each in self.live)
        if place in self.live or (folder in ("", top) and is_live):
            return None
        found: list[ObjectInfo] = []
        with self.guard:
            if not top:
                self.root = self.root or dict.fromkeys(self.objects.names(""))
                return self.root
            if top not in self.trees or top in self.stale:
                self.stale = {each for each in self.stale if each.partition("/")[0] != top}
                self.trees[top] = {top: {}}
                found = self.listed(top)
            inner = [e for e in self.stale if e.startswith(f"{top}/")] if folder == top else [place]
            for each in self.stale.intersection(inner):
                self.stale.discard(each)
                self.listed(each)
            children = self.trees[top].get(folder, {})
        if found:
            self.on_listed(found)
        return children

    def listed(self, place: str) -> list[ObjectInfo]:
        """List what is below a partition, or a folder of the root, and put it in its tree."""
        tree = self.trees[place.partition("/")[0]]
        for folder in [*folders_in(tree, place)]:
            del tree[folder]
        top, _, name = place.rpartition("/")
        tree.setdefault(top or place, {}).pop(name, None)
        found = self.objects.list_objects(place)
        for info in found:
            folder, _, name = info.key.rpartition("/")
            tree.setdefault(folder, {})[name] = info
            while "/" in folder:
                folder, _, name = folder.rpartition("/")
                tree.setdefault(folder, {}).setdefault(name)
        return found

    def below(self, folder: str) -> list[ObjectInfo] | None:
        """Return all objects below a folder; None if they must be asked for."""
        if self.children(folder) is None:
            return None
        tree = self.trees[folder.partition("/")[0]]
        with self.guard:
            names = [tree[each].values() for each in folders_in(tree, folder)]
            return [info for infos in names for info in infos if info is not None]


def folders_in(tree: Tree, folder: str) -> Iterator[str]:
    """Yield a folder and all folders below it that a tree has."""
    if folder in tree:
        yield folder
        for name, info in tree[folder].items():
            if info is None:
                yield from folders_in(tree, f"{folder}/{name}")


def place_of(folder: str) -> str:
    """Return the partition of a folder, or the folder of the root."""
    return "/".join(folder.split("/")[:2])
