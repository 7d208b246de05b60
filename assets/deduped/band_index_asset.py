"""band_index: all keys of all sources in sorted segments on disk, and the pairs that share one."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np

from assets.deduped.index.band_index import (
    Segment,
    absorbed_from,
    bereft,
    candidate_pairs,
    merge_runs,
    sorted_pairs,
)
from assets.deduped.index.hash_prefixes import prefix_bits_for
from assets.deduped.index.index_files import (
    Files,
    KeyFile,
    entries_of,
    inherited_pairs,
    live_entries,
    live_rows,
    part_entries,
    read_pairs,
    read_runs,
)
from assets.deduped.index.ledger import LedgerEntry, Order, SignedPart, continue_ledger, read_order
from assets.deduped.signatures_asset import SIGNATURES
from resources.corpus import Corpus
from resources.stage import Stage
from resources.store.disk import map_array
from resources.store.records import Manifest, PartRecord, Stats, fingerprint_of, required_file
from resources.store.store import StoreError
from resources.tasks import GLOBAL, Outcome, Plan, Task, Work, run_tasks, within_memory


@dataclass(frozen=True)
class Index:
    """The index as the last run left it; without segments if it cannot be continued."""

    ledger: list[LedgerEntry]
    segments: list[Segment]
    tasks: dict[Segment, list[Task]]
    next_id: int
    fingerprint: str

    def files(self, segment: Segment, kind: str) -> Files:
        """The segment's files of a kind, in the order of their prefixes."""
        return [
            (task.folder.folder / file.path, file.rows)
            for task in self.tasks[segment]
            for record in task.published() or []
            if (file := record.file(kind)) is not None
        ]


def plan_index(corpus: Corpus, partition: str) -> Plan:
    """One task per file of a segment; those of segments that stay are published already."""
    dump = corpus.settings.dedup.signing()
    manifests = [corpus.store.newest("signatures", s) for s in corpus.settings.source_names()]
    signed = {(m.partition, part.name): (m, part) for m in manifests for part in m.parts}
    for manifest in manifests:
        if manifest.config != dump:
            raise StoreError(
                f"signatures[{manifest.partition}] were made under another `dedup` config than "
                f"pipeline.yaml's. Materialize `signatures` for {manifest.partition!r} first."
            )
    index = read_index(corpus, partition, dump)
    parts = [
        SignedPart(*k, part.fingerprint, part.stats.rows_kept) for k, (_, part) in signed.items()
    ]
    kept, added = continue_ledger(index.ledger, parts, exported_order(corpus), index.next_id)
    ledger = kept + added
    keys = {entry.id: key_file(corpus, entry.id, *signed[entry.key]) for entry in ledger}
    is_same = not added and kept == index.ledger
    segments, tasks = (
        (index.segments, [task for s in index.segments for task in index.tasks[s]])
        if is_same
        else plan_segments(corpus, index, (kept, added), keys)
    )
    about = {
        "ledger": msgspec.to_builtins(ledger),
        "segments": [segment.model_dump() for segment in segments],
        "next_id": index.next_id + len(added),
        "signatures": [manifest.fingerprint for manifest in manifests],
    }
    return Plan(tasks, dump, about)


def read_index(corpus: Corpus, partition: str, dump: dict[str, Any]) -> Index:
    """What the newest manifest says; of an index of other keys or with a lost file the ledger."""
    manifest = corpus.store.partition(BAND_INDEX.name, partition).newest_manifest()
    if manifest is None:
        return Index([], [], {}, 0, "")
    ledger = msgspec.convert(manifest.provenance["ledger"], list[LedgerEntry])
    next_id = manifest.provenance["next_id"]
    segments = [Segment.model_validate(segment) for segment in manifest.provenance["segments"]]
    tasks = {
        segment: [
            published_task(corpus, manifest, part)
            for part in manifest.parts
            if part.name.startswith(segment_name(segment))
        ]
        for segment in segments
    }
    is_whole = all(task.published() is not None for each in tasks.values() for task in each)
    if is_whole and manifest.config == dump and manifest.code_version == BAND_INDEX.code_version:
        return Index(ledger, segments, tasks, next_id, manifest.fingerprint)
    unknown = [msgspec.structs.replace(entry, fingerprint="") for entry in ledger]
    return Index(unknown, [], {}, next_id, "")


def published_task(corpus: Corpus, manifest: Manifest, part: PartRecord) -> Task:
    """The task whose outcome a manifest names."""
    return Task(
        corpus.store.root, manifest.stage, manifest.partition, part.name, part.fingerprint, 0
    )


def segment_name(segment: Segment) -> str:
    """What the names of a segment's files begin with."""
    return f"{segment.first:08d}-{segment.stop:08d}-"


def exported_order(corpus: Corpus) -> Order:
    """The ingest order that `dedup.ledger` names."""
    name = corpus.settings.dedup.ledger
    return {} if name is None else read_order(name, (corpus.config.parent / name).read_bytes())


def key_file(corpus: Corpus, number: int, manifest: Manifest, part: PartRecord) -> KeyFile:
    """Where the keys of a signed part lie."""
    file = required_file(manifest, part, "keys")
    return KeyFile(number, corpus.store.path_of(manifest, file), file.rows)


