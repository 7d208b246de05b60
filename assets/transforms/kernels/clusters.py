"""Union-find over equal keys, and the agreement of signatures.

Purpose: connected components of 10 million documents over one column of keys at a time.
Price per column: 8 to 16 bytes of hash table per document and about 100 ns; no pair of documents is
ever listed, so a cluster of n copies costs n steps and not n * n.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import njit, types, uint64
from numpy.typing import NDArray

_EMPTY = np.uint32(0xFFFFFFFF)  # one more than the last row that a Polars frame can have

_keys = types.Array(types.uint64, 2, "C", readonly=True)
_flags = types.Array(types.boolean, 1, "C", readonly=True)
_options = {"cache": True, "nogil": True}


@njit(types.int64(types.int64[::1], types.int64), **_options)
def _root(parents: NDArray[np.int64], row: int) -> int:
    """Root of a row, with path halving (Tarjan and van Leeuwen 1984)."""
    while parents[row] != row:
        parents[row] = parents[parents[row]]
        row = parents[row]
    return row


@njit(types.boolean(_keys, types.int64, types.int64), **_options)
def _same_key(keys: NDArray[np.uint64], row: int, other: int) -> bool:
    column = 0
    while column < keys.shape[1] and keys[row, column] == keys[other, column]:
        column += 1
    return column == keys.shape[1]


@njit(types.uint64(_keys, types.int64), **_options)
def _mix(keys: NDArray[np.uint64], row: int) -> int:
    """Fibonacci hash over all words of a key: keys may share a word, or be small numbers."""
    mixed = uint64(0)
    for column in range(keys.shape[1]):
        mixed = uint64(mixed ^ (mixed >> uint64(32)) ^ keys[row, column])
        mixed = uint64(mixed * uint64(0x9E3779B97F4A7C15))
    return mixed


@njit(types.void(_keys, _flags, types.int64[::1]), **_options)
def link_equal(
    keys: NDArray[np.uint64], is_key: NDArray[np.bool_], parents: NDArray[np.int64]
) -> None:
    """Join the components of all rows with equal keys, uint64 [n, words], where `is_key` holds.

    `parents` (int64 [n], at first 0 to n - 1) is changed in place. The smaller root wins, so that
    a component is known by its first row.
    """
    bits = 1
    while 1 << bits < 2 * len(keys):
        bits += 1
    slots = np.full(1 << bits, _EMPTY, np.uint32)
    for row in range(len(keys)):
        if not is_key[row]:
            continue
        slot = np.int64(_mix(keys, row) >> uint64(64 - bits))
        while slots[slot] != _EMPTY and not _same_key(keys, row, np.int64(slots[slot])):
            slot = (slot + 1) & ((1 << bits) - 1)
        if slots[slot] == _EMPTY:
            slots[slot] = row
            continue
        one, other = _root(parents, np.int64(slots[slot])), _root(parents, row)
        parents[max(one, other)] = min(one, other)


@njit(types.void(types.int64[::1]), **_options)
def flatten(parents: NDArray[np.int64]) -> None:
    """Let every row point at its root: a parent is never after its child, so one pass will do."""
    for row in range(len(parents)):
        parents[row] = parents[parents[row]]


@njit(
    types.float32[::1](
        types.Array(types.uint32, 2, "C", readonly=True),
        types.Array(types.int64, 1, "C", readonly=True),
    ),
    **_options,
)
def agreement(signatures: NDArray[np.uint32], others: NDArray[np.int64]) -> NDArray[np.float32]:
    """Share of equal values, float32 [n], of row i of the signatures and row others[i]."""
    shares = np.empty(len(others), np.float32)
    for row in range(len(others)):
        other, equal = others[row], 0
        for k in range(signatures.shape[1]):
            equal += signatures[row, k] == signatures[other, k]
        shares[row] = equal / signatures.shape[1]
    return shares
