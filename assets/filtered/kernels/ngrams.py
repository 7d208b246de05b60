"""Count the characters of repeated word n-grams, from the hashes of a block's words.

An n-gram repeats only where both of its (n-1)-grams do, so after n = 2 the kernel visits only the
places that are left, and stops when none is. The key of an n-gram mixes the keys of its two
(n-1)-grams: two different ones of a document count as equal with a chance of 3e-8 in a million
words.
Trade-off: keys are split by their first bits into up to 8 parts, and each part fills the table in a
pass of its own. The table stays in the cache, and is small for a document of 50 MB; 8 reads of the
keys cost less than the cache misses of a large table.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_INLINED, ARRAY_KERNEL
from assets.text.kernels.hashing import join

TOP_SIZES = (2, 3, 4)  # Gopher's table A1: the most frequent n-gram of as many words
DUPLICATE_SIZES = (5, 6, 7, 8, 9, 10)  # and all n-grams that occur at least twice
NGRAM_COUNTS = tuple(f"top_{size}_gram_characters" for size in TOP_SIZES) + tuple(
    f"duplicate_{size}_gram_characters" for size in DUPLICATE_SIZES
)
SMALLEST, LARGEST_TOP, LARGEST = 2, TOP_SIZES[-1], DUPLICATE_SIZES[-1]
PART_WORDS = 1 << 16  # keys of a part: a table of 2 MB
SIEVE_BITS = 20  # a table of 1 MB at most
MAX_PARTS = 8  # constant, so that the work stays linear
PROBE_LIMIT = 1 << 12  # a run of 4,096 filled slots in a half-empty table is no accident
FIRST_COUNT = uint64(1 << 32)

Integers = NDArray[np.int64]
Hashes = NDArray[np.uint64]
Positions = NDArray[np.uint32]
Flags = NDArray[np.uint8]
Text = tuple[Positions, Positions, int]  # places of n-grams, ends of words, words of an n-gram


@njit(**ARRAY_KERNEL)
def count_ngrams(
    keys: Hashes, ends: Positions, word_offsets: Integers, counts: Integers
) -> tuple[int, int]:
    """Fill `counts`, int64 [n, len(NGRAM_COUNTS)], for n texts; destroys `keys`.

    keys: uint64, a hash of each word. ends: uint32, characters of the text's words up to the end
    of this one, white space left out. word_offsets: int64 [n + 1], the words of each text. Returns
    the positions visited and the table slots read, a measure of the work.

    top_n_gram_characters: characters of the n-gram that occurs most often (overlaps counted; the
    longest of equally frequent ones, as in DCLM), times its occurrences; at most the characters of
    all words; 0 if none occurs twice. duplicate_n_gram_characters: characters of the words in any
    n-gram that occurs at least twice, first copies too; each word once (Gopher, arXiv 2112.11446,
    table A1).
    """
    positions, probes = 0, 0
    for row in range(len(word_offsets) - 1):
        first, last = word_offsets[row], word_offsets[row + 1]
        if last - first > SMALLEST:
            work = _count_document(keys[first:last], ends[first:last], counts[row])
            positions, probes = positions + work[0], probes + work[1]
    return positions, probes


@njit(**ARRAY_KERNEL)
def _count_document(keys: Hashes, ends: Positions, counts: Integers) -> tuple[int, int]:
    num_pairs = len(keys) - 1
    places = np.empty(num_pairs, np.uint32)
    left = _sieve(keys, places)
    repeats = np.empty(left, np.uint8)
    table = np.empty((1 << _table_shape(left)[0], 2), np.uint64)
    positions, probes = num_pairs, 0
    for size in range(SMALLEST, LARGEST + 1):
        if left < 2:
            break
        bits, parts = _table_shape(left)
        repeats[:left] = 0
        text = (places[:left], ends, size)
        top, part_probes = _find_repeats(keys[:left], text, table[: 1 << bits], parts, repeats)
        positions, probes = positions + left, probes + part_probes
        if size > LARGEST_TOP:
            top = _covered(repeats, text)
        counts[size - SMALLEST] = min(top, np.int64(ends[-1]))
        left = _keep_repeats(keys, places, repeats, left)
    return positions, probes


@njit(**ARRAY_KERNEL)
def _sieve(keys: Hashes, places: Positions) -> int:
    """Replace the words' keys by those of the pairs that may repeat; return their number.

    A pair is left out if no other one has the same slot in a table of a few bits. This takes no
    branch, and saves the search in the large table for more than half of the pairs.
    """
    bits = 4
    while bits < SIEVE_BITS and (1 << bits) < 8 * len(places):
        bits += 1
    times, shift = np.zeros(1 << bits, np.uint8), uint64(64 - bits)
    for i in range(len(places)):
        keys[i] = join(keys[i], keys[i + 1])
        slot = keys[i] >> shift
        # 1 for one pair; bit 1 is set from the second pair on, and stays set.
        times[slot] = times[slot] << 1 | 1
    left = 0
    for i in range(len(places)):
        key = keys[i]
        # Written in any case, and kept only if `left` moves on.
        places[left] = i
        keys[left] = key
        left += times[key >> shift] >> 1 & 1
    return left


@njit(**ARRAY_KERNEL)
def _table_shape(num_keys: int) -> tuple[int, int]:
    """Return the table's size as a power of two, and the number of parts of the keys."""
    parts = 1
    while parts < MAX_PARTS and parts * PART_WORDS < num_keys:
        parts *= 2
    bits = 2
    while (parts << bits) < 2 * num_keys:
        bits += 1
    return bits, parts


