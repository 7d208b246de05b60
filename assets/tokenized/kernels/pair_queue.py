"""Counts of pairs of tokens, and the queue that says which pair is merged next.

A pair is one number: first id << 32 | second id. The queue is a binary heap whose top has the
highest count, of equal counts the lowest pair; a pair may be in it several times. An entry of
either fits in a cache line. Both need room before something is entered.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, return-value"

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from assets.text.kernels.hashing import MULTIPLIER

COUNT, PAIR, START, STOP = 0, 1, 2, 3  # of a queue's entry; the words of START:STOP have the pair

Pairs = NDArray[np.int64]  # [slots, 2], a power of two: pair + 1 (0: free), count
Queue = NDArray[np.int64]  # [most, 4]
Entry = tuple[int, int, int, int]

_options = {"cache": True, "nogil": True}
_inlined = {**_options, "forceinline": True}


@njit(**_inlined)
def pair_of(first: int, second: int) -> int:
    """Return the number of a pair."""
    return np.int64(first) << 32 | np.int64(second)


@njit(**_inlined)
def slot_of(pair: int, pairs: Pairs) -> int:
    """Slot of a pair, uint64; a free one if it is not there."""
    mask = uint64(len(pairs) - 1)
    mixed = uint64(pair) * MULTIPLIER
    slot = (mixed ^ (mixed >> uint64(32))) & mask
    while pairs[slot, 0] != 0 and pairs[slot, 0] != pair + 1:
        slot = (slot + uint64(1)) & mask
    return slot


@njit(**_inlined)
def add_to_pair(pairs: Pairs, pair: int, amount: int) -> int:
    """Add to a pair's count; 1 if the pair is new, else 0."""
    slot = slot_of(pair, pairs)
    is_new = pairs[slot, 0] == 0
    pairs[slot, 0] = pair + 1
    pairs[slot, 1] += amount
    return np.int64(is_new)


@njit(**_options)
def larger_pairs(pairs: Pairs) -> Pairs:
    """Return the table with twice the slots."""
    larger = np.zeros((2 * len(pairs), 2), np.int64)
    for row in range(len(pairs)):
        if pairs[row, 0] != 0:
            add_to_pair(larger, pairs[row, 0] - 1, pairs[row, 1])
    return larger


@njit(**_inlined)
def _is_before(queue: Queue, at: int, count: int, pair: int) -> bool:
    return queue[at, COUNT] > count or (queue[at, COUNT] == count and queue[at, PAIR] < pair)


@njit(**_inlined)
def _move(queue: Queue, source: int, target: int) -> None:
    for field in range(4):
        queue[target, field] = queue[source, field]


@njit(**_inlined)
def _write(queue: Queue, at: int, entry: Entry) -> None:
    queue[at, COUNT], queue[at, PAIR], queue[at, START], queue[at, STOP] = entry


@njit(**_options)
def push(queue: Queue, size: int, entry: Entry) -> None:
    """Enter (count, pair, start, stop) into a queue of `size` entries."""
    at = uint64(size)
    while at > 0:
        above = (at - uint64(1)) >> uint64(1)
        if _is_before(queue, above, entry[COUNT], entry[PAIR]):
            break
        _move(queue, above, at)
        at = above
    _write(queue, at, entry)


@njit(**_options)
def replace_top(queue: Queue, size: int, entry: Entry) -> None:
    """Put an entry where it belongs instead of the top of a queue of `size` entries."""
    at, below, end = uint64(0), uint64(1), uint64(size)
    while below < end:
        right = below + uint64(1)
        if right < end and _is_before(queue, right, queue[below, COUNT], queue[below, PAIR]):
            below = right
        if not _is_before(queue, below, entry[COUNT], entry[PAIR]):
            break
        _move(queue, below, at)
        at, below = below, (below << uint64(1)) + uint64(1)
    _write(queue, at, entry)


@njit(**_options)
def pop(queue: Queue, size: int, pairs: Pairs) -> tuple[int, Entry]:
    """Take the first entry whose count still holds: (entries left, entry); count 0: none is left.

    A count that has changed is corrected on the way.
    """
    while size > 0:
        entry = (queue[0, COUNT], queue[0, PAIR], queue[0, START], queue[0, STOP])
        count = pairs[slot_of(entry[PAIR], pairs), 1]
        if count == entry[COUNT]:
            end = size - 1
            last = (queue[end, COUNT], queue[end, PAIR], queue[end, START], queue[end, STOP])
            replace_top(queue, end, last)
            return end, entry
        replace_top(queue, size, (count, entry[PAIR], entry[START], entry[STOP]))
    return 0, (0, 0, 0, 0)
