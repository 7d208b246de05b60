"""`corpus gc`: list what nothing names any more, and remove it with --delete.

A run removes the same after each commit, with `keep_manifests`. This command is for fewer states,
for what a deleted tag has named, and after runs that were killed.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter
from rich.console import Console
from rich.markup import escape

from assets.mixed.mixed_records import MIXED
from assets.sharded.pinned_shards import pinned_places
from assets.sharded.sharded_records import SHARDED
from corpus_loader.places.files import TAGS
from pipeline_defs.commands.life.removed_sources import removed_sources, unbuilt_sources
from pipeline_defs.commands.life.state_chain import SOURCE_STAGES
from pipeline_defs.commands.terminal.options import Json, Positive
from pipeline_defs.commands.terminal.output import ONE_LINE, new_table, print_json, table_console
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError
from resources.runs.run_lock import run_lock, this_holder
from resources.store.disk import TEMPORARY_PREFIX
from resources.store.medium import medium_of
from resources.store.named_states import HOLDS, hold_path
from resources.store.named_states import delete as delete_hold
from resources.store.preview_files import PREVIEWS, preview_paths
from resources.store.scratch import place_of
from resources.store.store import MANIFESTS, Partition, Store

NAMED = 3  # files of a partition in the table; JSON has all


class Garbage(msgspec.Struct, frozen=True):
    """Files of a partition that nothing names, with their bytes; `is_busy`: a run writes there."""

    stage: str
    partition: str
    manifests: int
    bytes: int
    files: dict[str, int]
    is_busy: bool = False


class Collected(msgspec.Struct, frozen=True):
    """Garbage by partition; `is_deleted` if it was removed.

    `removed_sources` are those that pipeline.yaml no longer has, with all their bytes in the store;
    `unbuilt_sources` those that it has and the store has not: while there are any, a removed
    source goes only if it is named.
    """

    keep: int
    is_deleted: bool
    partitions: list[Garbage]
    removed_sources: dict[str, int] = {}
    unbuilt_sources: list[str] = []

    @property
    def bytes(self) -> int:
        """Bytes of all files."""
        return sum(each.bytes for each in self.partitions)


def gc(
    *,
    keep: Annotated[
        Positive | None,
        Parameter(help="Newest states of each partition to keep; keep_manifests without."),
    ] = None,
    delete: Annotated[bool, Parameter(help="Remove what is listed.")] = False,
    removed_source: Annotated[
        tuple[str, ...],
        Parameter(
            help="A source that pipeline.yaml no longer has, to remove also while one of those "
            "that it has was never built, and could be its new name; may be repeated."
        ),
    ] = (),
    json: Json = False,
) -> int:
    """List what no kept manifest, mixture, tag or hold names; remove it if asked to.

    Of a source that pipeline.yaml no longer has, that is all but what a tag or a mixture names.
    """
    corpus = load_corpus()
    wanted = corpus.settings.keep_manifests if keep is None else keep
    with alone(corpus.store) if delete else nullcontext():
        found = collected(corpus, wanted, removed_source, delete=delete)
    if json:
        print_json(found)
    else:
        show(found, corpus.store)
    return 0


def collected(corpus: Corpus, keep: int, named: Collection[str], *, delete: bool) -> Collected:
    """Look for garbage, or remove it, that of removed sources included."""
    removed, unbuilt = removed_sources(corpus), unbuilt_sources(corpus)
    if unknown := [name for name in named if name not in removed]:
        there = ", ".join(removed) or "none"
        raise UsageError(f"{unknown[0]!r} is no removed source of this store; there are: {there}.")
    sizes = {name: sum(map(bytes_of, places)) for name, places in removed.items()}
    wanted = {*named} if unbuilt else {*removed}
    keeps = {name: 0 if name in wanted else keep for name in removed}
    if delete:
        for name in wanted:
            delete_hold(hold_path(corpus.store.root, name))
    found = [*collect(corpus.store, keep, keeps, is_dry=not delete)]
    for place in (place for name in wanted if delete for place in removed[name]):
        remove_empty(place)
    return Collected(keep, delete, found, sizes, unbuilt)


def bytes_of(partition: Partition) -> int:
    """Return the bytes of all files of a partition."""
    folder = partition.folder
    files = [folder / name for name in partition.medium.files_below(folder)]
    return sum(size or 0 for size in partition.medium.each(partition.medium.size, files))


def remove_empty(partition: Partition) -> None:
    """Remove the folders of a partition in which nothing but its lock is left."""
    if [*partition.medium.files_below(partition.folder)] == [".lock"]:
        (partition.folder / ".lock").unlink()
        for folder in (partition.records, partition.manifests, partition.folder):
            with suppress(OSError):  # an object store has no folders
                folder.rmdir()


def alone(store: Store) -> AbstractContextManager[None]:
    """Hold the store's lock, after the end of a run that works on it."""
    console = Console(soft_wrap=True, highlight=False, markup=False, stderr=True)
    return run_lock(store.root, this_holder("", "corpus gc"), console.print, time.sleep)


