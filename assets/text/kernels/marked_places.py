"""Find the places of a text, or of any bytes, whose check is in a set.

The check of a passage comes from a hash that rolls: one multiplication a byte, however long the
passage. A bit per possible prefix of a check turns nearly all places down; those that are left are
compared with all checks, and by the caller with a digest.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import njit, uint32, uint64
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_INLINED, ARRAY_KERNEL
from assets.text.kernels.hashing import INCREMENT, MULTIPLIER, finish
from assets.text.kernels.many_bytes import read_8

Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int64]
Checks = NDArray[np.uint32]
PASSAGE_BYTES = 64
FILTER_BITS = 22
RUN_WORDS = 5
KEPT_RUNS = 1 << 30  # hashes below it, a quarter of all
BASE = uint64(0x5851F42D4C957F2D)
ID_BYTES = 16


@njit(**ARRAY_INLINED)
def _is_in(check: int, checks: Checks, bits: Bytes) -> bool:
    prefix = uint64(check) >> uint64(32 - FILTER_BITS)
    if not bits[prefix >> uint64(3)] >> (prefix & uint64(7)) & uint64(1):
        return False
    place = np.searchsorted(checks, check)
    return bool(place < len(checks) and checks[place] == check)


@njit(**ARRAY_INLINED)
def _check_of(key: int) -> int:
    return uint32(finish(key) >> uint64(32))


@njit(**ARRAY_KERNEL)
def passage_checks(joined: Bytes, starts: Offsets) -> Checks:
    """Return the check of the PASSAGE_BYTES bytes from each start on, uint32 [n]."""
    checks = np.empty(len(starts), np.uint32)
    for number, start in enumerate(starts):
        key = uint64(0)
        for place in range(start, start + PASSAGE_BYTES):
            key = key * BASE + uint64(joined[place])
        checks[number] = uint32(key >> uint64(32))
    return checks


@njit(**ARRAY_KERNEL)
def find_passages(
    joined: Bytes, edges: Offsets, checks: Checks, bits: Bytes, most: int
) -> tuple[Offsets, int]:
    """Find where passages of n texts have a check of the sorted `checks`, not across texts.

    Text i is joined[edges[i]:edges[i + 1]]. Returns the first `most` positions, int64, and the
    number of all.
    """
    found, count = np.empty(most, np.int64), 0
    out, last = uint64(1), uint64(PASSAGE_BYTES - 1)
    # What the first byte of a passage has been multiplied by, to take it out again.
    for _ in range(PASSAGE_BYTES - 1):
        out *= BASE
    for text in range(len(edges) - 1):
        start, stop = edges[text], edges[text + 1]
        if stop - start < PASSAGE_BYTES:
            continue
        key = uint64(0)
        for place in range(uint64(start), uint64(start + PASSAGE_BYTES - 1)):
            key = key * BASE + uint64(joined[place])
        for place in range(uint64(start), uint64(stop - PASSAGE_BYTES + 1)):
            key = key * BASE + uint64(joined[place + last])
            # The upper half: low bits of the key depend on the low bits of bytes alone.
            if _is_in(uint32(key >> uint64(32)), checks, bits):
                if count < most:
                    found[count] = place
                count += 1
            key -= out * uint64(joined[place])
    return found[: min(count, most)], count


@njit(**ARRAY_KERNEL)
def hash_runs(joined: Bytes, starts: Offsets, offsets: Offsets) -> tuple[Checks, Offsets]:
    """Hash every run of five words, numbers left out, of n texts; one in four hashes is kept.

    Words are as of `join_words`. Returns the hashes, uint32, and those of text i at
    edges[i]:edges[i + 1], int64.
    """
    checks, edges = np.empty(len(starts), np.uint32), np.zeros(len(offsets), np.int64)
    last = np.empty(RUN_WORDS, np.uint64)  # hashes of the last words, in a ring
    count = 0
    for text in range(len(offsets) - 1):
        words = 0
        for word in range(offsets[text], offsets[text + 1]):
            key, is_number = uint64(0), True
            for place in range(starts[word], starts[word + 1]):
                key = key * BASE + uint64(joined[place])
                is_number &= joined[place] == 32 or 48 <= joined[place] <= 57
            if is_number:
                continue
            last[words % RUN_WORDS] = finish(key)
            words += 1
            if words < RUN_WORDS:
                continue
            key = uint64(0)
            # From the oldest word of the ring, which is at `words` now.
            for place in range(words, words + RUN_WORDS):
                key = key * BASE + last[place % RUN_WORDS]
            check = _check_of(key)
            if check < KEPT_RUNS:
                checks[count] = check
                count += 1
        edges[text + 1] = count
    return checks[:count], edges


@njit(**ARRAY_INLINED)
def _id_check(low: int, high: int) -> int:
    return _check_of((low * MULTIPLIER) ^ (high * INCREMENT))


@njit(**ARRAY_KERNEL)
def id_checks(ids: Bytes) -> Checks:
    """Return the check of each id of 16 bytes, uint32 [n]."""
    count = len(ids) // ID_BYTES
    checks = np.empty(count, np.uint32)
    for number in range(count):
        at = uint64(number * ID_BYTES)
        checks[number] = _id_check(read_8(ids, at), read_8(ids, at + uint64(8)))
    return checks


@njit(**ARRAY_KERNEL)
def find_ids(data: Bytes, checks: Checks, bits: Bytes, most: int) -> tuple[Offsets, int]:
    """Find where 16 bytes have the check of an id, at any place: the first `most`, and how many."""
    found, count = np.empty(most, np.int64), 0
    for place in range(uint64(max(0, len(data) - ID_BYTES + 1))):
        low, high = read_8(data, place), read_8(data, place + uint64(8))
        if _is_in(_id_check(low, high), checks, bits):
            if count < most:
                found[count] = place
            count += 1
    return found[: min(count, most)], count


@njit(**ARRAY_INLINED)
def _digit(byte: int) -> int:
    if 48 <= byte <= 57:
        return byte - 48
    return byte - 87 if 97 <= byte <= 102 else -1


@njit(**ARRAY_KERNEL)
def find_hex_ids(data: Bytes, checks: Checks, bits: Bytes, most: int) -> tuple[Offsets, int]:
    """Find runs of 32 small hex digits with the check of an id: the first `most`, and how many."""
    found, count = np.empty(most, np.int64), 0
    spelled = np.empty(ID_BYTES, np.uint8)
    run = 0
    for place in range(len(data)):
        run = run + 1 if _digit(data[place]) >= 0 else 0
        if run < 2 * ID_BYTES:
            continue
        # In a longer run an id may begin at any digit.
        start = place - 2 * ID_BYTES + 1
        for i in range(ID_BYTES):
            spelled[i] = _digit(data[start + 2 * i]) << 4 | _digit(data[start + 2 * i + 1])
        if _is_in(_id_check(read_8(spelled, uint64(0)), read_8(spelled, uint64(8))), checks, bits):
            if count < most:
                found[count] = start
            count += 1
    return found[: min(count, most)], count


@njit(**ARRAY_KERNEL)
def spell(ids: NDArray[np.uint32], spelled: tuple[Bytes, Offsets], is_mark: Bytes) -> Bytes:
    """Return the bytes of token ids end to end; a zero in place of marks and unknown ids.

    `spelled` are the bytes of every id end to end, and their edges, int64 [ids + 1].
    """
    data, edges = spelled
    size = 0
    for token in ids:
        is_known = token < len(is_mark) and not is_mark[token]
        size += edges[token + 1] - edges[token] if is_known else 1
    written = np.zeros(size, np.uint8)
    at = 0
    for token in ids:
        if token < len(is_mark) and not is_mark[token]:
            for place in range(edges[token], edges[token + 1]):
                written[at] = data[place]
                at += 1
        else:
            at += 1
    return written
