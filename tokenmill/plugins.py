"""What readers, rules and shard formats of other packages are made of.

These names stay where they are; the modules that they come from may change. VERSION is raised when
one of them is withdrawn or means something else: a package that needs that may compare it.

    reader         Format, InputFile, Slice, InputRecord, SourceConfig, read_lines, read_blocks
    rule           CustomRule
    shard format   ShardFormat, ShardFile, ShardSchema
"""

from __future__ import annotations

from assets.filtered.rules import CustomRule
from assets.raw.readers.decompress import read_blocks
from assets.raw.readers.format import Format
from assets.raw.readers.input_file import InputFile, Slice
from assets.raw.readers.input_record import InputRecord
from assets.raw.readers.read_lines import read_lines
from assets.sharded.formats.base import ShardFile, ShardFormat, ShardSchema
from resources.settings.sources import SourceConfig

VERSION = 1

__all__ = [
    "VERSION",
    "CustomRule",
    "Format",
    "InputFile",
    "InputRecord",
    "ShardFile",
    "ShardFormat",
    "ShardSchema",
    "Slice",
    "SourceConfig",
    "read_blocks",
    "read_lines",
]
