"""Count token ids over all documents, and tokens of some kinds in each."""
# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import Any

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_KERNEL

Ids = NDArray[np.unsignedinteger[Any]]


@njit(**ARRAY_KERNEL)
def count_each(ids: Ids, vocab_size: int) -> NDArray[np.uint64]:
    """Count each id of the vocabulary, uint64 [vocab_size]; all ids are in it."""
    counts = np.zeros(vocab_size, np.uint64)
    for token in ids:
        counts[token] += uint64(1)
    return counts


@njit(**ARRAY_KERNEL)
def count_of_kinds(
    ids: Ids, ends: NDArray[np.int64], kinds: NDArray[np.uint8], num_kinds: int
) -> NDArray[np.int64]:
    """Count the tokens of each document by kind, int64 [num_kinds, n]; those of kind 0 stay 0.

    The ids of a document end at ends[i], where those of the next one begin; `kinds` has the kind of
    every id.
    """
    counts = np.zeros((num_kinds, len(ends)), np.int64)
    start = 0
    for row in range(len(ends)):
        for token in ids[start : ends[row]]:
            kind = kinds[token]
            if kind:
                counts[kind, row] += 1
        start = ends[row]
    return counts
