"""Fates of records: one table of what became of each record that was read, for all who tell of it.

Every record has one fate, so the documents in the rows of a source add up to its records. The rows
are made of the counts in manifests; no document is read. Only manifests that are made of one
another are counted: what a stage keeps, and the next one has not been built of, is in no shard.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from assets.annotated.annotated_records import DROPPED
from assets.bucketed.bucketed_records import BUCKETED, LIKE_HELD_OUT, BucketedNumbers
from assets.bucketed.report import HeldOut, held_out
from assets.deduped.deduped_records import CONTAMINATED, DEDUPED
from assets.raw.part_files import DAMAGED_FILE
from assets.raw.readers.archive_names import FIELD_FILTER
from assets.raw.readers.archive_names import LEFT_OUT as NO_DOCUMENTS
from assets.raw.size_cap_files import OVER_SIZE_CAP
from assets.sharded.sharded_records import SHARDED
from assets.text.takedown_files import TAKEN_DOWN
from assets.tokenized.tokenized_records import NO_TOKENS, TOKENIZED
from corpus_loader.places.stage_names import CHAIN
from resources.store.records import DUPLICATE, UNREADABLE, Manifest, as_json_object

Manifests = Mapping[str, Manifest[Any, Any] | None]  # of one source, by stage


class Fate(StrEnum):
    """What becomes of a record, in the order in which it is decided."""

    NOT_A_DOCUMENT = "not a document"
    LEFT_OUT = "left out"
    UNREADABLE = UNREADABLE
    TAKEN_DOWN = "taken down"
    REJECTED = "rejected"
    DUPLICATE = DUPLICATE
    CONTAMINATED = "contaminated"
    REFUSED = "refused by a template or too long"
    DROPPED = "dropped by an annotation"
    LIKE_HELD_OUT = "like a held-out document"
    HELD_OUT = "held out"
    IN_SHARDS = "in training shards"
    IN_NO_SHARD = "in no shard"


OF_REASON = {
    **dict.fromkeys(NO_DOCUMENTS, Fate.NOT_A_DOCUMENT),
    **dict.fromkeys((FIELD_FILTER, OVER_SIZE_CAP, DAMAGED_FILE), Fate.LEFT_OUT),
    UNREADABLE: Fate.UNREADABLE,
    TAKEN_DOWN: Fate.TAKEN_DOWN,
    NO_TOKENS: Fate.REJECTED,
    DUPLICATE: Fate.DUPLICATE,
    CONTAMINATED: Fate.CONTAMINATED,
    LIKE_HELD_OUT: Fate.LIKE_HELD_OUT,
}
OF_STAGE = {TOKENIZED.name: Fate.REFUSED, BUCKETED.name: Fate.REFUSED}  # for any other reason


FateCount = tuple[str, Fate, str, str, int, int | None]


def fate_of(stage: str, reason: str) -> Fate:
    """Return the fate of a document that a stage removes for a reason, the first if it has more."""
    if reason.startswith("opt_out."):
        return Fate.LEFT_OUT
    if reason.startswith(DROPPED):
        return Fate.DROPPED
    return OF_REASON.get(reason) or OF_STAGE.get(stage, Fate.REJECTED)


def source_fates(source: str, manifests: Manifests) -> Iterator[FateCount]:
    """Yield the fates of a source's records, none of them without documents.

    Each with the last stage that counts these documents; the reason, which is the fate itself if
    there is no other; the documents, and their tokens in shards, marks and repeats with them.
    """
    chain = complete_chain(manifests)
    sharded = chain.pop(SHARDED.name, None)  # its rows are sequences
    rest = Fate.IN_SHARDS if sharded else Fate.IN_NO_SHARD
    for each in chain.values():
        for reason, count in each.stats.removed().items():
            yield source, fate_of(each.stage, reason), each.stage, reason, count, None
    for last in [*chain.values()][-1:]:
        held = held_out(bucketed_numbers(last)) if last.stage == BUCKETED.name else None
        held = held or HeldOut(0, 0, 0)
        counts = (last.stats.rows_kept - held.documents, last.stats.tokens - held.tokens or None)
        for fate, num, tokens in ((Fate.HELD_OUT, held.documents, held.tokens), (rest, *counts)):
            if num:
                yield source, fate, last.stage, fate, num, tokens


def complete_chain(manifests: Manifests) -> dict[str, Manifest[Any, Any]]:
    """Return the manifests from `raw` on, as far as each is made of the one before it."""
    chain: dict[str, Manifest[Any, Any]] = {}
    before: Manifest[Any, Any] | None = None
    for stage in reversed(CHAIN):
        found = manifests.get(stage)
        made_of = as_json_object(found.provenance) if found and before else {}
        if not found or (before and made_of.get(before.stage) != before.fingerprint):
            break
        chain[stage] = before = found
    return chain


def bucketed_numbers(manifest: Manifest[Any, Any]) -> BucketedNumbers:
    """Return the numbers of a manifest of `bucketed`, whichever version wrote it."""
    return msgspec.convert(as_json_object(manifest.stats.numbers), BucketedNumbers)


def source_cuts(manifests: Manifests) -> dict[str, int]:
    """Count what was cut out of documents, those that were then removed included."""
    cuts, chain = dict[str, int](), complete_chain(manifests)
    if deduped := chain.get(DEDUPED.name):
        steps = as_json_object(deduped.stats.numbers).get("cut_chars", {})
        cuts = {f"characters by {step}": count for step, count in steps.items()}
    if (last := chain.get(BUCKETED.name)) and (count := bucketed_numbers(last).tokens_truncated):
        cuts["tokens by sequences"] = count
    return cuts
