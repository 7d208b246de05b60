"""Numbers of pairs of tokens, and a queue of the pairs to merge next.

Both are those of `BpeTrainer` in `tokenizers` (models/bpe/trainer.rs): the most frequent pair comes
first, of equally frequent ones the pair of the lowest ids. An entry of the queue keeps the number
that its pair had when it was added; the trainer corrects it when it comes first.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import Any

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_INLINED, ARRAY_KERNEL
from assets.text.kernels.hashing import MULTIPLIER

Table = NDArray[np.uint64]  # [slots, 3], a power of two, half of them free
Queue = NDArray[np.int64]  # [entries, 4]: see the columns
Changes = NDArray[np.int64]  # [changes, 2]: the slot of a pair, and a word in which it is new
Places = NDArray[np.int32]  # the words of each entry of the queue

NO_PAIR = uint64(0xFFFFFFFFFFFFFFFF)
HALF = uint64(32)
NUMBER, MET = 1, 2  # columns of the table after the pair
COUNT, PAIR, START, STOP = range(4)  # columns of the queue; a range of places


@njit(**ARRAY_INLINED)
def pair_slot(table: Table, pair: int) -> int:
    """Return the slot of a pair: from that of its hash on, its own or the first free one."""
    mask = uint64(len(table) - 1)
    slot = (pair * MULTIPLIER >> HALF) & mask
    while table[slot, 0] != pair and table[slot, 0] != NO_PAIR:
        slot = (slot + uint64(1)) & mask
    return slot


@njit(**ARRAY_INLINED)
def add_to(table: Table, pair: int, number: int) -> tuple[int, bool]:
    """Add to the number of a pair; return its slot, and whether it is new in the table."""
    slot = pair_slot(table, pair)
    is_new = table[slot, 0] == NO_PAIR
    if is_new:
        table[slot, 0], table[slot, NUMBER], table[slot, MET] = pair, uint64(0), uint64(0)
    table[slot, NUMBER] += uint64(number)
    return slot, is_new


@njit(**ARRAY_KERNEL)
def with_slots(table: Table, used: int) -> Table:
    """Return a table that `used` pairs fill by half at most: the same, or a larger one."""
    size = len(table)
    while size < 2 * used:
        size *= 2
    if size == len(table):
        return table
    larger = np.full((size, 3), NO_PAIR, np.uint64)
    for old in range(len(table)):
        if table[old, 0] != NO_PAIR:
            slot = pair_slot(larger, table[old, 0])
            larger[slot] = table[old]
    return larger


@njit(**ARRAY_INLINED)
def is_before(queue: Queue, one: int, other: int) -> bool:
    """Check whether an entry of the queue comes before another."""
    if queue[one, COUNT] != queue[other, COUNT]:
        return queue[one, COUNT] > queue[other, COUNT]
    if queue[one, PAIR] != queue[other, PAIR]:
        return queue[one, PAIR] < queue[other, PAIR]
    return queue[one, START] < queue[other, START]


@njit(**ARRAY_INLINED)
def swap(queue: Queue, one: int, other: int) -> None:
    """Swap two entries."""
    for column in range(4):
        kept = queue[one, column]
        queue[one, column] = queue[other, column]
        queue[other, column] = kept


@njit(**ARRAY_KERNEL)
def sift_down(queue: Queue, size: int) -> None:
    """Move the first of `size` entries behind those that come before it."""
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and is_before(queue, child + 1, child):
            child += 1
        if not is_before(queue, child, at):
            return
        swap(queue, at, child)
        at = child


@njit(**ARRAY_KERNEL)
def sift_up(queue: Queue, at: int) -> None:
    """Move entry `at`, the last one, before those that come after it."""
    while at > 0 and is_before(queue, at, (at - 1) // 2):
        swap(queue, at, (at - 1) // 2)
        at = (at - 1) // 2


@njit(**ARRAY_KERNEL)
def take_first(queue: Queue, size: int, table: Table) -> tuple[int, Any, Any, Any, Any]:
    """Take out the first entry, once its number is that of today.

    Returns the size of the queue, the number of the pair (0 if there is none), the pair, uint64,
    and the range of places.
    """
    while size > 0:
        pair = uint64(queue[0, PAIR])
        number = np.int64(table[pair_slot(table, pair), NUMBER])
        is_current = queue[0, COUNT] == number
        queue[0, COUNT] = number
        start, stop = queue[0, START], queue[0, STOP]
        if is_current:
            size -= 1
            queue[0] = queue[size]
        sift_down(queue, size)
        if is_current:
            return size, number, pair, start, stop
    return 0, 0, uint64(0), 0, 0


@njit(**ARRAY_KERNEL)
def group_places(
    changes: Changes, table: Table, words: Places, used: Any
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], Any]:
    """Write the words of the changes to `words` from `used` on, those of a pair side by side.

    Returns the slot of each pair in the table, and the start and end of its words; then the end of
    all.
    """
    slots = np.empty(len(changes), np.int64)
    num_pairs = 0
    for i in range(len(changes)):
        slot = changes[i, 0]
        if table[slot, MET] == 0:
            slots[num_pairs] = slot
            num_pairs += 1
        table[slot, MET] += uint64(1)
    starts = np.empty(num_pairs, np.int64)
    for i in range(num_pairs):
        starts[i] = used
        used += np.int64(table[slots[i], MET])
        table[slots[i], MET] = uint64(i)
    ends = starts.copy()
    for i in range(len(changes)):
        pair, word = table[changes[i, 0], MET], changes[i, 1]
        end = ends[pair]
        if end == starts[pair] or words[end - 1] != word:  # a word may have a pair many times
            words[end] = word
            ends[pair] = end + 1
    return slots[:num_pairs], starts, ends, used


@njit(**ARRAY_KERNEL)
def queue_pairs(
    changes: Changes, table: Table, queue: tuple[Queue, int], places: tuple[Places, int]
) -> tuple[Queue, int, Places, int]:
    """Add an entry for each pair of the changes, with the words in which it is new.

    The slots of the changes are those of the table as it is now.
    Returns the queue and its size, the places and their number.
    """
    entries, size = queue
    words, used = places
    while used + len(changes) > len(words):
        words = np.concatenate((words, np.empty_like(words)))
    slots, starts, ends, used = group_places(changes, table, words, used)
    while size + len(slots) > len(entries):
        entries = np.concatenate((entries, np.empty_like(entries)))
    for i in range(len(slots)):
        pair, number = table[slots[i], 0], np.int64(table[slots[i], NUMBER])
        table[slots[i], MET] = uint64(0)
        if number > 0:
            entries[size, COUNT], entries[size, PAIR] = number, np.int64(pair)
            entries[size, START], entries[size, STOP] = starts[i], ends[i]
            sift_up(entries, size)
            size += 1
    return entries, size, words, used
