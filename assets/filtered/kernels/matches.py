"""Find the places of a regex's matches, and those in the same text as one before."""
# mypy: disable-error-code="untyped-decorator, no-any-return, return-value"

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_KERNEL, KERNEL

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]

_BASE = uint64(0x9E3779B97F4A7C15)
_SLOT_BITS = 12
_HASHED = 48  # bytes from a candidate's first on, by which candidates meet
_PRIME = uint64(0x100000001B3)


@njit(**KERNEL)
def _find(data: Bytes, span: tuple[int, int], words: Bytes, word: tuple[int, int]) -> int:
    """Return the first place in data[span] of words[word], which is there: by a rolling hash.

    A plain comparison at each place would be quadratic where texts repeat themselves.
    """
    at, stop = span
    first, size = word[0], word[1] - word[0]
    wanted, own, power = uint64(0), uint64(0), uint64(1)
    for i in range(size):
        wanted = wanted * _BASE + uint64(words[first + i])
        own = own * _BASE + uint64(data[at + i])
        power *= _BASE
    while at + size < stop:
        if own == wanted:
            same = 0
            while same < size and data[at + same] == words[first + same]:
                same += 1
            if same == size:
                return at
        own = own * _BASE + uint64(data[at + size]) - power * uint64(data[at])
        at += 1
    return at


@njit(**ARRAY_KERNEL)
def find_again(
    data: Bytes, windows: Integers, lists: Integers, ends: Integers, words: Bytes
) -> Integers:
    """Return row, first byte and end of n matches in windows of the data, int64 [n, 3].

    windows: int64 [w, 3]: row, first byte, end. lists: int64 [w + 1]: the first match of each;
    ends: int64 [n + 1]: where matches begin and end in `words`. Matches are in order and without
    overlap, and their regex reads nothing beside them: each is at the first place it could be at.
    """
    places = np.empty((len(ends) - 1, 3), np.int64)
    for window in range(len(windows)):
        row, at, stop = windows[window]
        for match in range(lists[window], lists[window + 1]):
            word = (ends[match], ends[match + 1])
            at = _find(data, (at, stop), words, word)
            end = at + word[1] - word[0]
            places[match] = row, at, end
            at = end
    return places


@njit(**ARRAY_KERNEL)
def _slot(data: Bytes, start: int, stop: int) -> int:
    key = uint64(0xCBF29CE484222325)
    for byte in data[start : min(stop, start + _HASHED)]:
        key = (key ^ uint64(byte)) * _PRIME
    return np.int64(key >> uint64(64 - _SLOT_BITS))


@njit(**ARRAY_KERNEL)
def first_alike(
    data: Bytes, offsets: Integers, places: Integers, before: int, after: int
) -> Integers:
    """Return the number of an earlier candidate with the same text around, or its own, int64 [n].

    places: int64 [n, 3]: row, first byte, end. All of a candidate, `before` bytes before it and
    `after` bytes after it are compared, as far as its text goes; some that are alike may be missed.
    """
    firsts = np.arange(len(places))
    lasts = np.full(1 << _SLOT_BITS, -1)
    # What is known to be the same as that `shift` bytes before is not read again: a text of one
    # repeated word has all of its candidates at one distance.
    shift, known, stop = 0, 0, 0
    for i in range(len(places)):
        row, start, end = places[i]
        low, high = max(offsets[row], start - before), min(offsets[row + 1], end + after)
        slot = _slot(data, start, high)
        j, lasts[slot] = lasts[slot], i
        if j < 0:
            continue
        other, first, last = places[j]
        is_alike = end - start == last - first
        is_alike &= start - low == first - max(offsets[other], first - before)
        is_alike &= high - end == min(offsets[other + 1], last + after) - last
        if not is_alike:
            continue
        if start - first != shift or not known <= low <= stop:
            shift, known, stop = start - first, low, low
        while stop < high and data[stop] == data[stop - shift]:
            stop += 1
        if stop >= high:
            firsts[i] = firsts[j]
    return firsts
