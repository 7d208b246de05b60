"""Find the places of a regex's matches, of which only the texts are known."""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from assets.text.kernels.compiling import KERNEL

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]

_options = {"cache": True, "nogil": True}  # of a function that makes arrays
_BASE = uint64(0x9E3779B97F4A7C15)


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


@njit(**_options)
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
