"""Sorted runs of (key, ref): merging them, and finding the documents that share a key.

Purpose: the inner loops of the index of `band_index`. Keys are hashes and spread evenly, so runs
are merged by one counting sort into small buckets and a look inside each: 25 ns an entry, a third
of a comparison sort. A search gallops: a run that is much longer than what is looked up is read at
the few places that matter, one that is not much longer from front to back.
Trade-off: keys that do not spread (a test's short hashes, a million equal ones) fall back to a
merge sort of their bucket.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment"

import numpy as np
from numba import njit, types, uint64
from numpy.typing import NDArray

NO_REF = np.uint64(0xFFFFFFFFFFFFFFFF)
_BUCKET = 16  # entries: what an insertion sort does faster than anything else
_LONG_BUCKET = 256

Words = NDArray[np.uint64]
_words = types.Array(types.uint64, 1, "C", readonly=True)
_flags = types.Array(types.boolean, 1, "C", readonly=True)
_options = {"cache": True, "nogil": True}


@njit(types.void(types.uint64[::1], types.uint64[::1], types.int64, types.int64), **_options)
def _sort_bucket(keys: Words, refs: Words, start: int, stop: int) -> None:
    """Sort keys[start:stop] and their refs; refs of equal keys stay in order."""
    if stop - start > _LONG_BUCKET:
        order = np.argsort(keys[start:stop], kind="mergesort")
        keys[start:stop] = keys[start:stop][order]
        refs[start:stop] = refs[start:stop][order]
        return
    for i in range(start + 1, stop):
        key, ref, at = keys[i], refs[i], i
        while at > start and keys[at - 1] > key:
            keys[at], refs[at] = keys[at - 1], refs[at - 1]
            at -= 1
        keys[at], refs[at] = key, ref


@njit(types.Tuple((types.uint64[::1], types.uint64[::1]))(_words, _words, types.int64), **_options)
def sort_entries(keys: Words, refs: Words, prefix_bits: int) -> tuple[Words, Words]:
    """Keys, uint64 [n], ascending, and their refs, uint64 [n]; refs of equal keys stay in order.

    All keys share their first `prefix_bits` bits.
    """
    bits = 1
    while bits < 24 and len(keys) >> bits > _BUCKET:
        bits += 1
    left, right = uint64(prefix_bits), uint64(64 - bits)
    ends = np.zeros((1 << bits) + 1, np.int64)
    for key in keys:
        ends[np.int64(uint64(key << left) >> right) + 1] += 1
    for bucket in range(1 << bits):
        ends[bucket + 1] += ends[bucket]
    sorted_keys, sorted_refs = np.empty_like(keys), np.empty_like(refs)
    for i in range(len(keys)):
        bucket = np.int64(uint64(keys[i] << left) >> right)
        at = ends[bucket]
        sorted_keys[at], sorted_refs[at] = keys[i], refs[i]
        ends[bucket] = at + 1
    start = 0
    for bucket in range(1 << bits):
        _sort_bucket(sorted_keys, sorted_refs, start, ends[bucket])
        start = ends[bucket]
    return sorted_keys, sorted_refs


@njit(types.int64(_words, types.int64, types.uint64), **_options)
def _seek(keys: Words, start: int, wanted: int) -> int:
    """First position from `start` on whose key is not below `wanted`, galloping."""
    low, step = start, 1
    while low + step < len(keys) and keys[low + step] < wanted:
        low += step
        step *= 2
    high = min(low + step, len(keys))
    while low < high:
        middle = (low + high) // 2
        if keys[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@njit(
    types.void(
        types.UniTuple(_words, 2),
        types.UniTuple(_words, 2),
        _flags,
        types.uint64[::1],
        types.uint64[::1],
    ),
    **_options,
)
def find_earlier(
    wanted: tuple[Words, Words],
    entries: tuple[Words, Words],
    is_live: NDArray[np.bool_],
    first: Words,
    last: Words,
) -> None:
    """For each wanted (key, ref) the first and last live ref below it among entries of that key.

    Both are (keys, refs), sorted by key, then ref. `first` and `last`, uint64 [wanted], start as
    NO_REF and are changed in place; call it for several runs in ascending order of their refs.
    `is_live` is indexed by part, the upper half of a ref.
    """
    (wanted_keys, wanted_refs), (keys, refs) = wanted, entries
    i, at = 0, 0
    while i < len(wanted_keys):
        key = wanted_keys[i]
        at = _seek(keys, at, key)
        found_first, found_last = NO_REF, NO_REF
        while i < len(wanted_keys) and wanted_keys[i] == key:
            while at < len(keys) and keys[at] == key and refs[at] < wanted_refs[i]:
                if is_live[np.int64(refs[at] >> uint64(32))]:
                    found_last = refs[at]
                    if found_first == NO_REF:
                        found_first = found_last
                at += 1
            if found_first != NO_REF:
                if first[i] == NO_REF:
                    first[i] = found_first
                last[i] = found_last
            i += 1
