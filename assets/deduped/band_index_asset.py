"""band_index: sorted segments of the keys of all sources, and the pairs that share a key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from assets.deduped.deduped_records import (
    BAND_INDEX,
    BandIndexNumbers,
    BandIndexProvenance,
    IndexManifest,
    SignaturesNumbers,
)
from assets.deduped.index.band_index import (
    Entries,
    Segment,
    candidate_pairs,
    merge_runs,
    sorted_pairs,
    unpaired_rows,
)
from assets.deduped.index.index_files import (
    Files,
    KeyFile,
    SegmentFiles,
    entries_of_keys,
    entries_of_rows,
    inherited_pairs,
    live_entries,
    live_rows,
    part_entries,
    read_ledger,
    read_pairs,
    read_runs,
)
from assets.deduped.index.ledger import FileRows, LedgerEntry, SignedPart, continue_ledger
from assets.deduped.signed_files import signed_sources
from corpus_loader.places import stage_names
from resources.absorbed_runs import absorbed_from
from resources.corpus import Corpus
from resources.exchange import ENTRY_BYTES, prefix_bits_for
from resources.made_under import check_made_under, is_made_by
from resources.passes import Earlier, Pass, derive_task, in_passes
from resources.stage import Metadata, Outlook, Stage
from resources.store.mapped_files import map_array
from resources.store.published import copied_ahead
from resources.store.records import Manifest, PartRecord, Stats, numbers_of, required_file
from resources.store.store import published_file
from resources.takedowns import read_takedowns, takedowns_by_source, task_name
from resources.tasks import GLOBAL, Plan, Task, tasks_of

UNPAIRED = "refs"  # kind of the file with the rows that lost the row that they were paired with


@dataclass(frozen=True)
class SearchInputs:
    """Inputs of the search for unpaired rows: all pairs, and the live parts, bool by number."""

    is_live: NDArray[np.bool_]
    pairs: Files


@dataclass(frozen=True)
class PrefixInputs:
    """Inputs of one file of the new segment: of all of them, the keys with one prefix.

    `search` finds the rows of `kept` parts that lost the row that they were paired with.
    """

    is_live: NDArray[np.bool_]
    prefix: int
    prefix_bits: int
    added: Sequence[KeyFile]
    kept: Sequence[KeyFile]
    staying: Sequence[SegmentFiles]
    absorbed: Sequence[SegmentFiles]
    absorbed_pairs: Sequence[SegmentFiles]
    search: Task[SearchInputs] | None

    @property
    def place(self) -> tuple[int, int]:
        """The prefix and its number of bits."""
        return self.prefix, self.prefix_bits


def find_unpaired(task: Task[SearchInputs]) -> list[PartRecord]:
    """Find the rows that were paired with a row that is gone: they look for another."""
    empty = np.empty(0, np.uint64)
    row_ids = [
        unpaired_rows(read_pairs(file, rows), task.payload.is_live)
        for file, rows in task.payload.pairs
    ]
    unpaired = np.unique(np.concatenate([empty, *row_ids]))
    writer = task.writer()
    writer.write_arrays(UNPAIRED, unpaired)
    return [writer.publish(Stats(len(unpaired), len(unpaired)))]


def index_prefix(task: Task[PrefixInputs]) -> list[PartRecord]:
    """Build one file of a segment, and find the pairs of the rows that look for one."""
    inputs, place, is_live = task.payload, task.payload.place, task.payload.is_live
    keys = zip(inputs.added, copied_ahead([part.file for part in inputs.added]), strict=True)
    added = merge_runs((part_entries(part, *place) for part, _ in keys), inputs.prefix_bits)
    absorbed = [live_entries(run, is_live) for run in read_runs(inputs.absorbed, *place)]
    merged = merge_runs([*absorbed, added], inputs.prefix_bits) if absorbed else added
    pairs = [live_rows(p, is_live) for p in inherited_pairs(inputs.absorbed_pairs, *place)]
    for wanted in (added, *unpaired_of(inputs)):
        staying = entries_of_keys(inputs.staying, wanted[0], *place)
        pairs.append(candidate_pairs(wanted, [*staying, merged], is_live))
    all_pairs = sorted_pairs(np.concatenate(pairs)) if len(pairs) > 1 else pairs[0]
    writer = task.writer()
    writer.write_arrays("entries", *merged)
    writer.write_arrays("pairs", all_pairs)
    num_keys = len(merged[0])
    return [writer.publish(Stats(num_keys, num_keys, numbers=BandIndexNumbers(len(all_pairs))))]


def unpaired_of(inputs: PrefixInputs) -> Iterator[Entries]:
    """Yield the keys with the prefix of the rows that the search found, part by part."""
    if inputs.search is not None:
        file, count = inputs.search.published_file(UNPAIRED)
        row_ids = map_array(file.checked(), np.uint64, (count,))
        yield from entries_of_rows(row_ids, inputs.kept, *inputs.place)


@dataclass(frozen=True)
class Index:
    """The index as the last run left it; without segments if it cannot be continued."""

    ledger: list[LedgerEntry]
    segments: list[Segment]
    tasks: dict[Segment, list[Task]]
    next_id: int
    fingerprint: str

    def files(self, segments: Sequence[Segment], kind: str) -> list[SegmentFiles]:
        """Return the files of a kind of some segments, in the order of their prefixes."""
        return [
            (
                segment.prefix_bits,
                [
                    (published_file(task.folder.folder / file.path, file), file.rows)
                    for task in self.tasks[segment]
                    for record in task.published() or []
                    if (file := record.file(kind)) is not None
                ],
            )
            for segment in segments
        ]


@dataclass(frozen=True)
class Update:
    """A change of the index: the ledger's kept and added entries, and their keys by entry id."""

    index: Index
    kept: list[LedgerEntry]
    added: list[LedgerEntry]
    keys: dict[int, KeyFile]

    @property
    def ledger(self) -> list[LedgerEntry]:
        """The new ledger."""
        return self.kept + self.added

    @property
    def next_id(self) -> int:
        """The id of the next part that is added."""
        return self.index.next_id + len(self.added)

    @property
    def has_removals(self) -> bool:
        """True if a part of the old ledger is gone."""
        return len(self.kept) < len(self.index.ledger)

    def num_keys(self, first: int, stop: int) -> int:
        """Count the keys of live parts with ids from `first` up to `stop`."""
        return sum(file.count for number, file in self.keys.items() if first <= number < stop)

    def is_live(self) -> NDArray[np.bool_]:
        """Mark the parts of the new ledger, bool [next_id]."""
        is_live = np.zeros(self.next_id, np.bool_)
        is_live[list(self.keys)] = True
        return is_live


