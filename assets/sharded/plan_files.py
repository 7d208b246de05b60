"""Plan of a source's shards: its bucketed parts, the ledger before, and the shards of a ledger."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from assets.bucketed.bucketed_records import (
    SEQUENCE_IDS,
    TOKENS,
    BucketedManifest,
    BucketedNumbers,
    layout_of,
)
from assets.sharded.exported_ledger_files import exported_ledger
from assets.sharded.generation_files import (
    LEDGER,
    Generation,
    PublishedLedger,
    ShardedSource,
    read_ledger,
)
from assets.sharded.generations import Size
from assets.sharded.ledger_files import BucketedPart, LedgerInputs
from assets.sharded.reused_files import earlier_files, has_all_files
from assets.sharded.shard_files import (
    ShardInputs,
    part_fingerprint,
    part_name,
    shard_schema,
    split_of,
)
from assets.sharded.shuffle import common_length, plan_shards, stored_buckets
from assets.sharded.takedown_files import obeyed_takedowns
from resources.corpus import Corpus
from resources.settings.buckets import VALIDATION
from resources.store.records import Manifest, PartRecord, fingerprint_of
from resources.store.store import Partition
from resources.tasks import Task, TaskMaker


def source_of(corpus: Corpus, manifest: BucketedManifest) -> ShardedSource:
    """Return what the shards of a source depend on besides its sequences."""
    config, numbers = corpus.settings.shards, manifest.stats.numbers
    bucketing = layout_of(manifest)
    buckets = stored_buckets(numbers.bucket_sequences, numbers.bucket_tokens, bucketing.names)
    length = common_length(plan_shards(manifest.partition, buckets, 1, config))
    has_loss_mask = manifest.provenance.has_loss_mask is True
    schema = shard_schema(manifest.provenance, length, has_loss_mask)
    return ShardedSource(manifest.partition, config, bucketing, schema)


def bucketed_parts(corpus: Corpus, manifest: BucketedManifest) -> tuple[BucketedPart, ...]:
    """Return the parts of a bucketed source, in order."""
    names = layout_of(manifest).names
    return tuple(bucketed_part(corpus, manifest, part, names) for part in manifest.parts)


def bucketed_part(
    corpus: Corpus,
    manifest: BucketedManifest,
    part: PartRecord[BucketedNumbers],
    names: Sequence[str],
) -> BucketedPart:
    """Return a part of a bucketed source whose buckets have these names."""
    of_tokens = [file for file in part.files if file.kind.startswith(f"{TOKENS}-")]
    return BucketedPart(
        part.name,
        part.fingerprint,
        tuple(part.stats.numbers.bucket_sequences.get(name, 0) for name in names),
        sequences=corpus.store.part_file(manifest, part, "sequences"),
        ids=corpus.store.part_file(manifest, part, SEQUENCE_IDS),
        tokens=tuple(corpus.store.file_of(manifest, file) for file in of_tokens),
        padding=manifest.provenance.end_of_document_id,
    )


def plan_ledger(corpus: Corpus, manifest: BucketedManifest, maker: TaskMaker) -> Task[LedgerInputs]:
    """Plan the ledger of a source: that of the last run if it is still right, else the next one."""
    source, parts = source_of(corpus, manifest), bucketed_parts(corpus, manifest)
    base = source.base(maker.code_version)
    folder = corpus.store.partition(maker.stage, maker.partition)
    newest = folder.newest_manifest()
    found, fingerprint = ledger_before(folder, newest, base)
    exported = None if newest else exported_ledger(corpus, source.name, base)
    lost = frozenset(lost_generations(folder, newest, found, source))
    obeyed = obeyed_takedowns(corpus, manifest, found.ledger if found else None)
    may_stay = obeyed.is_all and not holds_out_first(found, source)
    share = source.config.rewrite_share if may_stay else 0.0  # nothing stays marked
    inputs = LedgerInputs(
        source=source,
        base=base,
        bucketed=manifest.fingerprint,
        parts=parts,
        text_bytes_per_token=manifest.stats.text_bytes / max(1, manifest.stats.tokens),
        rewrite_share=share,
        takedowns=obeyed.ids,
        before=found or exported,
        is_exported=exported is not None,
        lost=lost,
    )
    keys = tuple(part.key for part in parts)
    if found is None or not is_still_right(found, keys, lost, share):
        before = [fingerprint, exported and exported.ledger.fingerprint, sorted(lost)]
        decided = [share, *before] if inputs.before else []
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
    folder: Partition, newest: Manifest[Any, Any] | None, base: str
) -> tuple[PublishedLedger | None, str]:
    """Return the ledger of the newest manifest, and the fingerprint of its part.

    None if there is none, if it lacks a file, or if all shards depend on something else now.
    """
    for part in newest.parts if newest else ():
        if part.name == LEDGER and folder.find_part(part.name, part.fingerprint):
            found = read_ledger(folder, part)
            return (found, part.fingerprint) if found.ledger.base == base else (None, "")
    return None, ""


def lost_generations(
    folder: Partition,
    newest: Manifest[Any, Any] | None,
    found: PublishedLedger | None,
    source: ShardedSource,
) -> Iterator[int]:
    """Yield the numbers of the generations of which a shard is not there in every format."""
    if found is None or newest is None:
        return
    for generation in found.ledger.generations:
        shards = source.shards(generation.data)
        names = [
            part_name(generation.number, number) for number, _ in shards_of(source, generation)
        ]
        fingerprints = {name: part_fingerprint(shards.data, shards.formats, name) for name in names}
        if all(folder.find_part(*each) for each in fingerprints.items()):
            continue
        earlier = earlier_files(folder, shards)
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


def shards_of(source: ShardedSource, generation: Generation) -> Iterator[tuple[int, str]]:
    """Yield the number and the bucket of every shard of a generation that has a row."""
    for plan in source.plans(generation):
        for number in range(plan.first_shard, plan.first_shard + plan.num_shards):
            if number not in generation.empty_shards:
                yield number, plan.name


def plan_shard_tasks(
    ledger: Task[LedgerInputs], found: PublishedLedger, num_bytes: int
) -> list[Task[ShardInputs]]:
    """Plan the shards of all generations of a ledger, oldest first.

    `num_bytes`, of the source's tokens, are divided among them.
    """
    source, bucketed = ledger.payload.source, ledger.payload.bucketed
    inputs = [
        ShardInputs(
            shards=source.shards(generation.data, split_of(bucket)),
            bucketed=bucketed,
            ledger=ledger.fingerprint,
            generation=generation.number,
            num_parts=len(generation.parts),
            number=number,
            bucket=bucket,
            text_bytes_per_token=generation.text_bytes_per_token,
        )
        for generation in found.ledger.generations
        for number, bucket in shards_of(source, generation)
    ]
    tasks = []
    for each in inputs:
        name = part_name(each.generation, each.number)
        fingerprint = part_fingerprint(each.shards.data, each.shards.formats, name)
        tasks.append(ledger.sibling(name, fingerprint, each, work_bytes=num_bytes // len(inputs)))
    return tasks