def plan_segments(
    corpus: Corpus,
    index: Index,
    ledger: tuple[list[LedgerEntry], list[LedgerEntry]],
    keys: dict[int, KeyFile],
) -> tuple[list[Segment], list[Task]]:
    """The segments with what was added and without what is gone, and the tasks of all of them."""
    kept, added = ledger
    next_id = index.next_id + len(added)
    live = {number: file.count for number, file in keys.items()}
    sizes = [
        sum(n for number, n in live.items() if s.first <= number < s.stop) for s in index.segments
    ]
    staying = absorbed_from(sizes, sum(live[entry.id] for entry in added))
    stay, absorbed = index.segments[:staying], index.segments[staying:]
    total = sum(live[entry.id] for entry in added) + sum(sizes[staying:])
    bits = prefix_bits_for(total, corpus.settings.dedup.memory_bytes)
    first = absorbed[0].first if absorbed else index.next_id
    new = Segment(first=first, stop=next_id, prefix_bits=bits, entries=total)
    is_live = np.zeros(next_id, np.bool_)
    is_live[list(live)] = True
    all_pairs = [file for s in index.segments for file in index.files(s, "pairs")]
    has_lost = len(kept) < len(index.ledger) and bool(index.segments)
    template = Task(
        root=corpus.store.root,
        stage=BAND_INDEX.name,
        partition=GLOBAL,
        name="bereft",
        fingerprint=fingerprint_of(
            BAND_INDEX.name,
            BAND_INDEX.code_version,
            corpus.settings.dedup.signing(),
            index.fingerprint,
            msgspec.to_builtins(kept + added),
            bits,
        ),
        work_bytes=total * 16 >> bits,
        payload={
            "is_live": is_live,
            "pairs": all_pairs,
            "parts": [keys[entry.id] for entry in kept],
        },
    )
    spec = {
        "is_live": is_live,
        "prefix_bits": bits,
        "parts": [keys[entry.id] for entry in added],
        "others": [(s.prefix_bits, index.files(s, "entries")) for s in stay],
        "absorbed": [(s.prefix_bits, index.files(s, "entries")) for s in absorbed],
        "pairs": [(s.prefix_bits, index.files(s, "pairs")) for s in absorbed],
        "bereft": template if has_lost else None,
    }
    tasks = [task for s in stay for task in index.tasks[s]]
    tasks += [
        replace(
            template,
            name=f"{segment_name(new)}{prefix:04d}",
            fingerprint=fingerprint_of(template.fingerprint, prefix),
            payload={**spec, "prefix": prefix},
        )
        for prefix in range(1 << bits)
    ]
    return [*stay, new], tasks


def run_index(corpus: Corpus, tasks: list[Task], work: Work) -> list[Outcome]:
    """Build the missing files; before, find the documents that lost one they were paired with."""
    bounded = within_memory(corpus)
    missing = [task for task in tasks if task.published() is None]
    searches = [
        task.payload["bereft"] for task in missing[:1] if task.payload["bereft"] is not None
    ]
    run_tasks(bounded, searches, find_bereft)
    return run_tasks(bounded, tasks, work)


def find_bereft(task: Task) -> list[PartRecord]:
    """The documents that were paired with one that is gone: they look for another."""
    is_live = task.payload["is_live"]
    empty = np.empty(0, np.uint64)
    found = [bereft(read_pairs(path, rows), is_live) for path, rows in task.payload["pairs"]]
    refs = np.unique(np.concatenate([empty, *found]))
    writer = task.writer()
    writer.write_arrays("refs", refs)
    return [writer.publish(Stats(len(refs), len(refs)))]


def index_prefix(task: Task) -> list[PartRecord]:
    """Build one file of a segment and find the pairs that its new documents are in."""
    spec, is_live = task.payload, task.payload["is_live"]
    place = spec["prefix"], spec["prefix_bits"]
    new = merge_runs((part_entries(part, *place) for part in spec["parts"]), place[1])
    absorbed = [live_entries(run, is_live) for run in read_runs(spec["absorbed"], *place)]
    run = merge_runs([*absorbed, new], place[1]) if absorbed else new
    runs = [*read_runs(spec["others"], *place), run]
    pairs = [live_rows(p, is_live) for p in inherited_pairs(spec["pairs"], *place)]
    pairs.append(candidate_pairs(new, runs, is_live))
    if spec["bereft"] is not None:
        path, count = spec["bereft"].published_file("refs")
        refs = map_array(path, np.uint64, (count,))
        looking = entries_of(refs, spec["bereft"].payload["parts"], *place)
        pairs += [candidate_pairs(wanted, runs, is_live) for wanted in looking]
    writer = task.writer()
    found = sorted_pairs(np.concatenate(pairs)) if len(pairs) > 1 else pairs[0]
    writer.write_arrays("entries", *run)
    writer.write_arrays("pairs", found)
    count = len(run[0])
    return [writer.publish(Stats(count, count, numbers={"pairs": len(found)}))]


def describe_index(_: Corpus, manifest: Manifest) -> Mapping[str, Any]:
    """How large the index is."""
    ledger = manifest.provenance["ledger"]
    return {
        "segments": len(manifest.provenance["segments"]),
        "documents": sum(entry["rows"] for entry in ledger),
        "generations": max((g for entry in ledger for _, g in entry["generations"]), default=0),
        "index_bytes": sum(file.bytes for part in manifest.parts for file in part.files),
    }


BAND_INDEX = Stage(
    name="band_index",
    code_version="1",
    description="Sorted segments of all keys, cut by hash prefix, and the candidate pairs found "
    "in them.",
    partitions="none",
    after=(SIGNATURES,),
    kinds=frozenset({"numba"}),
    provenance=dict,
    numbers=dict,
    plan=plan_index,
    work=index_prefix,
    run=run_index,
    describe=describe_index,
)
