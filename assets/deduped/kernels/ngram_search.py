"""Runs of words or characters of documents that a table of n-grams holds.

Purpose: find every n-gram that stands in a text, of whatever lengths, without a look at every
window. A *unit* is a word with the blank after it, or a character; n-grams are bytes of whole
units, the shortest has `stride + gram - 1` of them. So each n-gram in a text covers a gram (a run
of `gram` units) that begins at a multiple of `stride`, and of the text only those grams are hashed
(one of six for 13 words, of 25 for 50 characters) and asked from a Bloom filter of the grams of all
n-grams. Where it says yes, the windows around that begin as an n-gram begins (another question to
the filter) are hashed in every length, looked up, and compared byte by byte: a hash never decides.
Price: see `contamination`.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from assets.text.kernels.hashing import INCREMENT, hash_bytes
from assets.text.kernels.many_bytes import ONE
from assets.text.kernels.words import BLANK

BITS_PER_GRAM = 12  # of the filter, two of them set: 1 to 3 % of unknown grams pass
_SIX, _LAST_BIT = uint64(6), uint64(63)

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]
Hashes = NDArray[np.uint64]

_options = {"cache": True, "nogil": True}
_inlined = {**_options, "forceinline": True}


class Units(NamedTuple):
    """Units of n texts: those of text t are offsets[t] to offsets[t + 1]."""

    data: Bytes
    starts: Integers  # [units + 1]: unit i is data[starts[i] : starts[i + 1]]
    offsets: Integers  # [n + 1]


class Table(NamedTuple):
    """n n-grams, by hash."""

    keys: Hashes  # [n], ascending
    starts: Integers  # [n], into `data`
    stops: Integers  # [n]
    data: Bytes
    buckets: Integers  # [2**b + 1]: first row whose key has i above its lowest `shift` bits
    shift: int
    key_bits: int  # of a key; 64 but in tests
    lengths: Integers  # distinct sizes in units, ascending
    stride: int
    gram: int
    filter: Hashes


@njit(**_options)
def split_characters(
    joined: Bytes, starts: Integers, word_offsets: Integers
) -> tuple[Bytes, Integers, Integers]:
    """The words of `join_words` as characters without the blanks: the fields of `Units`."""
    letters = np.empty(len(joined), np.uint8)
    character_starts = np.empty(len(joined) + 1, np.int64)
    offsets = np.zeros(len(word_offsets), np.int64)
    size, count = uint64(0), uint64(0)
    for text in range(len(word_offsets) - 1):
        first, last = starts[word_offsets[text]], starts[word_offsets[text + 1]]
        for at in range(uint64(first), uint64(last)):
            byte = joined[at]
            is_letter = uint64(byte != BLANK)
            letters[size] = byte
            character_starts[count] = size
            count += is_letter & uint64(byte & 0xC0 != 0x80)
            size += is_letter
        offsets[text + 1] = count
    character_starts[count] = size
    return letters[:size], character_starts[: count + ONE], offsets


@njit(**_inlined)
def _hash_window(units: Units, first: int, size: int) -> int:
    start, stop = units.starts[first], units.starts[first + size]
    return hash_bytes(units.data, uint64(start), uint64(stop))


@njit(**_options)
def hash_windows(units: Units, firsts: Integers, sizes: Integers, key_bits: int) -> Hashes:
    """The key of each window of sizes[i] units from unit firsts[i], uint64."""
    keys = np.empty(len(firsts), np.uint64)
    for i in range(len(firsts)):
        keys[i] = _hash_window(units, firsts[i], sizes[i]) >> uint64(64 - key_bits)
    return keys


@njit(**_inlined)
def _place_of(key: int, num_words: int) -> tuple[int, int]:
    """Word of the filter that a gram's hash belongs to, and the two bits that it has in it."""
    bits = ONE << (key & _LAST_BIT) | ONE << (key >> _SIX & _LAST_BIT)
    return (key * INCREMENT) >> uint64(32) & uint64(num_words - 1), bits


@njit(**_inlined)
def _may_be(units: Units, first: int, size: int, words: Hashes) -> bool:
    """Whether the filter knows the window of `size` units from `first`, or takes it for another."""
    place, bits = _place_of(_hash_window(units, first, size), len(words))
    return words[place] & bits == bits


