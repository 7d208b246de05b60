"""Row ids of documents, uint64: the part's number in the ledger, then the row in the part.

Each takes 32 bits; row ids ascend in ingest order.
"""

import numpy as np
from numpy.typing import NDArray

ROW_BITS = np.uint64(32)

RowIds = NDArray[np.uint64]


def row_ids_of(parts: int | NDArray[np.int64], rows: NDArray[np.generic]) -> RowIds:
    """Return the ids, uint64 [n], of rows [n] of one part, or of a part each, int64 [n]."""
    return (np.asarray(parts, np.uint64) << ROW_BITS) | rows.astype(np.uint64)


def parts_of(row_ids: RowIds) -> NDArray[np.int64]:
    """Return the part of each row id, int64 in the same shape."""
    return (row_ids >> ROW_BITS).astype(np.int64)


def rows_of(row_ids: RowIds) -> NDArray[np.uint32]:
    """Return the row in its part of each row id, uint32 in the same shape."""
    return row_ids.astype(np.uint32)  # keeps the lower half


def slice_of_part(row_ids: RowIds, part: int) -> slice:
    """Return the slice of a part among ascending row ids."""
    edges = np.array([part, part + 1], np.uint64) << ROW_BITS
    start, stop = np.searchsorted(row_ids, edges)
    return slice(int(start), int(stop))