def collect(
    store: Store, keep: int, removed: Mapping[str, int], *, is_dry: bool
) -> Iterator[Garbage]:
    """Sweep every partition, or only look: mixtures first, since shards stay for them.

    `removed` has how many states stay of each source that pipeline.yaml no longer has.
    """
    places = {(each.stage, each.name): each for each in store.partitions()}
    places |= {(each.stage, each.name): each for each in of_removed(store, removed)}
    for partition in sorted(places.values(), key=lambda each: each.stage != MIXED.name):
        needed = None
        if partition.stage == SHARDED.name:
            needed = partial(pinned_places, keep_manifests=keep)
        is_removed = partition.stage in SOURCE_STAGES and partition.name in removed
        kept = removed[partition.name] if is_removed else keep
        found = partition.sweep(kept, needed, is_dry=is_dry)
        if found is None:
            yield Garbage(partition.stage, partition.name, 0, 0, {}, is_busy=True)
        elif found:
            yield garbage_of(partition, found)
    for folder in (TAGS, HOLDS):
        yield from leftovers(store.root / folder, is_dry=is_dry)
    yield from stale_previews(store, is_dry=is_dry)


def stale_previews(store: Store, *, is_dry: bool) -> Iterator[Garbage]:
    """Sweep the previews of partitions that are no longer there."""
    there = {(each.stage, each.name) for each in store.partitions()}
    for stage, partition, path in preview_paths(store.root):
        if (stage, partition) not in there:
            medium = medium_of(path.parent)
            size = medium.size(path) or 0
            if not is_dry:
                medium.remove_all([path])
            yield Garbage(PREVIEWS, partition, 0, size, {f"{stage}/{path.name}": size})


def of_removed(store: Store, removed: Collection[str]) -> Iterator[Partition]:
    """Yield the partitions of removed sources, also those without a manifest."""
    medium = medium_of(store.root)
    for stage in SOURCE_STAGES:
        for name in medium.names(store.root / stage):
            if name in removed:
                yield store.partition(stage, name)


def garbage_of(partition: Partition, found: Mapping[Path, int]) -> Garbage:
    """Describe the garbage of a partition."""
    files = {str(path.relative_to(partition.folder)): size for path, size in found.items()}
    manifests = sum(name.startswith(f"{MANIFESTS}/") for name in files)
    return Garbage(partition.stage, partition.name, manifests, sum(files.values()), files)


def leftovers(folder: Path, *, is_dry: bool) -> Iterator[Garbage]:
    """Sweep the temporary files of killed writers of tags and holds."""
    medium = medium_of(folder)
    sizes = medium.sizes(folder)
    files = {name: size for name, size in sizes.items() if name.startswith(TEMPORARY_PREFIX)}
    if files:
        if not is_dry:
            medium.remove_all([folder / name for name in files])
        yield Garbage(folder.name, "", 0, sum(files.values()), files)


def safe(text: str) -> str:
    """Return names for a cell: safe for a terminal and for markup."""
    return escape(text.translate(ONE_LINE))


def show(found: Collected, store: Store) -> None:
    """Print what was found for people."""
    console = table_console()
    table = new_table(
        "removed" if found.is_deleted else "nothing names any more",
        ["stage", "partition", "files"],
        ["old states", "number", "bytes"],
    )
    for each in found.partitions:
        names = list(each.files)
        more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
        text = "a run writes here: not looked at" if each.is_busy else ", ".join(names[:NAMED])
        numbers = (each.manifests, len(names), each.bytes)
        table.add_row(each.stage, each.partition, safe(text + more), *(f"{n:,}" for n in numbers))
    if table.row_count:
        console.print(table)
    where = f"{place_of(store.root)}, with the newest {found.keep} states of each partition kept"
    if not any(each.files for each in found.partitions):
        line = f"Nothing to remove in {where}."
    elif found.is_deleted:
        line = f"Removed {found.bytes:,} bytes from {where}."
    else:
        command = f"corpus gc --keep {found.keep} --delete"
        line = f"{found.bytes:,} bytes would go from {where}. `{command}` removes them."
    for text in (*removed_lines(found), line):
        console.print(text, markup=False, highlight=False, soft_wrap=True)


def removed_lines(found: Collected) -> Iterator[str]:
    """Yield a line on each source that pipeline.yaml no longer has."""
    for name, size in found.removed_sources.items():
        line = f"{name!r} is no source of pipeline.yaml any more; {size:,} bytes of it are stored."
        if found.unbuilt_sources:
            new = ", ".join(map(repr, found.unbuilt_sources))
            line += (
                f" It stays, since {new} was never built and may be its new name: build first, or "
                f"name it: corpus gc --delete --removed-source {name}"
            )
        elif found.is_deleted:
            line += " What no tag, mixture or running build names was removed."
        yield line.translate(ONE_LINE)
