"""`corpus states gc`: list what nothing names any more, and remove it with --delete.

A run removes the same after each commit, with `keep_manifests`. This command is for fewer states,
for what a deleted tag has named, and after runs that were killed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from assets.mixed.mixed_records import MIXED
from assets.sharded.pinned_shards import pinned_places
from assets.sharded.sharded_records import SHARDED
from corpus_loader.places.stage_names import RAW, SOURCE_STAGES
from pipeline_defs.commands.answers import print_rows
from pipeline_defs.commands.share.iceberg_folders import iceberg_folders
from pipeline_defs.commands.share.push_iceberg import write_table
from pipeline_defs.commands.terminal import Json, Positive, alone_on, print_json, say
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.dagster_home import records_folder
from resources.errors import UsageError, and_more
from resources.store.inventory import remove_stored, stored_files
from resources.store.medium import medium_of
from resources.store.named_states import delete as delete_hold
from resources.store.named_states import rollback_path
from resources.store.records import MANIFESTS
from resources.store.scratch import place_of
from resources.store.store import Partition, Store

NAMED = 3  # files of a partition in the table; JSON has all


class Garbage(msgspec.Struct, frozen=True):
    """Files of a partition that nothing names, with their bytes; `is_busy`: a run writes there."""

    stage: str
    partition: str
    manifests: int
    bytes: int
    files: dict[str, int]
    is_busy: bool = False


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
    with alone_on(corpus.store.root, "corpus states gc") if delete else nullcontext():
        found = collected(corpus, wanted, removed_source, delete=delete)
        for table in iceberg_folders(corpus.store) if delete else ():
            write_table(table)  # without the snapshots that went
    if json:
        print_json(found)
    else:
        show(found, corpus.store)
    return 0


def collected(corpus: Corpus, keep: int, named: Collection[str], *, delete: bool) -> dict[str, Any]:
    """Look for garbage, or remove it, that of removed sources included.

    `removed_sources` are those that pipeline.yaml no longer has, with all their bytes in the store;
    `unbuilt_sources` those that it has and the store has not: while there are any, a removed
    source goes only if it is named.
    """
    removed, unbuilt = removed_sources(corpus), unbuilt_sources(corpus)
    if unknown := [name for name in named if name not in removed]:
        there = ", ".join(removed) or "none"
        raise UsageError(f"{unknown[0]!r} is no removed source of this store; there are: {there}.")
    medium, sizes = medium_of(corpus.store.root), {}
    for name, places in removed.items():
        files = [p.folder / file for p in places for file in p.medium.files_below(p.folder)]
        sizes[name] = sum(size or 0 for size in medium.each(medium.size, files))
    wanted = {*named} if unbuilt else {*removed}
    keeps = {name: 0 if name in wanted else keep for name in removed}
    if delete:
        for name in wanted:
            delete_hold(rollback_path(corpus.store.root, name))
    found = [*collect(corpus.store, keep, keeps, is_dry=not delete)]
    for place in (place for name in wanted if delete for place in removed[name]):
        remove_empty(place)
    sources = {"removed_sources": sizes, "unbuilt_sources": unbuilt}
    return {"keep": keep, "is_deleted": delete, "partitions": found} | sources


def removed_sources(corpus: Corpus) -> dict[str, list[Partition]]:
    """Return the partitions of the sources that were removed or renamed, by the name they had.

    Also those without a manifest: what a mixture draws from stays longer than that.
    """
    root, names = corpus.store.root, {*corpus.settings.source_names()}
    medium, found = medium_of(root), dict[str, list[Partition]]()
    for stage in SOURCE_STAGES:
        for name in medium.names(root / stage):
            if name not in names and medium.files_below(root / stage / name):
                found.setdefault(name, []).append(corpus.store.partition(stage, name))
    return found


def unbuilt_sources(corpus: Corpus) -> list[str]:
    """Return the sources of pipeline.yaml that have no document table yet.

    One of them may be the new name of a source that seems to be removed, or a slip of the pen.
    """
    store = corpus.store
    names = corpus.settings.source_names()
    return [name for name in names if not store.partition(RAW, name).manifest_numbers()]


def remove_empty(partition: Partition) -> None:
    """Remove the folders of a partition in which nothing but its lock is left."""
    if [*partition.medium.files_below(partition.folder)] == [".lock"]:
        (partition.folder / ".lock").unlink()
        for folder in (partition.records, partition.manifests, partition.folder):
            with suppress(OSError):  # an object store has no folders
                folder.rmdir()


def collect(
    store: Store, keep: int, removed: Mapping[str, int], *, is_dry: bool
) -> Iterator[Garbage]:
    """Sweep every partition, or only look: mixtures first, since shards stay for them.

    `removed` has how many states stay of each source that pipeline.yaml no longer has.
    """
    places = {(each.stage, each.name): each for each in store.partitions()}
    for stage in SOURCE_STAGES:  # of a removed source also those without a manifest
        for name in sorted(removed.keys() & {*medium_of(store.root).names(store.root / stage)}):
            places[stage, name] = store.partition(stage, name)
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
            files = {str(path.relative_to(partition.folder)): n for path, n in found.items()}
            old = sum(name.startswith(f"{MANIFESTS}/") for name in files)
            yield Garbage(partition.stage, partition.name, old, sum(files.values()), files)
    yield from beside_stages(store, is_dry=is_dry)


def beside_stages(store: Store, *, is_dry: bool) -> Iterator[Garbage]:
    """Sweep what killed writers left, and what was made of partitions that are gone."""
    found, paths = dict[tuple[str, str], dict[str, int]](), list[Path]()
    there = {(each.stage, each.name) for each in store.partitions()}
    for each in stored_files(store.root, records_folder(store.root)):
        is_gone = each.stage is not None and (each.stage, each.partition) not in there
        if each.text == "left" or (each.text == "remade" and is_gone):
            top, _, name = each.name.partition("/")
            size = medium_of(each.path.parent).size(each.path) or 0
            found.setdefault((top, each.partition or ""), {})[name] = size
            paths.append(each.path)
    if not is_dry:
        remove_stored(store.root, paths)
    for (stage, partition), files in found.items():
        yield Garbage(stage, partition, 0, sum(files.values()), files)


def show(found: Mapping[str, Any], store: Store) -> None:
    """Print what was found for people."""
    rows = []
    for each in found["partitions"]:
        names = [*each.files]
        text = "a run writes here: not looked at" if each.is_busy else and_more(names, NAMED)
        row = {"stage": each.stage, "partition": each.partition, "files": text}
        rows.append(row | {"old_states": each.manifests, "number": len(names), "bytes": each.bytes})
    print_rows("removed" if found["is_deleted"] else "nothing names any more", rows)
    where = f"{place_of(store.root)}, with the newest {found['keep']} states of each partition kept"
    num_bytes = sum(each.bytes for each in found["partitions"])
    if not any(each.files for each in found["partitions"]):
        line = f"Nothing to remove in {where}."
    elif found["is_deleted"]:
        line = f"Removed {num_bytes:,} bytes from {where}."
    else:
        command = f"corpus states gc --keep {found['keep']} --delete"
        line = f"{num_bytes:,} bytes would go from {where}. `{command}` removes them."
    say(*removed_lines(found), line)


def removed_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line on each source that pipeline.yaml no longer has."""
    for name, size in found["removed_sources"].items():
        line = f"{name!r} is no source of pipeline.yaml any more; {size:,} bytes of it are stored."
        if found["unbuilt_sources"]:
            new = ", ".join(map(repr, found["unbuilt_sources"]))
            line += (
                f" It stays, since {new} was never built and may be its new name: build first, or "
                f"name it: corpus states gc --delete --removed-source {name}"
            )
        elif found["is_deleted"]:
            line += " What no tag, mixture or running build names was removed."
        yield line
