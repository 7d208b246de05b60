"""Row ids of documents, uint64: the part's number in the ledger, then the row in the part.

Each takes 32 bits; row ids ascend in ingest order.
"""

import numpy as np
from numpy.typing import NDArray

ROW_BITS = np.uint64(32)

Refs = NDArray[np.uint64]


def refs_of(parts: int | NDArray[np.int64], rows: NDArray[np.generic]) -> Refs:
    """Return the ids, uint64 [n], of rows [n] of one part, or of a part each, int64 [n]."""
    return (np.asarray(parts, np.uint64) << ROW_BITS) | rows.astype(np.uint64)


def parts_of(refs: Refs) -> NDArray[np.int64]:
    """Return the part of each row id, int64 in the same shape."""
    return (refs >> ROW_BITS).astype(np.int64)


def rows_of(refs: Refs) -> NDArray[np.uint32]:
    """Return the row in its part of each row id, uint32 in the same shape."""
    return refs.astype(np.uint32)  # keeps the lower half


def slice_of_part(refs: Refs, part: int) -> slice:
    """Return the slice of a part among ascending row ids."""
    edges = np.array([part, part + 1], np.uint64) << ROW_BITS
    start, stop = np.searchsorted(refs, edges)
    return slice(int(start), int(stop))