def plan_index(corpus: Corpus, partition: str) -> Plan:
    """Plan one task per file of a segment; those of segments that stay are published already."""
    config = corpus.settings.dedup.signing()
    sources = signed_sources(corpus)
    signed = sources.manifests
    for manifest in signed:
        check_made_under(manifest, config=config, section="dedup")
    index = read_index(corpus, partition, config)
    update = plan_update(corpus, index, signed)
    if update.added or update.kept != index.ledger:
        segments, tasks = plan_segments(corpus, update)
    else:
        segments, tasks = index.segments, tasks_of_segments(index, index.segments)
    provenance = BandIndexProvenance(
        ledger=update.ledger,
        next_id=update.next_id,
        segments=segments,
        signatures=sources.fingerprints,
    )
    return Plan(tasks, config, provenance, sources.left_out)


def read_index(corpus: Corpus, partition: str, config: dict[str, Any]) -> Index:
    """Read the newest index; only its ledger if it has other keys or has lost a file."""
    manifest = corpus.store.newest_or_none(BAND_INDEX, partition)
    if manifest is None:
        return Index([], [], {}, 0, "")
    newest = manifest.provenance
    place = corpus.store.root, manifest.stage, manifest.partition
    tasks: dict[Segment, list[Task]] = {
        segment: [
            Task(*place, part.name, part.fingerprint, work_bytes=0, payload=None)
            for part in manifest.parts
            if part.name.startswith(segment_name(segment))
        ]
        for segment in newest.segments
    }
    index = Index(newest.ledger, newest.segments, tasks, newest.next_id, manifest.fingerprint)
    is_whole = all(task.published() for task in tasks_of_segments(index, index.segments))
    if is_whole and is_made_by(manifest, BAND_INDEX, config):
        return index
    unknown = [msgspec.structs.replace(entry, fingerprint="") for entry in newest.ledger]
    return Index(unknown, [], {}, newest.next_id, "")


def segment_name(segment: Segment) -> str:
    """Return what the names of a segment's files begin with."""
    return f"{segment.first:08d}-{segment.stop:08d}-"


def tasks_of_segments(index: Index, segments: Sequence[Segment]) -> list[Task]:
    """Return the tasks of some segments of the index, in order."""
    return [task for segment in segments for task in index.tasks[segment]]


def plan_update(corpus: Corpus, index: Index, signed: Sequence[Manifest[Any, Any]]) -> Update:
    """Continue the ledger of the index with the parts that are signed now."""
    parts = {(m.partition, part.name): (m, part) for m in signed for part in m.parts}
    signed_parts = [
        SignedPart(*key, part.fingerprint, part.stats.rows_kept, files_in(part))
        for key, (_, part) in parts.items()
    ]
    kept, added = continue_ledger(index.ledger, signed_parts, read_ledger(corpus), index.next_id)
    keys = {}
    for entry in kept + added:
        manifest, part = parts[entry.key]
        file = required_file(manifest, part, "keys")
        keys[entry.id] = KeyFile(entry.id, corpus.store.file_of(manifest, file), file.rows)
    return Update(index, kept, added, keys)


def files_in(part: PartRecord[Any]) -> FileRows:
    """Return the files of a signed part, none if an earlier version signed it."""
    numbers = numbers_of(part, SignaturesNumbers)
    if numbers.files is UNSET or numbers.file_stops is UNSET:
        return ()
    return tuple(zip(numbers.files, numbers.file_stops, strict=True))


