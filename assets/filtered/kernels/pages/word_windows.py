"""Count what repeats itself within windows of WINDOW words.

Repetition within windows does not grow with the length of the text.
Method: words are compared by hashes. A small table has the number, from 1, of the last copy of each
word of a window, so that a run of GRAM words is compared with the earlier places of its last word.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

from typing import NamedTuple

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from assets.filtered.kernels.pages.page_counts import Bytes, Form, Integers
from assets.filtered.kernels.pages.sign_masks import Signs
from assets.text.kernels.compiling import INLINED, KERNEL
from assets.text.kernels.hashing import INCREMENT, absorb
from assets.text.kernels.many_bytes import EIGHT, ONE, first_one, read_8, read_some

Hashes = NDArray[np.uint64]

WINDOW = 128  # words
GRAM = 4  # words
SLOT_BITS = 10
SLOTS = 1 << SLOT_BITS  # of a window's table: an eighth full at most


class Seen(NamedTuple):
    """Copies of the words of a window, which are numbered from 1; 0 for none."""

    lasts: Bytes  # the last copy of each word so far, uint8 [SLOTS], by hash
    before: Bytes  # the copy before each word, uint8 [WINDOW + 1]


@njit(**INLINED)
def hash_words(data: Bytes, at: int, signs: Signs, keys: Hashes, count: int) -> int:
    """Append the hashes of the words of a mask to the first `count`; return their new number.

    keys: uint64 [1 + WINDOW + 64], from 1 on.
    """
    words, singles = signs.words, signs.singles
    starts = words & ~(words << ONE) ^ (singles | singles >> ONE)
    ends = ~words & (words << ONE) ^ (singles << ONE | singles << uint64(2))
    while starts:
        first, size = at + first_one(starts), first_one(ends) - first_one(starts)
        starts &= starts - ONE
        ends &= ends - ONE
        count += ONE
        if size <= uint64(16):
            low, high = read_8(data, first), read_8(data, first + EIGHT)
            unused = EIGHT * (EIGHT - size & uint64(7))
            is_long = size > EIGHT
            low &= ~uint64(0) if is_long else ~uint64(0) >> unused
            high &= ~uint64(0) >> unused if is_long else uint64(0)
            keys[count] = _key_of(size, low, high)
        else:
            keys[count] = hash_word(data, first, first + size)
    return count


@njit(**INLINED)
def _key_of(size: int, low: int, high: int) -> int:
    return absorb(absorb(size * INCREMENT, low), high) * INCREMENT


@njit(**KERNEL)
def hash_word(data: Bytes, start: int, stop: int) -> int:
    """Return the hash of a word, which is not empty."""
    size = stop - start
    key = size * INCREMENT
    while start + uint64(16) < stop:
        key = absorb(key, read_8(data, start))
        start += EIGHT
    low = read_some(data, start, min(stop - start, EIGHT))
    start += EIGHT
    high = read_some(data, start, stop - start) if start < stop else uint64(0)
    return absorb(absorb(key, low), high) * INCREMENT


@njit(**INLINED)
def count_full_window(keys: Hashes, num_keys: int, seen: Seen, counts: Integers) -> int:
    """Count WINDOW of the hashes, if there are as many, and return the number of those left."""
    if num_keys >= uint64(WINDOW):
        count_window(keys, WINDOW, seen, counts)
        num_keys -= uint64(WINDOW)
        for i in range(num_keys):
            keys[uint64(i) + ONE] = keys[uint64(i) + uint64(WINDOW + 1)]
    return num_keys


@njit(**KERNEL)
def count_window(keys: Hashes, size: int, seen: Seen, counts: Integers) -> None:
    """Count the words, numbered from 1, that are new, and the runs of GRAM that are not.

    keys: uint64, from 1 on; the first is overwritten. seen: all zeros, as it is again afterwards.
    """
    lasts, before = seen
    distinct = repeated = known = 0
    for place in range(1, size + 1):
        key = keys[uint64(place)]
        keys[0] = key  # a free slot's: one test, since as many words are new as not
        slot = key >> uint64(64 - SLOT_BITS)
        while keys[lasts[slot]] != key:
            slot = (slot + ONE) & uint64(SLOTS - 1)
        is_new = np.int64(lasts[slot] == 0)
        before[uint64(place)] = lasts[slot]
        lasts[slot] = place
        distinct, known = distinct + is_new, (known + 1) * (1 - is_new)
        if known >= GRAM:  # if the words were there before, so was each of them
            repeated += _is_repeated(keys, before, uint64(place))
    lasts[:] = 0
    counts[Form.WINDOW_WORDS] += size
    counts[Form.WINDOW_DISTINCT] += distinct
    counts[Form.WINDOW_REPEATED] += repeated


@njit(**INLINED)
def _is_repeated(keys: Hashes, before: Bytes, last: int) -> int:
    """Return 1 if the GRAM words that end at `last` are in the window before, too, else 0."""
    at = uint64(before[last])
    while at >= GRAM:
        is_equal = True
        for i in range(1, GRAM):
            is_equal &= keys[at - uint64(i)] == keys[last - uint64(i)]
        if is_equal:
            return 1
        at = uint64(before[at])
    return 0
