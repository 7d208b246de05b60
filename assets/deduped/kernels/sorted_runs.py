"""Sorted runs of (key, row id): sorting them, and finding the documents that share a key.

Purpose: the inner loops of `band_index`. Keys are hashes and spread evenly, so runs are merged by
one counting sort into small buckets and an insertion sort of each, in a third of the time of a
comparison sort. The search gallops: few probes where the run is much longer than the list of wanted
keys, one pass from front to back where it is not.
Trade-off: buckets of keys that do not spread (short hashes of a test, a million equal keys) fall
back to a merge sort.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment"

import numpy as np
from numba import njit, types, uint64
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_KERNEL

NO_ROW_ID = np.uint64(0xFFFFFFFFFFFFFFFF)
_BUCKET = 16  # mean number of rows of a bucket, so few that insertion sort is the fastest
_LONG_BUCKET = 256  # rows of a bucket above which it is merge-sorted

Words = NDArray[np.uint64]
_words = types.Array(types.uint64, 1, "C", readonly=True)
_flags = types.Array(types.boolean, 1, "C", readonly=True)


@njit(types.void(types.uint64[::1], types.uint64[::1], types.int64, types.int64), **ARRAY_KERNEL)
def _sort_bucket(keys: Words, row_ids: Words, start: int, stop: int) -> None:
    """Sort keys[start:stop] and their row ids in place, stable for equal keys."""
    if stop - start > _LONG_BUCKET:
        order = np.argsort(keys[start:stop], kind="mergesort")
        unsorted_keys, unsorted_ids = keys[start:stop].copy(), row_ids[start:stop].copy()
        for i in range(len(order)):  # not as slices: see `compiling`
            keys[start + i], row_ids[start + i] = unsorted_keys[order[i]], unsorted_ids[order[i]]
        return
    for i in range(start + 1, stop):
        key, row_id, at = keys[i], row_ids[i], i
        # Strictly greater: equal keys keep their order.
        while at > start and keys[at - 1] > key:
            keys[at], row_ids[at] = keys[at - 1], row_ids[at - 1]
            at -= 1
        keys[at], row_ids[at] = key, row_id


@njit(
    types.Tuple((types.uint64[::1], types.uint64[::1]))(_words, _words, types.int64), **ARRAY_KERNEL
)
def sort_by_key(keys: Words, row_ids: Words, prefix_bits: int) -> tuple[Words, Words]:
    """Sort keys, uint64 [n], and their row ids, uint64 [n], by key, stable for equal keys.

    All keys must share their first `prefix_bits` bits.
    """
    bits = 1
    while bits < 24 and len(keys) >> bits > _BUCKET:
        bits += 1
    # A key's bucket is its first bits behind the prefix, so buckets ascend as keys do.
    left, right = uint64(prefix_bits), uint64(64 - bits)
    ends = np.zeros((1 << bits) + 1, np.int64)
    for key in keys:
        ends[np.int64(uint64(key << left) >> right) + 1] += 1
    for bucket in range(1 << bits):
        ends[bucket + 1] += ends[bucket]
    sorted_keys, sorted_row_ids = np.empty_like(keys), np.empty_like(row_ids)
    # ends[bucket] is the bucket's start before this loop, and its end after it.
    for i in range(len(keys)):
        bucket = np.int64(uint64(keys[i] << left) >> right)
        at = ends[bucket]
        sorted_keys[at], sorted_row_ids[at] = keys[i], row_ids[i]
        ends[bucket] = at + 1
    start = 0
    for bucket in range(1 << bits):
        _sort_bucket(sorted_keys, sorted_row_ids, start, ends[bucket])
        start = ends[bucket]
    return sorted_keys, sorted_row_ids


@njit(types.int64(_words, types.int64, types.uint64), **ARRAY_KERNEL)
def _seek(keys: Words, start: int, wanted: int) -> int:
    """Return the first position from `start` on whose key is not below `wanted`, by galloping."""
    low, step = start, 1
    # Doubling steps: a key that is d places ahead costs about 2 log2(d) probes.
    while low + step < len(keys) and keys[low + step] < wanted:
        low += step
        step *= 2
    # Bisect between the last two probes.
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
    **ARRAY_KERNEL,
)
def find_earlier(
    wanted: tuple[Words, Words],
    run: tuple[Words, Words],
    is_live: NDArray[np.bool_],
    first: Words,
    last: Words,
) -> None:
    """Find the first and the last live row id of a run with the key of each wanted one, before it.

    `wanted` and `run` are (keys, row ids), uint64, sorted by key, then row id. `is_live` is indexed
    by part, the upper half of a row id. `first` and `last`, uint64 [wanted], start as NO_ROW_ID and
    are updated in place. Call it for several runs in ascending order of their row ids.
    """
    (wanted_keys, wanted_row_ids), (keys, row_ids) = wanted, run
    i, at = 0, 0
    while i < len(wanted_keys):
        key = wanted_keys[i]
        at = _seek(keys, at, key)
        run_first, run_last = NO_ROW_ID, NO_ROW_ID
        # Row ids of equal keys ascend in both lists: `at` never goes back.
        while i < len(wanted_keys) and wanted_keys[i] == key:
            while at < len(keys) and keys[at] == key and row_ids[at] < wanted_row_ids[i]:
                if is_live[np.int64(row_ids[at] >> uint64(32))]:
                    run_last = row_ids[at]
                    if run_first == NO_ROW_ID:
                        run_first = run_last
                at += 1
            # Runs come in ascending order: the first is that of the first run with a match.
            if run_first != NO_ROW_ID:
                if first[i] == NO_ROW_ID:
                    first[i] = run_first
                last[i] = run_last
            i += 1
