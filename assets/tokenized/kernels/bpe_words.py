"""Merge a pair of tokens in one word, and note what stands beside it.

Words lie end to end in one array, so that a step reads a word's size, count and ids at one place.
The neighbours are added up by id: the big table of pairs is then touched once per distinct pair.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

AMOUNT, WORDS, LAST = range(3)  # of `sums`: count, words listed, the last of them

Integers = NDArray[np.int64]
Words = NDArray[np.int32]  # size, count and ids of each word, end to end; sizes shrink


class Side(NamedTuple):
    """The neighbours on one side of what a step merges."""

    sums: Integers  # [ids, 3]
    ids: Integers  # [ids], those that there are
    found: NDArray[np.uint32]  # [most, 2], (id, word) of each word listed
    sizes: Integers  # [2], how many of `ids` and `found`


@njit(cache=True, nogil=True, forceinline=True)
def meet(side: Side, number: int, amount: int, word: int) -> None:
    """Count a neighbour, and list its word once."""
    sums = side.sums
    if sums[number, WORDS] == 0:
        side.ids[side.sizes[0]] = number
        side.sizes[0] += 1
    sums[number, AMOUNT] += amount
    if sums[number, WORDS] == 0 or sums[number, LAST] != word:
        sums[number, WORDS] += 1
        sums[number, LAST] = word
        listed = side.sizes[1]
        side.found[listed, 0], side.found[listed, 1] = number, word
        side.sizes[1] = listed + 1


@njit(cache=True, nogil=True)
def merge_word(
    words: Words, word: int, merge: tuple[int, int, int], sides: tuple[Side, Side]
) -> None:
    """Merge a pair in one word and count what stood beside it."""
    first, second, new = merge
    left, right = sides
    at = np.int64(word) + 2
    end, count = at + words[word], words[word + 1]
    begin = at
    while at + 1 < end and not (words[at] == first and words[at + 1] == second):
        at += 1
    if at + 1 >= end:
        return
    out = at
    while at < end:
        if at + 1 < end and words[at] == first and words[at + 1] == second:
            at += 2
            if out > begin:
                meet(left, words[out - 1], count, word)
            if at < end:
                meet(right, words[at], count, word)
            words[out] = new
        else:
            words[out] = words[at]
            at += 1
        out += 1
    words[word] = out - begin
