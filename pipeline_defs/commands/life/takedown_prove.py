"""`corpus takedown prove`: search everything that the store has for what takedowns mean."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from assets.raw.taken_down_files import wanted_by
from assets.raw.taken_down_patch_files import forget_patches, patches_meant
from assets.sharded.drawn_files import MIXED, places_of
from assets.stages import STAGES
from pipeline_defs.commands.life.store_search import Search, Seen, spellings
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError
from resources.runs.run_lock import run_lock, this_holder
from resources.store.medium import medium_of
from resources.store.named_states import delete, read_hold, read_tags, tag_path
from resources.store.scratch import place_of
from resources.store.store import Partition
from resources.takedowns import read_takedowns

OUT_OF_SCOPE = (
    "Not searched: your input files and their copies in _downloads; Dagster's records, which have "
    "first rows of tables; copies outside of the store. A tokenizer's merges, a classifier's "
    "weights and hashes in indexes were made of many documents and are no text of one."
)
SHOWN_FILES = 5


@dataclass
class Held:
    """What a state of a partition holds: the manifest's number, None for files of no manifest."""

    partition: Partition
    number: int | None
    is_newest: bool
    files: dict[str, Counter[Seen]] = field(default_factory=dict)


def prove(
    *,
    purge: Annotated[
        bool, Parameter(help="Remove the older states that hold a document, and their files.")
    ] = False,
    tag: Annotated[
        list[str], Parameter(help="With --purge: a tag to delete, whose states then go, too.")
    ] = [],  # noqa: B006  cyclopts reads it
) -> int:
    """Search all states; return 1 if any holds a document of a takedown."""
    corpus = load_corpus()
    check_tags(corpus.store.root, tag, is_purge=purge)
    if not (takedowns := read_takedowns(corpus.store.root)):
        say("No takedown is recorded: `corpus takedown` records one.")
        return 0
    began = time.monotonic()
    with run_lock(corpus.store.root, this_holder("", "corpus takedown prove"), say, time.sleep):
        search = Search(wanted_by(takedowns), spellings(corpus))
        held, num_files = search_store(corpus, search)
        if purge and held:
            purge_states(corpus.store.root, held, tag)
            held, num_files = search_store(corpus, search)
        if purge:
            forget_patches(corpus, search.wanted)
        patches = patches_meant(corpus, search.wanted)
    for line in lines_of(corpus.store.root, held):
        say(line)
    for path in patches:
        say(f"{place_of(path)}: --purge removes the record from the patch")
    seconds = time.monotonic() - began
    num_held = len(held) + len(patches)
    verdict = f"{num_held} states and patches hold" if num_held else "nothing holds"
    say(
        f"{len(takedowns):,} takedowns, {num_files:,} files searched in {seconds:.1f} s: {verdict} "
        "a document, its id or its text."
    )
    say(OUT_OF_SCOPE)
    return 1 if num_held else 0


def search_store(corpus: Corpus, search: Search) -> tuple[list[Held], int]:
    """Search every file of every partition once; return the states that hold something."""
    held, num_files = list[Held](), 0
    for partition in every_partition(corpus):
        names = [name for name in partition.medium.files_below(partition.folder) if name != ".lock"]
        found = found_in(partition, names, search)
        num_files += len(names)
        if found:
            held += states_with(partition, found)
    return [*held, *drawing_mixtures(corpus, held)], num_files


def drawing_mixtures(corpus: Corpus, held: Sequence[Held]) -> Iterator[Held]:
    """Yield the mixtures that draw from files which hold something: these stay for them."""
    files = {each.partition.folder / name for each in held for name in each.files}
    places = files | {path.parent for path in files}
    for phase in every_partition(corpus):
        numbers = phase.manifest_numbers() if phase.stage == MIXED else []
        for number in numbers:
            drawn = places_of(corpus.store, phase.read_manifest(number)) & places
            if drawn:
                names = {
                    path.relative_to(corpus.store.root).as_posix(): Counter({Seen(0, "drawn"): 1})
                    for path in sorted(drawn)
                }
                yield Held(phase, number, number == numbers[-1], names)


def every_partition(corpus: Corpus) -> Iterator[Partition]:
    """Yield all partitions, those without a manifest, too."""
    medium, root = medium_of(corpus.store.root), corpus.store.root
    for stage in medium.names(root):
        if not stage.startswith(("_", ".")):
            for name in medium.names(root / stage):
                yield corpus.store.partition(stage, name)