@njit(**ARRAY_KERNEL)
def _find_repeats(
    keys: Hashes, text: Text, table: Hashes, parts: int, repeats: Flags
) -> tuple[int, int]:
    """Mark the n-grams that occur at least twice; return the characters of the top one, and probes.

    A slot holds a key, and its occurrences above the index of the first one.
    """
    places, ends, size = text
    top_times, top_characters, probes = uint64(1), uint64(0), 0
    parts_mask = uint64(parts - 1)
    for part in range(parts):
        table[:] = 0
        for i in range(len(keys)):
            key = keys[i]
            # The highest bits tell the parts, the lowest the slots: a part uses its whole table.
            if (key >> uint64(58)) & parts_mask != uint64(part):
                continue
            slot, slots_read = _slot(table, key)
            probes += slots_read
            value = table[slot, 1]
            if value == 0:
                table[slot, 0] = key
                table[slot, 1] = FIRST_COUNT | uint64(i)
                continue
            # The search gave up in a full run: this n-gram is not counted.
            if table[slot, 0] != key:
                continue
            value += FIRST_COUNT
            table[slot, 1] = value
            # The first copy becomes a repeat with the second one.
            first = value & uint64(0xFFFFFFFF)
            repeats[first] = 1
            repeats[i] = 1
            times = value >> uint64(32)
            if times >= top_times:
                start, stop = _span(places, ends, size, i)
                characters = uint64(stop - start)
                if times > top_times or characters > top_characters:
                    top_times, top_characters = times, characters
    return np.int64(top_times * top_characters), probes


@njit(**ARRAY_INLINED)
def _slot(table: Hashes, key: int) -> tuple[int, int]:
    """Return the slot of a key, or a free one, and the slots read; after PROBE_LIMIT any slot."""
    mask = uint64(len(table) - 1)
    slot = key & mask
    last_slot, probes = (slot + uint64(PROBE_LIMIT)) & mask, 1
    while table[slot, 1] != 0 and table[slot, 0] != key:
        slot = (slot + uint64(1)) & mask
        probes += 1
        if slot == last_slot:
            break
    return slot, probes


@njit(**ARRAY_INLINED)
def _span(places: Positions, ends: Positions, size: int, i: int) -> tuple[int, int]:
    """Return the characters of all words before the i-th n-gram, and up to its end."""
    place = np.int64(places[i])
    start = np.int64(ends[place - 1]) if place else 0
    return start, np.int64(ends[place + size - 1])


@njit(**ARRAY_KERNEL)
def _covered(repeats: Flags, text: Text) -> int:
    """Return the characters of all words that a repeated n-gram covers, each word once."""
    places, ends, size = text
    characters = covered = 0
    for i in range(len(places)):
        start, stop = _span(places, ends, size, i)
        # One that does not repeat ends at 0, and covers nothing.
        stop *= repeats[i]
        # Only what is behind the end of those before: each word once.
        characters += max(stop - max(start, covered), 0)
        covered = max(covered, stop)
    return characters


@njit(**ARRAY_KERNEL)
def _keep_repeats(keys: Hashes, places: Positions, repeats: Flags, num_left: int) -> int:
    """Move places and keys of the next longer n-grams to the front; return their number."""
    left = 0
    for i in range(num_left - 1):
        place, next_place = np.int64(places[i]), np.int64(places[i + 1])
        keys[left] = join(keys[i], keys[i + 1])
        places[left] = place
        # Both (n-1)-grams repeat, and are neighbours.
        left += repeats[i] & repeats[i + 1] & (place + 1 == next_place)
    return left
