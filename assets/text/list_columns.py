"""Columns of lists from flat arrays and back; nothing is copied.

`pyarrow.array` and Arrow's `to_numpy` would import pandas wherever it is installed, which takes
half a second of CPU in every process.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray


def list_series(values: Any, offsets: NDArray[np.int64]) -> pl.Series:
    """Make a column of lists whose item i is values[offsets[i] : offsets[i + 1]].

    `values` is an array of numbers or flags, or an Arrow array.
    """
    import pyarrow as pa

    items = arrow_items(values) if isinstance(values, np.ndarray) else values
    kind, buffers = pa.large_list(items.type), [None, pa.py_buffer(offsets)]
    return pl.Series(
        values=pa.Array.from_buffers(kind, offsets.size - 1, buffers, children=[items])
    )


def list_content(lists: pl.Series) -> tuple[Any, NDArray[np.int64]]:
    """Return the values of a column of lists, end to end in Arrow, and starts, int64 [rows + 1]."""
    column = lists.rechunk().to_arrow()
    offsets = as_numpy(column.offsets)
    return column.values.slice(offsets[0], offsets[-1] - offsets[0]), offsets - offsets[0]


def field_of(structs: Any, name: str) -> NDArray[Any] | None:
    """Return numbers of a field of an Arrow array of structs; None if it has no such field."""
    return as_numpy(structs.field(name)) if structs.type.get_field_index(name) >= 0 else None


def arrow_items(values: NDArray[Any]) -> Any:
    """Return an array of numbers or flags as an Arrow array."""
    import pyarrow as pa

    if values.dtype == np.bool_:  # of which Arrow has a bit each
        return pl.Series(values).to_arrow()
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, values.size, [None, pa.py_buffer(values)])


def as_numpy(items: Any) -> NDArray[Any]:
    """Return an Arrow array of numbers as one of NumPy."""
    return pl.Series(values=items).to_numpy()
