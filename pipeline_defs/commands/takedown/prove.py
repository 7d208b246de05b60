"""`corpus takedown prove`: search everything that the store has for what takedowns mean."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import polars as pl
from cyclopts import Parameter

from assets.raw.raw_records import RAW
from assets.raw.taken_down_files import forget_patches, patches_meant
from assets.sharded.pinned_shards import places_of
from assets.stages import STAGES
from assets.text.takedown_files import Wanted, wanted_by
from corpus_loader.places.stage_names import MIXED, SOURCE_STAGES
from pipeline_defs.commands.answers import answer_lines
from pipeline_defs.commands.takedown.find import filtered_parts, hits_in, on_all_cores, raw_parts
from pipeline_defs.commands.takedown.store_search import Search, Seen, spellings
from pipeline_defs.commands.terminal import Json, alone_on, one_line, say, warn
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.dagster_home import records_folder
from resources.errors import UsageError
from resources.store.inventory import TABLES, StoredFile, remove_stored, stored_files
from resources.store.medium import medium_of
from resources.store.named_states import delete, read_rollback, read_tags, tag_path
from resources.store.scratch import place_of
from resources.store.store import Partition, part_stem
from resources.takedowns import Takedown, forbidden_documents, read_takedowns

OUT_OF_SCOPE = (
    "Not searched: your input files and their copies in _downloads; Dagster's records by earlier "
    "versions, which have first rows of tables; copies outside of the store. A tokenizer's merges, "
    "a classifier's weights and hashes in indexes were made of many documents, and are no text of "
    "one."
)
SHOWN_FILES = 5
DRAWN = "drawn"  # by a mixture, from a file that holds something
KINDS = pl.List(pl.Struct({"kind": pl.String, "number": pl.Int64}))
PLACE: dict[str, Any] = dict.fromkeys(("stage", "partition"), pl.String)
NUMBER: dict[str, Any] = {"manifest": pl.Int64, "is_newest": pl.Boolean, "next_step": pl.String}
HELD = PLACE | NUMBER | {"file": pl.String, "found": KINDS}
DOCUMENT: dict[str, Any] = dict.fromkeys(("document", "url"), pl.String)
REQUEST = {"takedown": pl.Int64, "reason": pl.String}
REMAINING = DOCUMENT | REQUEST | {"places": pl.List(pl.String)}
ACCEPTED = DOCUMENT | {"passages": pl.Int64, "takedowns": pl.List(pl.Int64)}
BESIDE: dict[str, Any] = dict.fromkeys(("file", "next_step"), pl.String)
Accepted = dict[str, set[bytes]]  # digests of passages by doc_id


@dataclass
class Held:
    """Finds in a state of a partition: the manifest's number is None for files of no manifest."""

    partition: Partition
    number: int | None
    is_newest: bool
    files: dict[str, Counter[Seen]]


def prove(
    *,
    purge: Annotated[
        bool, Parameter(help="Remove the older states that hold a document, and their files.")
    ] = False,
    tag: Annotated[
        list[str], Parameter(help="With --purge: a tag to delete, whose states then go, too.")
    ] = [],  # noqa: B006  cyclopts reads it
    json: Json = False,
) -> int:
    """Search all states; return 1 if any holds what a takedown means and is not accepted."""
    corpus = load_corpus()
    check_tags(corpus.store.root, tag, is_purge=purge)
    if not (takedowns := read_takedowns(corpus.store.root)):
        nothing = "No takedown is recorded: `corpus takedown` records one."
        answer_lines([nothing], {"takedowns": 0}, json=json)
        return 0
    with alone_on(corpus.store.root, "corpus takedown prove"):
        placed = reversed([*enumerate(takedowns)])  # of a URL or domain in many the first counts
        owners = {key: place for place, t in placed for key in (*t.addresses, *t.domains)}
        corpus.store.remove_temporaries()
        search = Search(wanted_by(takedowns), spellings(corpus), owners)
        accepted = accepted_documents(corpus, search.wanted)
        began = time.monotonic()
        held, num_files = search_store(corpus, search, accepted)
        if purge and held:
            for line in purge_states(corpus.store.root, held, tag):
                (warn if json else say)(line)
            held, num_files = search_store(corpus, search, accepted)
        beside = [*beside_stages(corpus, search, accepted, is_purge=purge)]
    told: dict[str, Any] = {
        "takedowns": len(takedowns),
        "files": num_files,
        "seconds": time.monotonic() - began,
        "states": len(held),
        "held": pl.DataFrame([*held_rows(corpus, held)], HELD, orient="row"),
        "remaining": pl.DataFrame(
            [*remaining_rows(search, takedowns, held)], REMAINING, orient="row"
        ),
        "accepted": pl.DataFrame([*accepted_rows(search, accepted)], ACCEPTED, orient="row"),
        "beside_stages": pl.DataFrame(beside, BESIDE, orient="row"),
        "out_of_scope": OUT_OF_SCOPE,
    }
    answer_lines(lines_of(**told), told, json=json)
    return 1 if held or beside else 0


