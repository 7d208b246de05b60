"""Bytes of the tokens of a vocabulary in training, and look-up of tokens by their bytes.

Two merges may spell the same token, which then has one id. The table of known tokens has the id of
one in a slot, at most half of them used, from that of its hash on.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_KERNEL
from assets.text.kernels.hashing import hash_bytes

Bytes = NDArray[np.uint8]
Edges = NDArray[np.int64]

FIRST_SLOTS, FIRST_BYTES = 1 << 10, 1 << 16
NO_TOKEN = -1


@njit(**ARRAY_KERNEL)
def find_token(spelled: Bytes, edges: Edges, known: Edges, token: int) -> int:
    """Return the known token with the bytes of number `token`: itself, which is added, if new."""
    start, stop = edges[token], edges[token + 1]
    mask = uint64(len(known) - 1)
    slot = hash_bytes(spelled, uint64(start), uint64(stop)) & mask
    while known[slot] != NO_TOKEN:
        other = known[slot]
        if np.array_equal(spelled[edges[other] : edges[other + 1]], spelled[start:stop]):
            return other
        slot = (slot + uint64(1)) & mask
    known[slot] = token
    return token


@njit(**ARRAY_KERNEL)
def known_tokens(tokens: tuple[Bytes, Edges], vocab_size: int) -> tuple[Bytes, Edges, Edges]:
    """Return the first tokens' bytes and edges with room for more, and the table of them.

    A token without bytes cannot be merged of others, and is not in the table.
    """
    first_spelled, first_edges = tokens
    most = max(vocab_size, len(first_edges)) + 2
    spelled = np.concatenate((first_spelled, np.empty(FIRST_BYTES, np.uint8)))
    edges = np.zeros(most, np.int64)
    edges[: len(first_edges)] = first_edges
    slots = FIRST_SLOTS
    while slots < 2 * most:
        slots *= 2
    known = np.full(slots, NO_TOKEN, np.int64)
    for token in range(len(first_edges) - 1):
        if edges[token] < edges[token + 1]:
            find_token(spelled, edges, known, token)
    return spelled, edges, known


@njit(**ARRAY_KERNEL)
def spell_token(
    pair: tuple[int, int], token: int, spelled: Bytes, edges: Edges, known: Edges
) -> tuple[Bytes, int]:
    """Write the bytes of a pair as those of the next number, `token`; return all, and its id.

    The id is that of a known token with these bytes, or `token`.
    """
    left, right = pair
    start = edges[token]
    middle = start + edges[left + 1] - edges[left]
    stop = middle + edges[right + 1] - edges[right]
    while stop > len(spelled):
        spelled = np.concatenate((spelled, np.empty_like(spelled)))
    spelled[start:middle] = spelled[edges[left] : edges[left + 1]]
    spelled[middle:stop] = spelled[edges[right] : edges[right + 1]]
    edges[token + 1] = stop
    return spelled, find_token(spelled, edges, known, token)