@njit(**_options)
def fill_filter(units: Units, firsts: Integers, stride: int, gram: int) -> Hashes:
    """A Bloom filter, uint64 [a power of two], of n-grams that begin at units `firsts`, ascending:
    of their grams from the first `stride` units on, and of as many units as the shortest one has.
    """
    grams = np.empty(len(firsts) * (stride + 1), np.uint64)
    count, done = 0, 0
    for first in firsts:
        grams[count] = _hash_window(units, first, stride + gram - 1)
        count += 1
        for unit in range(max(first, done), first + stride):
            grams[count] = _hash_window(units, unit, gram)
            count += 1
        done = first + stride
    num_words = 64
    while num_words * 64 < count * BITS_PER_GRAM:
        num_words *= 2
    words = np.zeros(num_words, np.uint64)
    for hashed in grams[:count]:
        place, bits = _place_of(hashed, num_words)
        words[place] |= bits
    return words


@njit(**_inlined)
def _are_equal(data: Bytes, start: int, other: Bytes, span: tuple[int, int]) -> bool:
    """Whether the bytes other[span] stand in `data` from `start`, which must have so many."""
    size, i = span[1] - span[0], 0
    while i < size and data[start + i] == other[span[0] + i]:
        i += 1
    return i == size


@njit(**_options)
def mark_distinct(
    keys: Hashes, items: Integers, spans: Integers, data: Bytes, most: int
) -> NDArray[np.bool_]:
    """Whether each n-gram, data[spans[i, 0] : spans[i, 1]], sorted by key and item, is the first of
    its item with these bytes, and its item one of the first `most` that have it.

    Rows of one key are compared with those kept of them: quadratic only where keys collide.
    """
    is_kept = np.zeros(len(keys), np.bool_)
    kept = np.empty(len(keys), np.int64)
    num_kept = 0
    for row in range(len(keys)):
        if row == 0 or keys[row] != keys[row - 1]:
            num_kept = 0
        num_equal, is_repeated = 0, False
        for other in kept[:num_kept]:
            span = (spans[other, 0], spans[other, 1])
            is_as_long = span[1] - span[0] == spans[row, 1] - spans[row, 0]
            if is_as_long and _are_equal(data, spans[row, 0], data, span):
                num_equal += 1
                is_repeated = is_repeated or items[other] == items[row]
        if not is_repeated and num_equal < most:
            is_kept[row] = True
            kept[num_kept] = row
            num_kept += 1
    return is_kept


@njit(**_options)
def _add(found: Integers, count: int, place: tuple[int, int, int]) -> Integers:
    """Write a place behind the first `count` of `found`, which grows if it is full."""
    if count == len(found):
        found = np.concatenate((found, np.empty_like(found)))
    found[count] = place
    return found


@njit(**_options)
def _look_up(
    units: Units, text: int, first: int, table: Table, found: Integers, count: int
) -> tuple[Integers, int]:
    """Add the n-grams that stand in a text from unit `first` on."""
    for length in table.lengths:
        if first + length > units.offsets[text + 1]:
            break
        key = _hash_window(units, first, length) >> uint64(64 - table.key_bits)
        bucket = np.int64(key >> uint64(table.shift))
        start, stop = units.starts[first], units.starts[first + length]
        for row in range(table.buckets[bucket], table.buckets[bucket + 1]):
            span = (table.starts[row], table.stops[row])
            is_alike = table.keys[row] == key and span[1] - span[0] == stop - start
            if is_alike and _are_equal(units.data, start, table.data, span):
                found = _add(found, count, (text, first - units.offsets[text], row))
                count += 1
    return found, count


@njit(**_options)
def find_ngrams(units: Units, table: Table) -> Integers:
    """All n-grams of the table in n texts: (text, unit within it, row), int64 [m, 3], sorted."""
    found, count = np.empty((64, 3), np.int64), 0
    shortest = table.stride + table.gram - 1
    for text in range(len(units.offsets) - 1):
        begin, end = units.offsets[text], units.offsets[text + 1]
        for first in range(begin, end - table.gram + 1, table.stride):
            if _may_be(units, first, table.gram, table.filter):
                last = min(first, end - shortest)
                for window in range(max(begin, first - table.stride + 1), last + 1):
                    if _may_be(units, window, shortest, table.filter):
                        found, count = _look_up(units, text, window, table, found, count)
    return found[:count]
