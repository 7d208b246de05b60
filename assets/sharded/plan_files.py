"""Plan of a source's shards: its bucketed parts, the ledger before, and the shards of a ledger.

Rows of documents that are gone are marked, and stay in the files until much of a generation is
marked. After a takedown nothing may stay: until the rows of its documents are out of the files, a
generation with any marked row is rewritten.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec import UNSET

from assets.bucketed.bucketed_records import SEQUENCE_IDS, TOKENS, BucketedManifest, layout_of
from assets.deduped.deduped_records import DEDUPED
from assets.filtered.filtered_records import FILTERED
from assets.raw.raw_records import RAW
from assets.sharded.exported_ledger_files import exported_ledger
from assets.sharded.generations import Size
from assets.sharded.ledger_files import (
    LEDGER,
    BucketedPart,
    Ledger,
    LedgerInputs,
    PublishedLedger,
    ShardedSource,
    read_ledger,
)
from assets.sharded.scatter_files import with_earlier_files
from assets.sharded.shard_files import (
    INDEX,
    ShardInputs,
    earlier_files,
    has_all_files,
    part_fingerprint,
    part_name,
    shard_schema,
    split_of,
)
from assets.sharded.shard_index_files import IndexInputs, ShardsOrigin
from assets.sharded.sharded_records import SHARDED
from assets.sharded.shuffle import common_length, plan_bucket_shards, stored_buckets
from assets.tokenized.tokenized_records import TOKENIZED, TokenFacts
from resources.corpus import Corpus
from resources.passes import Earlier
from resources.settings.buckets import VALIDATION
from resources.store.records import Manifest, fingerprint_of
from resources.store.snapshot import Snapshot
from resources.takedowns import id_of, read_takedowns
from resources.tasks import Task, TaskMaker


def source_of(corpus: Corpus, manifest: BucketedManifest) -> ShardedSource:
    """Return what the shards of a source depend on besides its sequences."""
    config, numbers = corpus.settings.shards, manifest.stats.numbers
    bucketing = layout_of(manifest)
    buckets = stored_buckets(numbers.bucket_sequences, numbers.bucket_tokens, bucketing.names)
    length = common_length(plan_bucket_shards(manifest.partition, buckets, 1, config))
    made_of = manifest.provenance
    has_masks, has_weights = made_of.has_loss_mask is True, made_of.has_loss_weights is True
    schema = shard_schema(made_of, length, has_masks, has_weights)
    return ShardedSource(manifest.partition, config, bucketing, schema)


def bucketed_parts(corpus: Corpus, manifest: BucketedManifest) -> tuple[BucketedPart, ...]:
    """Return the parts of a bucketed source, in order."""
    names, store = layout_of(manifest).names, corpus.store
    return tuple(
        BucketedPart(
            part.name,
            part.fingerprint,
            tuple(part.stats.numbers.bucket_sequences.get(name, 0) for name in names),
            sequences=store.part_file(manifest, part, "sequences"),
            ids=store.part_file(manifest, part, SEQUENCE_IDS),
            tokens=tuple(
                store.file_of(manifest, file)
                for file in part.files
                if file.kind.startswith(f"{TOKENS}-")
            ),
            padding=manifest.provenance.end_of_document_id,
        )
        for part in manifest.parts
    )


def plan_ledger(corpus: Corpus, manifest: BucketedManifest, maker: TaskMaker) -> Task[LedgerInputs]:
    """Plan the ledger of a source: that of the last run if it is still right, else the next one."""
    source, parts = source_of(corpus, manifest), bucketed_parts(corpus, manifest)
    base = source.base(maker.code_version)
    folder = corpus.store.partition(maker.stage, maker.partition)
    newest, there = folder.newest_manifest(), Snapshot(folder)
    found, fingerprint = ledger_before(there, newest, base)
    exported = None if newest else exported_ledger(corpus, source.name, base)
    lost = frozenset(lost_generations(there, newest, found, source))
    before = found or exported
    obeyed = obeyed_takedowns(corpus, manifest, before.ledger if before else None)
    may_stay = obeyed.is_all and not holds_out_first(found, source)
    share = source.config.rewrite_share if may_stay else 0.0  # nothing stays marked
    inputs = LedgerInputs(
        source=source,
        base=base,
        bucketed=manifest.fingerprint,
        tokens=manifest.provenance,
        num_bytes=manifest.stats.bytes,
        parts=parts,
        text_bytes_per_token=manifest.stats.text_bytes / max(1, manifest.stats.tokens),
        rewrite_share=share,
        takedowns=obeyed.ids,
        before=before,
        is_exported=exported is not None,
        lost=lost,
    )
    keys = tuple(part.key for part in parts)
    if found is None or not is_still_right(found, keys, lost, share):
        earlier = [fingerprint, exported and exported.ledger.fingerprint, sorted(lost)]
        decided = [share, *earlier] if before else []
        ids = [obeyed.ids] if obeyed.ids else []
        fingerprint = fingerprint_of(base, [part.fingerprint for part in parts], *decided, *ids)
    work_bytes = sum(part.ids.bytes for part in parts)
    return maker.with_fingerprint(LEDGER, fingerprint, inputs, work_bytes=work_bytes)


def holds_out_first(found: PublishedLedger | None, source: ShardedSource) -> bool:
    """Return whether documents are held out now, and were not in the ledger of the last run.

    Rows of training then have documents that are held out: marked, they would stay in its files.
    """
    if found is None or VALIDATION not in source.bucketing.groups:
        return False
    names = (name for generation in found.ledger.generations for name in generation.sequences)
    return not any(map(split_of, names))


def ledger_before(
    there: Snapshot, newest: Manifest[Any, Any] | None, base: str
) -> tuple[PublishedLedger | None, str]:
    """Return the ledger of the newest manifest, and the fingerprint of its part.

    None if there is none, if it lacks a file, or if all shards depend on something else now.
    """
    for part in newest.parts if newest else ():
        if part.name == LEDGER and there.find_part(part.name, part.fingerprint):
            found = read_ledger(there.partition, part)
            return (found, part.fingerprint) if found.ledger.base == base else (None, "")
    return None, ""


def lost_generations(
    there: Snapshot,
    newest: Manifest[Any, Any] | None,
    found: PublishedLedger | None,
    source: ShardedSource,
) -> Iterator[int]:
    """Yield the numbers of the generations of which a shard is not there in every format."""
    if found is None or newest is None:
        return
    for generation in found.ledger.generations:
        shards = source.shards(generation.data)
        names = [part_name(generation.number, number) for number, _ in source.numbered(generation)]
        fingerprints = [part_fingerprint(shards.data, shards.formats, name) for name in names]
        if all(map(there.find_part, names, fingerprints)):
            continue
        earlier = earlier_files(there.partition, shards)
        if not all(has_all_files(earlier.get(name), shards.formats) for name in names):
            yield generation.number


def is_still_right(
    found: PublishedLedger,
    parts: tuple[tuple[str, str], ...],
    lost: frozenset[int],
    rewrite_share: float,
) -> bool:
    """Return whether a ledger is of these parts, and none of its generations is to be rewritten."""
    sizes = (
        Size(each.rows, each.removed, each.removed + each.absent, each.number in lost)
        for each in found.ledger.generations
    )
    return found.ledger.parts == parts and not any(size.is_spent(rewrite_share) for size in sizes)


def plan_shards(
    _: Corpus, tasks: list[Task[LedgerInputs]], earlier: Earlier
) -> list[Task[ShardInputs]]:
    """Plan the shards of all generations of a source, oldest first, by its published ledger."""
    [ledger], [[published]] = tasks, earlier
    source, found = ledger.payload.source, read_ledger(ledger.folder, published.records[0])
    inputs = [
        ShardInputs(
            shards=source.shards(generation.data, split_of(bucket)),
            bucketed=ledger.payload.bucketed,
            ledger=ledger.fingerprint,
            generation=generation.number,
            num_parts=len(generation.parts),
            number=number,
            bucket=bucket,
            text_bytes_per_token=generation.text_bytes_per_token,
        )
        for generation in found.ledger.generations
        for number, bucket in source.numbered(generation)
    ]
    work_bytes = ledger.payload.num_bytes // max(1, len(inputs))
    planned: dict[int, list[Task[ShardInputs]]] = {}
    for each in inputs:
        name = part_name(each.generation, each.number)
        fingerprint = part_fingerprint(each.shards.data, each.shards.formats, name)
        task = ledger.sibling(name, fingerprint, each, work_bytes=work_bytes)
        planned.setdefault(each.generation, []).append(task)
    return [task for tasks in planned.values() for task in with_earlier_files(tasks)]


def plan_index(
    _: Corpus, tasks: list[Task[LedgerInputs]], earlier: Earlier
) -> list[Task[IndexInputs]]:
    """Plan the index files of a source's shards, by its published ledger."""
    [ledger], [published] = tasks, earlier[0]
    inputs, found = ledger.payload, read_ledger(ledger.folder, published.records[0])
    state, source = found.ledger.state, ledger.payload.source
    origin = ShardsOrigin(
        **{name: getattr(inputs.tokens, name) for name in TokenFacts.__struct_fields__},
        stage=ledger.stage,
        partition=ledger.partition,
        fingerprint=state,
        code_version=SHARDED.code_version,
        config=source.config.data(),
    )
    index = IndexInputs(source.shards(state), source, ledger.fingerprint, origin)
    fingerprint = part_fingerprint(state, source.config.formats, INDEX)
    return [ledger.sibling(INDEX, fingerprint, index, work_bytes=0)]