def beside_stages(
    corpus: Corpus, search: Search, accepted: Accepted, *, is_purge: bool
) -> Iterator[tuple[str, str]]:
    """Yield files beside the stages with something that is not accepted, or purge it."""
    root, held = corpus.store.root, list[StoredFile]()
    for each in stored_files(root, records_folder(root)):
        is_table = each.name.startswith(TABLES)  # searched with the stages
        if each.text in ("remade", "left", None) and not is_table:
            medium_of(each.path.parent).bring(each.path)
            if not_accepted(search.file(each.path, ""), accepted):
                held.append(each)
    if is_purge:
        forget_patches(corpus, search.wanted)
        remove_stored(root, [each.path for each in held if each.declared])
        held = [each for each in held if each.declared is None]
    for path in patches_meant(corpus, search.wanted):
        yield place_of(path), "--purge removes the record from the patch"
    for each in held:
        step = "--purge removes it" if each.declared else "no command writes such a file: remove it"
        yield place_of(each.path), step


def search_store(corpus: Corpus, search: Search, accepted: Accepted) -> tuple[list[Held], int]:
    """Search every file of every partition once; return the states that hold something.

    That is not of accepted documents alone; and the mixtures that draw from these states.
    """
    held, num_files = list[Held](), 0
    for partition in every_partition(corpus):
        names = [name for name in partition.medium.files_below(partition.folder) if name != ".lock"]
        found = found_in(partition, names, search)
        num_files += len(names)
        left = {name: not_accepted(seen, accepted) for name, seen in found.items()}
        held += states_with(partition, {name: seen for name, seen in left.items() if seen})
    return [*held, *drawing_mixtures(corpus, held)], num_files


def accepted_documents(corpus: Corpus, wanted: Wanted) -> Accepted:
    """Return the documents that stay, by today's states of `raw`, though they have passages.

    No request means them: they are near copies of which no removal was asked, or quote too little.
    """
    manifests = (
        corpus.store.newest_or_none(RAW.name, name) for name in corpus.settings.source_names()
    )
    stems = {
        (manifest.partition, part_stem(part.name, part.fingerprint))
        for manifest in manifests
        if manifest and forbidden_documents(corpus.store, manifest) is None
        for part in manifest.parts
    }
    parts = [
        each for each in raw_parts(corpus) if {(each.source, stem) for stem in each.stems} & stems
    ]
    parts += [each for each in filtered_parts(corpus.store, parts) if each.stems]
    hits = on_all_cores(partial(hits_in, wanted=wanted), parts)
    accepted: Accepted = {}
    for within in (each.within for each in hits):
        for doc_id, digests in zip(within["doc_id"], within["passages"], strict=True):
            passages = {each for each in digests if each in wanted.passages.owners}
            is_meant = wanted.copies.owners_among(passages) or wanted.runs.owners_among(digests)
            if passages and not is_meant:
                accepted.setdefault(doc_id, set()).update(passages)
    return accepted


def not_accepted(found: Counter[Seen], accepted: Accepted) -> Counter[Seen]:
    """Leave out what is of accepted documents."""
    if not found:
        return found
    digests = frozenset[bytes]().union(*accepted.values())

    def is_accepted(seen: Seen) -> bool:
        if seen.kind != "passage":
            return False
        return seen.document in accepted if seen.document else seen.digest in digests

    return Counter({seen: number for seen, number in found.items() if not is_accepted(seen)})


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
                    path.relative_to(corpus.store.root).as_posix(): Counter({Seen(-1, DRAWN): 1})
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
    paths = {name: partition.folder / name for name in names}
    for path in paths.values():
        partition.medium.bring(path)
    inodes = {name: path.stat().st_ino for name, path in paths.items() if path.is_file()}
    alone = {inode: paths[name] for name, inode in inodes.items()}
    found = on_all_cores(partial(search.file, stage=partition.stage), [*alone.values()])
    seen = dict(zip(alone, found, strict=True))
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


def purge_states(root: Path, held: Sequence[Held], tags: Sequence[str]) -> Iterator[str]:
    """Remove the older manifests that name something, then every file that no manifest names.

    A state that a source is held in, or that a tag names which is not among `tags`, stays. Yield
    lines on these, and on deleted tags.
    """
    keep = {stage.name: stage.keep for stage in STAGES}
    for each in held:
        if each.number is None or each.is_newest:
            continue
        stage, name = each.partition.stage, each.partition.name
        hold = read_rollback(root, name)
        if hold is not None and hold.number(stage) == each.number:
            yield f"{stage}[{name}] manifest {each.number} stays: {hold}. Release it first."
            continue
        naming = [tag for tag in read_tags(root).values() if tag.number(stage, name) == each.number]
        if others := [tag.name for tag in naming if tag.name not in tags]:
            yield f"{stage}[{name}] manifest {each.number} stays: the tag {others[0]} names it."
            continue
        for tag in naming:
            delete(tag_path(root, tag.name))
            yield f"The tag {tag.name} is deleted: it named {stage}[{name}] {each.number}."
        each.partition.medium.remove_all([each.partition.manifest_path(each.number)])
    for partition in {each.partition.folder: each.partition for each in held}.values():
        partition.collect_garbage(len(partition.manifest_numbers()), keep.get(partition.stage))