def plan_segments(corpus: Corpus, update: Update) -> tuple[list[Segment], list[Task]]:
    """Plan a segment of the added keys and of the segments that it absorbs.

    Returns all segments of the new index, and their tasks.
    """
    index = update.index
    sizes = [update.num_keys(segment.first, segment.stop) for segment in index.segments]
    num_added = update.num_keys(index.next_id, update.next_id)
    num_staying = min(absorbed_from(sizes, num_added), first_to_clean(corpus, update, sizes))
    staying, absorbed = index.segments[:num_staying], index.segments[num_staying:]
    num_keys = num_added + sum(sizes[num_staying:])
    segment = Segment(
        first=absorbed[0].first if absorbed else index.next_id,
        stop=update.next_id,
        prefix_bits=prefix_bits_for(num_keys * ENTRY_BYTES, corpus.settings.dedup.memory_bytes),
        entries=num_keys,
    )
    tasks = segment_tasks(corpus, update, segment, (staying, absorbed))
    return [*staying, segment], tasks_of_segments(index, staying) + tasks


def first_to_clean(corpus: Corpus, update: Update, sizes: Sequence[int]) -> int:
    """Return the first segment with keys of parts that are gone, if a takedown removes a part.

    Else their number: elsewhere such keys stay until their segment is absorbed.
    """
    live = {entry.id for entry in update.kept}
    gone = [entry for entry in update.index.ledger if entry.id not in live]
    named = takedowns_by_source(read_takedowns(corpus.store.root))
    if not any((entry.source, task_name(entry.part)) in named for entry in gone):
        return len(sizes)
    places = enumerate(zip(update.index.segments, sizes, strict=True))
    return next((i for i, (each, size) in places if size < each.entries), len(sizes))


def segment_tasks(
    corpus: Corpus,
    update: Update,
    segment: Segment,
    others: tuple[Sequence[Segment], Sequence[Segment]],
) -> list[Task[PrefixInputs]]:
    """Make the tasks of a new segment; `others` are the staying and the absorbed segments."""
    index, (staying, absorbed), bits = update.index, others, segment.prefix_bits
    search = search_task(corpus, update, segment)
    shared = PrefixInputs(
        is_live=search.payload.is_live,
        prefix=0,
        prefix_bits=bits,
        added=[update.keys[entry.id] for entry in update.added],
        kept=[update.keys[entry.id] for entry in update.kept],
        staying=index.files(staying, "entries"),
        absorbed=index.files(absorbed, "entries"),
        absorbed_pairs=index.files(absorbed, "pairs"),
        search=search if update.has_removals and index.segments else None,
    )
    return [
        derive_task(
            search,
            f"{segment_name(segment)}{prefix:04d}",
            [prefix],
            replace(shared, prefix=prefix),
        )
        for prefix in range(1 << bits)
    ]


def search_task(corpus: Corpus, update: Update, segment: Segment) -> Task[SearchInputs]:
    """Make the task that finds unpaired rows; it is made of all that a new segment is made of."""
    index, bits = update.index, segment.prefix_bits
    pairs = [file for _, files in index.files(index.segments, "pairs") for file in files]
    return tasks_of(corpus, BAND_INDEX, GLOBAL).task(
        "unpaired",
        (
            corpus.settings.dedup.signing(),
            index.fingerprint,
            msgspec.to_builtins(update.ledger),
            bits,
        ),
        SearchInputs(update.is_live(), pairs),
        work_bytes=segment.entries * 16 >> bits,
    )


def plan_search(_: Corpus, tasks: list[Task], __: Earlier) -> list[Task[SearchInputs]]:
    """Plan the search for unpaired rows, if there are any; all missing tasks name the same one."""
    missing: Iterator[Task[PrefixInputs]] = (task for task in tasks if task.published() is None)
    searches = [task.payload.search for task in missing]
    return [search for search in searches[:1] if search is not None]


def describe_index(_: Corpus, manifest: IndexManifest) -> Metadata:
    """Describe the size of the index."""
    ledger = manifest.provenance.ledger
    return {
        "segments": len(manifest.provenance.segments),
        "documents": sum(entry.rows for entry in ledger),
        "generations": max((g for entry in ledger for _, g in entry.generations), default=0),
        "index_bytes": sum(file.bytes for part in manifest.parts for file in part.files),
    }


STAGE = Stage(
    *BAND_INDEX.fields(),
    description="Sorted segments of all keys, cut by hash prefix, and the candidate pairs found "
    "in them.",
    group="deduplicate",
    partitions="none",
    after=(stage_names.SIGNATURES,),
    outlook=Outlook("new", cpu_per_mb=0.0004),
    kinds=frozenset({"numba"}),
    settings=lambda settings: [settings.dedup.signing(), settings.dedup.ledger],
    plan=plan_index,
    work=index_prefix,
    run=in_passes(
        Pass(find_unpaired, plan_search, shares_memory=True, is_kept=False),
        Pass(index_prefix, shares_memory=True),
    ),
    describe=describe_index,
)
