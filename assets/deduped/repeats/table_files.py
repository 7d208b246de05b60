"""Tables of a pass over the parts, sorted by hash, that a later pass reads a prefix of.

Polars' own reader copies whole tables. Those of the parts are read by every prefix, those of the
prefixes by every part: they are mapped, and only the pages of the wanted rows are read.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from assets.deduped.index.band_index import keys_with_prefix
from assets.text.table_rows import rows_between
from resources.passes import PassFiles
from resources.store.mapped_files import map_arrow, read_arrow


def tables_with_prefix(files: PassFiles, place: tuple[int, int]) -> Iterator[pl.DataFrame]:
    """Yield the rows with a prefix of each table, in memory: Linux maps 65,530 files a process.

    `place` is the prefix and its number of bits, 0 for all rows.
    """
    edges = keys_with_prefix(*place)
    for file in files.read():
        if place[1]:
            yield _copied(rows_between(map_arrow(file.checked()), "hash", edges))
        else:
            yield read_arrow(file.checked())


def rows_of_part(files: PassFiles, number: int) -> pl.DataFrame:
    """Return the rows of one part in the tables of a pass over prefixes, sorted by `part`."""
    edges = number, number
    return pl.concat(
        [rows_between(map_arrow(file.checked()), "part", edges) for file in files.read()]
    )


def _copied(rows: pl.DataFrame) -> pl.DataFrame:
    """Copy rows of a mapped table, whose file is mapped no longer."""
    table = rows.to_arrow(compat_level=pl.CompatLevel.oldest())
    copied = pl.from_arrow(table.take(np.arange(rows.height)))
    assert isinstance(copied, pl.DataFrame)
    return copied
