"""Connected components of candidate pairs: the steps on arrays that fit the memory.

Row ids (part << 32 | row) become dense numbers and back, sorted runs of pairs are merged, and
components are assigned to batches. `component_files` runs the steps over files of any size.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from assets.deduped.index.row_ids import RowIds, parts_of, row_ids_of, rows_of
from corpus_loader.permutation import mix64

Integers = NDArray[np.int64]


class Numbering(NamedTuple):
    """Dense numbers 0 to n - 1 of all documents, in the order of their row ids.

    part_ids: int64 [p], ascending. starts: int64 [p], the number of each part's first document.
    spans: int64 [largest part id + 1, 2], first number of a part's documents and the one after the
    last; 0, 0 for an id without a part.
    """

    part_ids: Integers
    starts: Integers
    spans: Integers
    num_documents: int


def number_documents(part_ids: Integers, rows: Integers) -> Numbering:
    """Number the documents of parts with these ids, int64 [p], and row counts, int64 [p].

    Raises ValueError unless the ids ascend.
    """
    if (np.diff(part_ids) <= 0).any():
        raise ValueError("part ids do not ascend: pass the parts in the order of the ledger")
    edges = np.concatenate([[0], np.cumsum(rows, dtype=np.int64)])
    spans = np.zeros((int(part_ids[-1]) + 1 if len(part_ids) else 0, 2), np.int64)
    spans[part_ids] = np.column_stack([edges[:-1], edges[1:]])
    return Numbering(part_ids, edges[:-1], spans, int(edges[-1]))


def number_pairs(pairs: NDArray[np.uint64], numbering: Numbering) -> Integers:
    """Return pairs of row ids, uint64 [m, 2], as pairs of numbers, int64 [m, 2].

    Raises ValueError, with the pair, for a row id that no part has and for a pair out of order.
    """
    from assets.deduped.kernels.union_find import number_row_ids

    numbers, wrong = number_row_ids(pairs, numbering.spans)
    if wrong >= 0:
        named = " and ".join(
            f"part {part} row {row}"
            for part, row in zip(parts_of(pairs[wrong]), rows_of(pairs[wrong]), strict=True)
        )
        raise ValueError(f"{named} are no pair of two documents in their order")
    return np.asarray(numbers)


def numbered_row_ids(numbers: Integers, numbering: Numbering) -> RowIds:
    """Return the row ids, uint64 [n], of dense numbers, int64 [n]."""
    places = np.searchsorted(numbering.starts, numbers, side="right") - 1
    return row_ids_of(numbering.part_ids[places], numbers - numbering.starts[places])


def merge_pairs(runs: Sequence[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """Merge sorted runs of pairs, uint64 [m, 2] each, into one in which each pair comes once.

    Two by two: each level removes the repeats that the next one would see.
    """
    from assets.deduped.kernels.union_find import merge_two

    merged = list(runs) or [np.empty((0, 2), np.uint64)]
    while len(merged) > 1:
        odd = merged[len(merged) & ~1 :]
        merged = [merge_two(*merged[i : i + 2]) for i in range(0, len(merged) - 1, 2)] + odd
    return merged[0]


def batch_of(labels: NDArray[np.uint64], batches: int) -> Integers:
    """Return the batch, int64 [n] in [0, batches), of each component by a hash of its label."""
    return (mix64(labels) % np.uint64(batches)).astype(np.int64)
