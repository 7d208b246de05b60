"""Look up the words of texts in lists, reading Arrow's text buffers.

One pass over the bytes makes a 64-bit hash of each lower-cased word, for two sets of lists. A bit
filter of 16 kB selects the words that may be listed; only these are looked up, for phrases with the
words after them. Words are compared by their hashes (`term_table`). Every loop is bounded by the
text's length.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, return-value"

from typing import Any

import numpy as np
from numba import njit, uint8, uint64

from assets.filtered.kernels.term_table import (
    FILTER_BITS,
    ONE,
    PREFIX,
    PRIME,
    SPREAD,
    Bytes,
    Entries,
    Hashes,
    Integers,
    Tables,
    chained,
    find,
    is_plain_word,
)
from assets.text.kernels.compiling import ARRAY_KERNEL, INLINED, KERNEL
from assets.text.kernels.many_bytes import EIGHT, first_one, ones_below, read_8, size_of
from assets.text.kernels.words import (
    BLANK,
    LOWER,
    capitals,
    digit_bytes,
    entry_and_width,
    mark_byte,
    plain_words,
    small_letters,
)

BUFFER_WORDS = 2048
ROOM = BUFFER_WORDS + 64  # one step may append as many

# The hash of a word is the number whose digits are its letters. With this base eight letters of
# ASCII fit 64 bits, and two fit 16 and four 32, so that they are added up side by side.
BASE = uint64(251)
POWERS = np.array([pow(int(BASE), n, 1 << 64) for n in range(9)], np.uint64)
EVEN_BYTES, EVEN_PAIRS = uint64(0x00FF00FF00FF00FF), uint64(0x0000FFFF0000FFFF)
APOSTROPHE = ord("'")
LOWER_CASE = uint64(0x2020202020202020)


@njit(**INLINED)
def _with_letter(key: int, letter: int) -> int:
    """Return the hash, uint64, of a word with one more letter: one beyond ASCII is spread."""
    spread = letter * PRIME
    return key * BASE + (letter if letter < uint64(0x80) else spread ^ spread >> uint64(32))


@njit(**KERNEL)
def _part_hash(data: Bytes, at: int, stop: int, entries: Entries) -> int:
    """Hash the letters from `at` to the next character that is not one."""
    key = uint64(BLANK)
    while at < stop:
        entry, width = entry_and_width(data, at, entries)
        if not is_plain_word(entry):
            break
        key = _with_letter(key, entry & uint64(LOWER))
        at += width
    return key


@njit(**INLINED)
def _enter_parts(parts: Hashes, num_parts: int, word: tuple[int, int, int]) -> int:
    """Add a word (place, hashes of its first two parts) that is not the last one added."""
    if num_parts == 0 or parts[num_parts - ONE, 0] != word[0]:
        parts[num_parts, 0], parts[num_parts, 1], parts[num_parts, 2] = word
        num_parts += ONE
    return num_parts


@njit(**INLINED)
def _plain_words(data: Bytes, span: tuple[int, int]) -> tuple[int, int]:
    """Mark the letters and digits of the words at the start of data[span], see `plain_words`.

    The words end before the first one with an apostrophe.
    """
    words, size = plain_words(data, span)
    if size:
        at = span[0]
        words &= small_letters(data, at) | capitals(data, at) | digit_bytes(data, at)
        apostrophes = mark_byte(data, at, APOSTROPHE) & words << ONE & words >> ONE
        if apostrophes:
            size = size_of(~words & ones_below(first_one(apostrophes)))
            words &= ones_below(size)
    return words, size


@njit(**INLINED)
def _hash_plain_words(data: Bytes, at: int, words: int, hashes: Hashes, count: int) -> int:
    """Append the hashes of the words of a mask, letters and digits of ASCII; return the number."""
    starts, ends = words & ~(words << ONE), ~words & (words << ONE)
    while starts:
        place, size = at + first_one(starts), first_one(ends) - first_one(starts)
        key = uint64(BLANK)
        while size > EIGHT:
            # Eight letters at once; bit 5 makes capitals small, and digits have it.
            key = key * POWERS[8] + _polynomial(read_8(data, place) | LOWER_CASE)
            place, size = place + EIGHT, size - EIGHT
        # What is behind the word is shifted out; the zeros before it add nothing.
        last = (read_8(data, place) | LOWER_CASE) << (EIGHT * (EIGHT - size))
        hashes[count] = key * POWERS[size] + _polynomial(last)
        count += ONE
        starts &= starts - ONE
        ends &= ends - ONE
    return count


@njit(**INLINED)
def _polynomial(letters: int) -> int:
    """Add up eight letters of ASCII, each times a power of BASE, as if read one after another."""
    # Neighbours, then pairs, then fours: a letter is below 128, so no sum leaves its lane.
    twos = (letters & EVEN_BYTES) * POWERS[1] + (letters >> uint64(8) & EVEN_BYTES)
    fours = (twos & EVEN_PAIRS) * POWERS[2] + (twos >> uint64(16) & EVEN_PAIRS)
    return (fours & uint64(0xFFFFFFFF)) * POWERS[4] + (fours >> uint64(32))


@njit(**KERNEL)
def _read_words(
    data: Bytes, span: tuple[int, int], entries: Entries, hashes: Hashes, parts: Hashes,
    state: tuple[int, int, int, int],
) -> tuple[int, int, int, int, int]:  # fmt: skip
    """Append hashes until the buffer is full; `state`: words, parts, open word's hash, in a word.

    For a word with an apostrophe, its place and the hashes of its first two parts are added too.
    """
    (at, stop), (count, num_parts, key, in_word) = span, state
    while at < stop and count < uint64(BUFFER_WORDS):
        if not in_word:
            words, size = _plain_words(data, (at, stop))
            if size:
                count = _hash_plain_words(data, at, words, hashes, count)
                at += size
                continue
        byte = data[at]
        entry = uint64(entries[byte])
        if not uint64(byte >> uint8(7)) | (entry >> uint64(27)):
            is_word = (entry >> uint64(25)) & ONE
            hashes[count] = key
            count += in_word & (is_word ^ ONE)
            # Outside words the entry is BLANK, from which the next word's hash starts.
            key = key * (BASE & (uint64(0) - is_word)) + (entry & uint64(LOWER))
            in_word = is_word
            at += ONE
            continue
        entry, width = entry_and_width(data, at, entries)
        if entry >> uint64(27) and in_word and at + width < stop:
            after = _part_hash(data, at + width, stop, entries)
            if after != uint64(BLANK):
                num_parts = _enter_parts(parts, num_parts, (count, key, after))
                key = _with_letter(key, uint64(APOSTROPHE))
                at += width
                continue
        joins = is_plain_word(entry)
        hashes[count] = key
        count += in_word & (joins ^ ONE)
        # Outside words the entry is BLANK, as above.
        key = _with_letter(key & (uint64(0) - joins), entry & uint64(LOWER))
        in_word = joins
        if not joins:
            hashes[count] = _with_letter(uint64(BLANK), entry & uint64(LOWER))
            count += (entry >> uint64(26)) & ONE
            key = uint64(BLANK)
        at += width
    return at, count, num_parts, key, in_word


@njit(**ARRAY_KERNEL)
def word_hashes(data: Bytes, offsets: Integers, entries: Entries) -> tuple[Hashes, Integers]:
    """Return the hashes, uint64, of all words of n terms, and their word offsets, int64 [n + 1]."""
    all_hashes = np.empty(offsets[-1] - offsets[0] + 1, np.uint64)
    word_offsets = np.zeros(len(offsets), np.int64)
    hashes, parts = np.empty(ROOM, np.uint64), np.empty((BUFFER_WORDS, 3), np.uint64)
    size = 0
    for row in range(len(offsets) - 1):
        at, stop = uint64(offsets[row]), uint64(offsets[row + 1])
        key, in_word = uint64(BLANK), uint64(0)
        while at < stop:
            state = (uint64(0), uint64(0), key, in_word)
            at, count, _, key, in_word = _read_words(
                data, (at, stop), entries, hashes, parts, state
            )
            for i in range(count):
                all_hashes[size] = hashes[i]
                size += 1
        if in_word:
            all_hashes[size] = key
            size += 1
        word_offsets[row + 1] = size
    return all_hashes[:size], word_offsets


@njit(**INLINED)
def _count_stop_word(stop_id: int, row: int, seen_in: Integers, counts: Integers) -> None:
    counts[2] += 1
    counts[1] += seen_in[stop_id] != row
    seen_in[stop_id] = row


@njit(**KERNEL)
def _tally(
    hashes: Hashes, places: tuple[Integers, int, int], tables: Tables,
    row: tuple[int, np.uint64], seen_in: Integers, counts: Integers,
) -> None:  # fmt: skip
    """Count the longest term of each list that starts at a word and overlaps none before it.

    places: the words to try, their number, and the words in the buffer. One call takes all of them,
    since numba counts references to every array of a call. counts: see `count_words`.
    """
    selected, num_selected, num_words = places
    for i in range(num_selected):
        word = selected[i]
        key, length = hashes[uint64(word)], 1
        slot = find(key, tables)
        stop_id, stop_length, profane_length, vocabulary_length = -1, 0, 0, 0
        categories = uint64(0)
        # From prefix to prefix, noting the longest term of each list so far.
        while slot >= 0:
            if tables.stop_ids[uint64(slot)] >= 0:
                stop_id, stop_length = tables.stop_ids[uint64(slot)], length
            if tables.profane[uint64(slot)] & row[1]:
                profane_length = length
            if tables.vocabulary[uint64(slot)]:
                vocabulary_length, categories = length, tables.vocabulary[uint64(slot)]
            if not tables.kinds[uint64(slot)] & PREFIX or word + length >= num_words:
                break
            key = chained(key, hashes[uint64(word + length)])
            length += 1
            slot = find(key, tables)
        # counts[6:9]: where the last term of each list ended, as terms do not overlap.
        if stop_length and word >= counts[6]:
            counts[6] = word + stop_length
            _count_stop_word(stop_id, row[0], seen_in, counts)
        if profane_length and word >= counts[7]:
            counts[7] = word + profane_length
            counts[3] += 1
        if vocabulary_length and word >= counts[8]:
            counts[8] = word + vocabulary_length
            counts[4] += vocabulary_length
            counts[5] = np.int64(uint64(counts[5]) | categories)


@njit(**KERNEL)
def _tally_parts(
    hashes: Hashes, part: Hashes, tables: Tables, row: tuple[int, np.uint64], seen_in: Integers,
    counts: Integers,
) -> None:  # fmt: skip
    """Count an unlisted word with an apostrophe as the first of its parts that is listed."""
    if find(hashes[part[0]], tables) >= 0:
        return
    slot = find(part[1], tables)
    if slot < 0:
        slot = find(part[2], tables)
    if slot < 0:
        return
    if tables.stop_ids[slot] >= 0:
        _count_stop_word(tables.stop_ids[slot], row[0], seen_in, counts)
    counts[3] += (tables.profane[slot] & row[1]) != 0
    counts[4] += tables.vocabulary[slot] != 0
    counts[5] = np.int64(uint64(counts[5]) | tables.vocabulary[slot])


@njit(**INLINED)
def _select(hashes: Hashes, count: int, bits: Bytes, selected: Integers) -> int:
    """Write the places of the words that pass the filter, without branches; return their number."""
    size = uint64(0)
    for i in range(count):
        bit = (hashes[i] * SPREAD) >> uint64(64 - FILTER_BITS)
        selected[size] = i
        size += uint64(bits[bit >> uint64(3)]) >> (bit & uint64(7)) & ONE
    return size


@njit(**KERNEL)
def _look_up(
    words: tuple[Hashes, int, int], parts: tuple[Hashes, int], tables: Tables,
    row: tuple[int, np.uint64], work: tuple[Integers, Integers], counts: Integers,
) -> None:  # fmt: skip
    """Count the first `ready` words of a buffer in one set of lists."""
    (hashes, ready, count), (selected, seen_in) = words, work
    counts[0] += np.int64(ready)
    if tables.max_words == 0:
        return
    num_selected = _select(hashes, ready, tables.bits, selected)
    places = (selected, num_selected, np.int64(count))
    _tally(hashes, places, tables, row, seen_in, counts)
    for i in range(parts[1]):
        if parts[0][i, 0] < ready:
            _tally_parts(hashes, parts[0][i], tables, row, seen_in, counts)
    # The ends count from the begin of the buffer, of which `ready` words go.
    for i in range(6, 9):
        counts[i] -= np.int64(ready)


@njit(**KERNEL)
def _count_text(
    data: Bytes, span: tuple[int, int], entries: Entries, tables: tuple[Tables, Tables],
    row: tuple[int, np.uint64], work: tuple[Any, ...],
) -> None:  # fmt: skip
    hashes, parts, selected, first_seen_in, second_seen_in, counts = work
    (at, stop), key, in_word = span, uint64(BLANK), uint64(0)
    count = num_parts = uint64(0)
    max_words = max(tables[0].max_words, tables[1].max_words, 1)
    while at < stop:
        state = (count, num_parts, key, in_word)
        at, count, num_parts, key, in_word = _read_words(
            data, (at, stop), entries, hashes, parts, state
        )
        if at >= stop and in_word:
            hashes[count] = key
            count += ONE
        # The last words wait for those that may continue a phrase.
        ahead = uint64(max_words - 1) if at < stop else uint64(0)
        ready = count - ahead if count > ahead else uint64(0)
        words, in_parts = (hashes, ready, count), (parts, num_parts)
        _look_up(words, in_parts, tables[0], row, (selected, first_seen_in), counts[0])
        _look_up(words, in_parts, tables[1], row, (selected, second_seen_in), counts[1])
        kept = uint64(0)
        for i in range(num_parts):
            if parts[i, 0] >= ready:
                parts[kept, 0] = parts[i, 0] - ready
                parts[kept, 1], parts[kept, 2] = parts[i, 1], parts[i, 2]
                kept += ONE
        for i in range(count - ready):
            hashes[i] = hashes[ready + uint64(i)]
        count, num_parts = count - ready, kept


@njit(**ARRAY_KERNEL)
def count_words(
    data: Bytes, offsets: Integers, entries: Entries, tables: tuple[Tables, Tables],
    languages: Hashes,
) -> Integers:  # fmt: skip
    """Count the words of n texts that are in each of two sets of lists, int64 [n, 2, 9].

    data: UTF-8 bytes; offsets: int64 [n + 1]; entries: uint32 [code points], see
    `term_table`; languages: uint64 [n], bits of the lists of profanity that apply to each text.

    Columns: words, distinct stop words, stop words, profane words, vocabulary words, bits of the
    vocabulary's categories; the last three are scratch.
    """
    counts = np.zeros((len(offsets) - 1, 2, 9), np.int64)
    first_seen_in = np.full(tables[0].num_stop_words + 1, -1, np.int64)
    second_seen_in = np.full(tables[1].num_stop_words + 1, -1, np.int64)
    hashes, selected = np.empty(ROOM, np.uint64), np.empty(ROOM, np.int64)
    parts = np.empty((ROOM, 3), np.uint64)
    for row in range(len(counts)):
        span = (uint64(offsets[row]), uint64(offsets[row + 1]))
        work = (hashes, parts, selected, first_seen_in, second_seen_in, counts[row])
        _count_text(data, span, entries, tables, (row, languages[row]), work)
    return counts
