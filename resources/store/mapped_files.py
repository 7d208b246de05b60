"""Map files of arrays and of Arrow tables: only the pages that are used are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray


def map_array(
    path: Path, dtype: type[np.generic], shape: tuple[int, ...], offset: int = 0
) -> NDArray[Any]:
    """Map an array of a file that `write_arrays` wrote; only the pages that are used are read."""
    if 0 in shape:  # nothing cannot be mapped
        return np.empty(shape, dtype)
    return np.memmap(path, dtype, "r", offset, shape)


def map_arrow(path: Path, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """Map columns of an uncompressed Arrow file; Polars' own reader copies them.

    Only the pages that are used are read.
    """
    import pyarrow as pa

    with pa.memory_map(str(path)) as file:
        return _table_in(file, columns)


def read_arrow(path: Path, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """Read columns of an uncompressed Arrow file into memory: for more files than can be mapped."""
    import pyarrow as pa

    with pa.OSFile(str(path)) as file:
        return _table_in(file, columns)


def _table_in(file: Any, columns: Sequence[str] | None) -> pl.DataFrame:
    import pyarrow as pa

    table = pa.ipc.open_file(file).read_all()
    frame = pl.from_arrow(table if columns is None else table.select(columns))
    assert isinstance(frame, pl.DataFrame)
    return frame


@dataclass(frozen=True)
class MappedTables:
    """Columns of Arrow files, each mapped while it is looked at: Linux maps 65,530 a process."""

    paths: Sequence[Path]
    columns: Sequence[str]

    def __iter__(self) -> Iterator[pl.DataFrame]:
        return (map_arrow(path, self.columns) for path in self.paths)