def step_of(corpus: Corpus, each: Held) -> str:
    """Return the command that removes what a state holds."""
    stage, name, root = each.partition.stage, each.partition.name, corpus.store.root
    if stage in SOURCE_STAGES and name not in corpus.settings.source_names():
        return "`corpus states gc --delete` removes it: pipeline.yaml has no such source"
    hold = read_rollback(root, name)
    if hold is not None and (each.is_newest or hold.number(stage) == each.number):
        return f"corpus states rollback {name} --release, corpus build, then --purge"
    if each.number is None:
        return "--purge removes what nothing draws from"
    if each.is_newest:
        return "corpus build makes the next one"
    tags = [tag.name for tag in read_tags(root).values() if tag.number(stage, name) == each.number]
    return " ".join(["--purge", *(f"--tag {tag}" for tag in tags), "removes it"])


def held_rows(corpus: Corpus, held: Sequence[Held]) -> Iterator[tuple[Any, ...]]:
    """Yield a row of HELD for each file of the states that hold something."""
    for each in held:
        place = each.partition.stage, each.partition.name, each.number, each.is_newest
        step = step_of(corpus, each)
        for name, seen in each.files.items():
            kinds = sum((Counter({one.kind: n}) for one, n in seen.items()), Counter[str]())
            found = [{"kind": kind, "number": number} for kind, number in sorted(kinds.items())]
            yield *place, step, name, found


def remaining_rows(
    search: Search, takedowns: Sequence[Takedown], held: Sequence[Held]
) -> Iterator[tuple[Any, ...]]:
    """Yield a row of REMAINING for every document that remains, with its request and the places.

    What no row of a table tells is of the documents that have the same text elsewhere.
    """
    seen = [(each, one) for each in held for counts in each.files.values() for one in counts]
    known: dict[bytes, set[str]] = {}
    for _, one in seen:
        if one.document:
            known.setdefault(one.digest, set()).add(one.document)
    places: dict[tuple[int, str], dict[str, None]] = {}
    for each, one in seen:
        if one.kind == DRAWN:
            continue
        for document in known.get(one.digest, {""}) if not one.document else {one.document}:
            key = one.takedown, document
            places.setdefault(key, {})[f"{each.partition.stage}[{each.partition.name}]"] = None
    named = {place for place, document in places if document}
    for (place, document), where in sorted(places.items()):
        if document or place not in named:
            reason = one_line(takedowns[place].reason)
            url = one_line(search.urls.get(document, ""))
            yield document, url, place + 1, reason, [*where]


def accepted_rows(search: Search, accepted: Accepted) -> Iterator[tuple[Any, ...]]:
    """Yield a row of ACCEPTED for every document that stays on purpose."""
    for doc_id, digests in sorted(accepted.items()):
        owners = sorted({search.wanted.passages.owners[digest] + 1 for digest in digests})
        yield doc_id, one_line(search.urls.get(doc_id, "")), len(digests), owners


def lines_of(held: pl.DataFrame, remaining: pl.DataFrame, **told: Any) -> Iterator[str]:
    """Yield the states and documents that are still there, what stays on purpose, and the sums."""
    for (stage, name, number, is_newest, step), files in held.group_by(
        *PLACE, *NUMBER, maintain_order=True
    ):
        state = "files that no manifest names" if number is None else f"manifest {number}"
        yield f"{stage}[{name}] {state}{', the newest' if is_newest else ''}: {step}"
        for file, found in files.select("file", "found").head(SHOWN_FILES).iter_rows():
            yield f"  {file}: {', '.join('{number:,} {kind}'.format(**each) for each in found)}"
        if files.height > SHOWN_FILES:
            yield f"  and {files.height - SHOWN_FILES:,} more files"
    for document, url, takedown, reason, places in remaining.iter_rows():
        what = f"Document {with_url(document, url)}" if document else "Something"
        yield f"{what} of takedown {takedown} ({reason}) remains in {', '.join(places)}."
    for document, url, passages, takedowns in told["accepted"].iter_rows():
        yield (
            f"Stays on purpose: document {with_url(document, url)} has {passages:,} passages of "
            f"takedown {', '.join(map(str, takedowns))}. `corpus takedown --doc {document} "
            "--reason ...` removes it, too."
        )
    beside = told["beside_stages"]
    yield from (f"{file}: {step}" for file, step in beside.iter_rows())
    num_held = told["states"] + beside.height
    verdict = f"{num_held} states and files hold" if num_held else "nothing holds"
    but = "" if told["accepted"].is_empty() else ", but what stays on purpose"
    yield (
        f"{told['takedowns']:,} takedowns, {told['files']:,} files searched in "
        f"{told['seconds']:.1f} s: {verdict} a document, its id or its text{but}."
    )
    yield told["out_of_scope"]


def with_url(document: str, url: str) -> str:
    """Return a document with its URL, if it has one."""
    return f"{document} ({url})" if url else document
