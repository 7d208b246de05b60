"""Shard formats: how a shard's rows become the files that a trainer's own reader opens.

    shard frame (num_tokens, tokens, spans) --write--> one file per suffix
    all shards of a source                  --index--> what the reader wants beside them

A row is one item, sequence or "document" of the format, padding included. A format is a module here
with a `ShardFormat`; a line in FORMATS and its name in `FormatName` make it known. All bytes depend
on the rows alone: no clock, no machine.
"""

from __future__ import annotations

from assets.sharded.formats.arrow import ARROW
from assets.sharded.formats.base import FormatError, ShardFile, ShardFormat, ShardSchema
from assets.sharded.formats.datatrove import DATATROVE
from assets.sharded.formats.litdata import LITDATA
from assets.sharded.formats.mds import MDS
from assets.sharded.formats.megatron import MEGATRON
from assets.sharded.formats.npy import NPY
from assets.sharded.formats.parquet import PARQUET
from assets.sharded.formats.webdataset import WEBDATASET

FORMATS: dict[str, ShardFormat] = {
    each.name: each for each in (PARQUET, MEGATRON, MDS, WEBDATASET, LITDATA, DATATROVE, NPY, ARROW)
}

__all__ = ["FORMATS", "FormatError", "ShardFile", "ShardFormat", "ShardSchema"]
