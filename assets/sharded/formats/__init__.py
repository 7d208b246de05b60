"""Shard formats: writers of a shard's rows for the readers of other projects.

    shard frame (num_tokens, tokens, spans; loss_mask of conversations) --write--> a file per suffix
    all shards of a source --index--> index files of the reader

A row is one item, sequence or "document" of the format, padding included. A format is a module here
with a `ShardFormat`, listed in FORMATS, and its name in `FormatName`. All bytes depend on the rows
alone, not on clock or machine.
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
    shard_format.name: shard_format
    for shard_format in (PARQUET, MEGATRON, MDS, WEBDATASET, LITDATA, DATATROVE, NPY, ARROW)
}

__all__ = ["FORMATS", "FormatError", "ShardFile", "ShardFormat", "ShardSchema"]
