"""Seeded permutations of any size, computed index by index: nothing to store, nothing to replay.

A six-round Feistel network on the bits of the index, walked until it lands inside the range
(Black and Rogaway 2002, "Ciphers with arbitrary finite domains"). Six rounds are as good as
numpy's shuffle on batch mix and successive differences (chi2/dof 1.00/0.99/1.09 at 1e6; three
rounds: 2.35 on differences). Small ranges, where a Feistel network is weak, get an explicit
permutation by sorting keyed hashes. Memory: 8 bytes per index.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

ROUNDS = 6
EXPLICIT_BELOW = 4096
GOLDEN_GAMMA = 0x9E3779B97F4A7C15  # splitmix64's increment (Steele et al. 2014)
MASK_64 = 0xFFFFFFFFFFFFFFFF

UInt64s = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.integer]


def derive_key(*what: str | int) -> int:
    """64-bit key for a purpose, e.g. derive_key(seed, "shard", source, bucket)."""
    return int.from_bytes(hashlib.sha256(json.dumps(what).encode()).digest()[:8], "little")


def mix64(values: UInt64s) -> UInt64s:
    """splitmix64's finalizer: a bijection of 64-bit values that flips half the bits on average."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def round_keys(key: int, count: int) -> list[np.uint64]:
    """`count` keys drawn from one by splitmix64."""
    counters = np.array([(key + GOLDEN_GAMMA * (i + 1)) & MASK_64 for i in range(count)], np.uint64)
    return list(mix64(counters))


def permute(indices: npt.ArrayLike, *, size: int, key: int) -> UInt64s:
    """Map indices of [0, size) by the permutation that `key` names, a bijection: uint64 [n].

    Raises ValueError for an index outside the range.
    """
    values = np.asarray(indices, dtype=np.uint64)
    if values.size and int(values.max()) >= size:
        raise ValueError(f"index {int(values.max())} is outside a permutation of {size=}")
    if size <= EXPLICIT_BELOW:
        return explicit_permutation(size, key)[values]
    bits = (size - 1).bit_length()
    keys = round_keys(key, ROUNDS)
    permuted = feistel(values, bits, keys)
    outside = np.flatnonzero(permuted >= size)
    while outside.size:
        permuted[outside] = feistel(permuted[outside], bits, keys)
        outside = outside[permuted[outside] >= size]
    return permuted


def permute_each(indices: UInt64s, group: Integers, sizes: Integers, keys: UInt64s) -> UInt64s:
    """`permute` of each index in the permutation of its group: all groups in one go.

    `sizes` and `keys` are the groups'. 500 groups of 64 indices cost what one of 32,000 does.
    """
    size_of = sizes.astype(np.uint64).take(group)
    if (indices >= size_of).any():
        raise ValueError(f"an index is outside the permutation of its group ({sizes=})")
    permuted: UInt64s = np.empty(indices.size, np.uint64)
    is_small = size_of <= EXPLICIT_BELOW
    inside = np.flatnonzero(is_small)  # and `take`: masks of random flags are three times as slow
    if inside.size:
        small = np.flatnonzero(sizes <= EXPLICIT_BELOW)
        tables = [explicit_permutation(int(sizes[number]), int(keys[number])) for number in small]
        first = np.zeros(sizes.size, np.uint64)
        first[small] = np.cumsum(np.array([0, *map(len, tables[:-1])], np.uint64))
        places = first.take(group.take(inside)) + indices.take(inside)
        permuted[inside] = np.concatenate(tables).take(places.astype(np.intp))
    counters = np.arange(1, ROUNDS + 1, dtype=np.uint64)[:, None] * np.uint64(GOLDEN_GAMMA)
    rounds = mix64(keys + counters)
    bits = np.array([(int(size) - 1).bit_length() for size in sizes], np.uint64)
    outside = np.flatnonzero(~is_small)
    values = indices.take(outside)
    while outside.size:
        which = group.take(outside)
        values = feistel(values, bits.take(which), [keys.take(which) for keys in rounds])
        permuted[outside] = values
        again = np.flatnonzero(values >= size_of.take(outside))
        outside, values = outside.take(again), values.take(again)
    return permuted


@lru_cache(maxsize=1024)  # at most 32 MB: an epoch of a small source is asked for block after block
def explicit_permutation(size: int, key: int) -> UInt64s:
    """A whole permutation as an array, not to be changed: the ranks of keyed hashes."""
    hashes = mix64(np.arange(size, dtype=np.uint64) * np.uint64(GOLDEN_GAMMA) + np.uint64(key))
    return np.argsort(hashes).astype(np.uint64)  # all differ: any way of sorting does the same


def feistel(values: UInt64s, bits: int | UInt64s, keys: Sequence[np.uint64 | UInt64s]) -> UInt64s:
    """One pass of the network over `bits`-bit values: odd and even rounds change one half each.

    Bits and keys are those of all values, or an array with those of each.
    """
    one = np.uint64(1)
    low_bits = np.asarray(bits, np.uint64) >> one
    low_mask = (one << low_bits) - one
    high_mask = (one << (np.asarray(bits, np.uint64) - low_bits)) - one
    low, high = values & low_mask, values >> low_bits
    for number, key in enumerate(keys):
        if number % 2:
            low = low ^ (mix64(high + key) & low_mask)
        else:
            high = high ^ (mix64(low + key) & high_mask)
    joined: UInt64s = (high << low_bits) | low
    return joined
