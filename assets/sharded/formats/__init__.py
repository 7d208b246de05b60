"""Shard formats: writers of a shard's rows for the readers of other projects.

    shard frame (num_tokens, tokens, spans; loss_mask of conversations) --write--> a file per suffix
    all shards of a source --index--> index files of the reader

A row is one item, sequence or "document" of the format, padding included. A format is a module here
with a `ShardFormat`, listed in WRITERS, and its name in `FORMAT_NAMES` (CONTRIBUTING.md has the
recipe); or one of another package, an entry point of `tokenmill.formats`. All bytes depend on the
rows alone, not on clock or machine.
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
from resources.settings.plug_ins import load_plug_in, with_identity

WRITERS = (PARQUET, MEGATRON, MDS, WEBDATASET, LITDATA, DATATROVE, NPY, ARROW)
FORMATS: dict[str, ShardFormat] = {each.name: each for each in WRITERS}


def shard_format(name: str) -> ShardFormat:
    """Return the format of a name; PlugInError for one that a package adds, and that is wrong."""
    return FORMATS.get(name) or load_plug_in("formats", name, ShardFormat)


def format_identity(name: str) -> str:
    """Return what a fingerprint holds of a format: its name, and the code of one that is added."""
    return name if name in FORMATS else with_identity("formats", name)


__all__ = [
    "FORMATS",
    "FormatError",
    "ShardFile",
    "ShardFormat",
    "ShardSchema",
    "format_identity",
    "shard_format",
]
