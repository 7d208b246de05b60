"""Search for the n-grams of a table in the words or characters of texts.

Purpose: find every n-gram that occurs in a text, of any length, without hashing every window.
A *unit* is a word with the blank after it, or a character. An n-gram is the bytes of whole units;
the shortest has `stride + gram - 1` units. Each n-gram in a text therefore covers a *gram*, a run
of `gram` units, that begins at a multiple of `stride`. Only those grams of a text are hashed (one
in six for 13 words, one in 25 for 50 characters) and looked up in a Bloom filter of the grams of
all n-grams. Near a hit, the filter is also asked for the first units of each window. The windows
that pass are hashed in every length, looked up, and compared byte by byte: a hash alone never
decides.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_INLINED, ARRAY_KERNEL
from assets.text.kernels.hashing import INCREMENT, hash_bytes
from assets.text.kernels.many_bytes import ONE
from assets.text.kernels.words import BLANK

BITS_PER_GRAM = 12  # bits of the filter per gram, two of them set: 1 to 3 % of other grams pass
_SIX, _LAST_BIT = uint64(6), uint64(63)

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]
Hashes = NDArray[np.uint64]


class Units(NamedTuple):
    """Units of n texts: text t has the units offsets[t] to offsets[t + 1] - 1."""

    data: Bytes
    starts: Integers  # [units + 1]: unit i is data[starts[i] : starts[i + 1]]
    offsets: Integers  # [n + 1]


class Table(NamedTuple):
    """Hash table of n n-grams."""

    keys: Hashes  # [n], ascending
    starts: Integers  # [n], into `data`
    stops: Integers  # [n]
    data: Bytes
    buckets: Integers  # [2**b + 1]: the first row of each key >> shift
    shift: int
    key_bits: int  # bits of a key; below 64 only in tests
    lengths: Integers  # distinct sizes in units, ascending
    stride: int  # units from one hashed gram of a text to the next
    gram: int  # units of a gram
    filter: Hashes  # Bloom filter of the n-grams' grams


@njit(**ARRAY_KERNEL)
def split_characters(
    joined: Bytes, starts: Integers, word_offsets: Integers
) -> tuple[Bytes, Integers, Integers]:
    """Split the words that `join_words` returns into characters; return the fields of `Units`.

    Blanks are left out.
    """
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


@njit(**ARRAY_INLINED)
def _hash_window(units: Units, first: int, size: int) -> int:
    """Hash the window of `size` units from unit `first` on."""
    start, stop = units.starts[first], units.starts[first + size]
    return hash_bytes(units.data, uint64(start), uint64(stop))


@njit(**ARRAY_KERNEL)
def hash_windows(units: Units, firsts: Integers, sizes: Integers, key_bits: int) -> Hashes:
    """Return the key, uint64 [n], of each window of sizes[i] units from unit firsts[i] on.

    A key is the upper `key_bits` bits of the window's hash.
    """
    keys = np.empty(len(firsts), np.uint64)
    for i in range(len(firsts)):
        keys[i] = _hash_window(units, firsts[i], sizes[i]) >> uint64(64 - key_bits)
    return keys


@njit(**ARRAY_INLINED)
def _filter_bits(key: int, num_words: int) -> tuple[int, int]:
    """Return the word of the filter that a gram's hash selects, and its two bits in that word."""
    # Both bits are in one word: a look-up costs one cache miss.
    bits = ONE << (key & _LAST_BIT) | ONE << (key >> _SIX & _LAST_BIT)
    return (key * INCREMENT) >> uint64(32) & uint64(num_words - 1), bits


@njit(**ARRAY_INLINED)
def _passes_filter(units: Units, first: int, size: int, words: Hashes) -> bool:
    """Check if the filter may hold the window of `size` units from `first` on."""
    word, bits = _filter_bits(_hash_window(units, first, size), len(words))
    return words[word] & bits == bits


@njit(**ARRAY_KERNEL)
def fill_filter(units: Units, firsts: Integers, stride: int, gram: int) -> Hashes:
    """Return a Bloom filter, uint64 [a power of two], of the n-grams that begin at units `firsts`.

    `firsts`, int64, ascend. The filter holds the grams that begin at the first `stride` units of
    each n-gram, and its first `stride + gram - 1` units, as many as the shortest n-gram has.
    """
    grams = np.empty(len(firsts) * (stride + 1), np.uint64)
    count, done = 0, 0
    for first in firsts:
        grams[count] = _hash_window(units, first, stride + gram - 1)
        count += 1
        # N-grams that overlap share grams: `firsts` ascend, so each is entered once.
        for unit in range(max(first, done), first + stride):
            grams[count] = _hash_window(units, unit, gram)
            count += 1
        done = first + stride
    num_words = 64
    while num_words * 64 < count * BITS_PER_GRAM:
        num_words *= 2
    words = np.zeros(num_words, np.uint64)
    for hashed in grams[:count]:
        word, bits = _filter_bits(hashed, num_words)
        words[word] |= bits
    return words


@njit(**ARRAY_INLINED)
def _are_equal(data: Bytes, start: int, other: Bytes, span: tuple[int, int]) -> bool:
    """Compare the bytes other[span] with as many bytes of `data` from `start` on."""
    size, i = span[1] - span[0], 0
    while i < size and data[start + i] == other[span[0] + i]:
        i += 1
    return i == size


@njit(**ARRAY_KERNEL)
def mark_distinct(
    keys: Hashes, items: Integers, spans: Integers, data: Bytes, most: int
) -> NDArray[np.bool_]:
    """Mark the n-grams to keep, bool [n]: each once per item, and in the first `most` items only.

    N-gram i is data[spans[i, 0] : spans[i, 1]] of item items[i]; rows are sorted by key, then item.
    N-grams are equal if their bytes are. A row is compared with the kept rows of its key only.
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


@njit(**ARRAY_KERNEL)
def _append(matches: Integers, count: int, match: tuple[int, int, int]) -> Integers:
    """Write a match after the first `count` of `matches`, in a copy of twice the size if full."""
    if count == len(matches):
        matches = np.concatenate((matches, np.empty_like(matches)))
    matches[count] = match
    return matches


@njit(**ARRAY_KERNEL)
def _look_up(
    units: Units, text: int, first: int, table: Table, matches: Integers, count: int
) -> tuple[Integers, int]:
    """Append the n-grams that begin at unit `first` of a text; return matches and their count."""
    # Lengths ascend: when one leaves the text, so do the rest.
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
                matches = _append(matches, count, (text, first - units.offsets[text], row))
                count += 1
    return matches, count


@njit(**ARRAY_KERNEL)
def find_ngrams(units: Units, table: Table) -> Integers:
    """Find all n-grams of the table in n texts; return int64 [m, 3], sorted.

    A match is (text, first unit within the text, row of the table).
    """
    matches, count = np.empty((64, 3), np.int64), 0
    shortest = table.stride + table.gram - 1
    for text in range(len(units.offsets) - 1):
        begin, end = units.offsets[text], units.offsets[text + 1]
        # Every n-gram covers a gram at one of these places: no other is hashed.
        for first in range(begin, end - table.gram + 1, table.stride):
            if _passes_filter(units, first, table.gram, table.filter):
                # An n-gram that covers this gram begins less than `stride` units before it.
                last = min(first, end - shortest)
                for window in range(max(begin, first - table.stride + 1), last + 1):
                    if _passes_filter(units, window, shortest, table.filter):
                        matches, count = _look_up(units, text, window, table, matches, count)
    return matches[:count]