def found_in(
    partition: Partition, names: Sequence[str], search: Search
) -> dict[str, Counter[Seen]]:
    """Search files of a partition, on all cores; return those with something.

    Links to one file are searched once.
    """

    def look(path: Path) -> Counter[Seen]:
        return search.file(path, partition.stage)

    paths = {name: partition.folder / name for name in names}
    for path in paths.values():
        partition.medium.bring(path)
    inodes = {name: path.stat().st_ino for name, path in paths.items() if path.is_file()}
    alone = {inode: paths[name] for name, inode in inodes.items()}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        seen = dict(zip(alone, pool.map(look, alone.values()), strict=True))
    return {name: seen[inode] for name, inode in inodes.items() if seen[inode]}


def states_with(partition: Partition, found: Mapping[str, Counter[Seen]]) -> Iterator[Held]:
    """Yield the states of a partition that name a file in which something was found."""
    numbers, left = partition.manifest_numbers(), dict(found)
    for number in numbers:
        own = partition.manifest_path(number).relative_to(partition.folder).as_posix()
        named = {*partition.named_by([number]), own}
        if files := {name: seen for name, seen in found.items() if name in named}:
            yield Held(partition, number, number == numbers[-1], files)
            left = {name: seen for name, seen in left.items() if name not in files}
    if left:
        yield Held(partition, None, False, left)


def check_tags(root: Path, names: Sequence[str], *, is_purge: bool) -> None:
    """Raise UsageError for tags that there are not, or that are not to be purged."""
    there = read_tags(root)
    if missing := [name for name in names if name not in there]:
        raise UsageError(
            f"There is no tag {missing[0]!r}; there are: {', '.join(there) or 'none'}."
        )
    if names and not is_purge:
        raise UsageError("--tag goes with --purge, which deletes the tag.")


def purge_states(root: Path, held: Sequence[Held], tags: Sequence[str]) -> None:
    """Remove the older manifests that name something, then every file that no manifest names.

    A state that a source is held in, or that a tag names which is not among `tags`, stays.
    """
    keep = {stage.name: stage.keep for stage in STAGES}
    for each in held:
        if each.number is None or each.is_newest:
            continue
        stage, name = each.partition.stage, each.partition.name
        hold = read_hold(root, name)
        if hold is not None and hold.number(stage) == each.number:
            say(f"{stage}[{name}] manifest {each.number} stays: {hold}. Release it first.")
            continue
        naming = [tag for tag in read_tags(root).values() if tag.number(stage, name) == each.number]
        if others := [tag.name for tag in naming if tag.name not in tags]:
            say(f"{stage}[{name}] manifest {each.number} stays: the tag {others[0]} names it.")
            continue
        for tag in naming:
            delete(tag_path(root, tag.name))
            say(f"The tag {tag.name} is deleted: it named {stage}[{name}] {each.number}.")
        each.partition.medium.remove_all([each.partition.manifest_path(each.number)])
    for partition in {each.partition.folder: each.partition for each in held}.values():
        partition.collect_garbage(len(partition.manifest_numbers()), keep.get(partition.stage))


def step_of(root: Path, each: Held) -> str:
    """Return the command that removes what a state holds."""
    stage, name = each.partition.stage, each.partition.name
    hold = read_hold(root, name)
    if hold is not None and (each.is_newest or hold.number(stage) == each.number):
        return f"corpus rollback {name} --release, corpus build, then --purge"
    if each.number is None:
        return "--purge removes what nothing draws from"
    if each.is_newest:
        return "corpus build makes the next one"
    tags = [tag.name for tag in read_tags(root).values() if tag.number(stage, name) == each.number]
    return " ".join(["--purge", *(f"--tag {tag}" for tag in tags), "removes it"])


def lines_of(root: Path, held: Sequence[Held]) -> Iterator[str]:
    """Yield the states that hold something, with the files and the next step."""
    for each in held:
        place = f"{each.partition.stage}[{each.partition.name}]"
        state = "files that no manifest names" if each.number is None else f"manifest {each.number}"
        newest = ", the newest" if each.is_newest else ""
        yield f"{place} {state}{newest}: {step_of(root, each)}"
        for name, seen in list(each.files.items())[:SHOWN_FILES]:
            kinds = sum((Counter({kind: n}) for (_, kind), n in seen.items()), Counter[str]())
            what = ", ".join(f"{number:,} {kind}" for kind, number in sorted(kinds.items()))
            yield f"  {name}: {what}"
        if len(each.files) > SHOWN_FILES:
            yield f"  and {len(each.files) - SHOWN_FILES:,} more files"


def say(line: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{line}\n")
