"""References to documents, uint64: the ledger's number of the part above, the row in it below.

Each takes 32 bits; references ascend in ingest order.
"""

import numpy as np
from numpy.typing import NDArray

ROW_BITS = np.uint64(32)

Refs = NDArray[np.uint64]


def refs_of(parts: int | NDArray[np.int64], rows: NDArray[np.generic]) -> Refs:
    """References, uint64 [n], to rows [n] of one part, or of a part each, int64 [n]."""
    return (np.asarray(parts, np.uint64) << ROW_BITS) | rows.astype(np.uint64)


def parts_of(refs: Refs) -> NDArray[np.int64]:
    """The part of each reference, int64 in the same shape."""
    return (refs >> ROW_BITS).astype(np.int64)


def rows_of(refs: Refs) -> NDArray[np.uint32]:
    """The row of each reference, uint32 in the same shape."""
    return refs.astype(np.uint32)  # keeps the lower half


def slice_of_part(refs: Refs, part: int) -> slice:
    """Where the references to rows of a part lie among ascending ones."""
    edges = np.array([part, part + 1], np.uint64) << ROW_BITS
    start, stop = np.searchsorted(refs, edges)
    return slice(int(start), int(stop))
