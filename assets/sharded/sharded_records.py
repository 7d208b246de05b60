"""Records of the stage `sharded`, for the store."""

from __future__ import annotations

import msgspec

from assets.bucketed.bucketed_records import BucketedProvenance
from corpus_loader.places import stage_names
from resources.store.records import StageRecords


class RowCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Document spans of a shard, and its tokens with padding."""

    document_spans: int = 0
    stored_tokens: int = 0


class ShardedNumbers(RowCounts, frozen=True, kw_only=True):
    """Numbers of the stage `sharded`: counts of rows, and shards by bucket name."""

    shards: dict[str, int] = {}


class SourceNumbers(ShardedNumbers, frozen=True, kw_only=True):
    """Numbers in the manifest of a source: those of its shards, and `RemovedRows` of `index`."""

    removed_rows: dict[str, int] = {}
    removed_tokens: dict[str, int] = {}


class ShardedProvenance(BucketedProvenance, frozen=True, kw_only=True):
    """Inputs of the stage `sharded`: those of `bucketed`, and its fingerprint."""

    bucketed: str


SHARDED = StageRecords(stage_names.SHARDED, "4", ShardedProvenance, SourceNumbers)