class Obeyed(NamedTuple):
    """Ids of the takedowns that the next ledger obeys; `is_all`: the one before obeyed them."""

    ids: tuple[str, ...]
    is_all: bool


def obeyed_takedowns(corpus: Corpus, bucketed: BucketedManifest, before: Ledger | None) -> Obeyed:
    """Return the takedowns that concern a source, as far as its sequences obey them.

    One that found no document may concern any source: a marked row may still have it.
    """
    takedowns, source = read_takedowns(corpus.store.root), bucketed.partition
    everywhere = {id_of(each) for each in takedowns if not each.parts}
    here = {id_of(each) for each in takedowns if source in each.parts}
    known = set((before.takedowns if before else UNSET) or ())
    obeyed = known | everywhere | (here and here & raw_takedowns(corpus, bucketed))
    return Obeyed(tuple(sorted(obeyed)), known >= everywhere | here)


def raw_takedowns(corpus: Corpus, bucketed: BucketedManifest) -> set[str]:
    """Return the takedowns that the newest raw documents obey; none if these are newer."""
    source, store = bucketed.partition, corpus.store
    tokenized, deduped = store.newest(TOKENIZED, source), store.newest(DEDUPED, source)
    filtered, raw = store.newest(FILTERED, source), store.newest(RAW, source)
    made_of = (
        (bucketed.provenance.tokenized, tokenized),
        (tokenized.provenance.deduped, deduped),
        (deduped.provenance.filtered, filtered),
        (filtered.provenance.raw, raw),
    )
    is_newest = all(then == now.fingerprint for then, now in made_of)
    return set(raw.provenance.takedowns or ()) if is_newest else set()
