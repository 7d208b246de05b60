"""Count the lines and paragraphs of a text, and their copies.

Lines are the non-blank lines without surrounding white space, paragraphs are runs of lines between
blank ones. A table of 64-bit hashes per document finds copies: two different lines count as equal
with a chance of 3e-8 in a million lines.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

import numpy as np
from numba import njit, uint64

from assets.filtered.kernels.line_scan import trim
from assets.filtered.kernels.sign_masks import BULLET, SPACE, TERMINAL, Bytes, Classes, Integers
from assets.filtered.kernels.text_words import SHORT_LINE_CHARS, Count, Hashes
from assets.text.kernels.compiling import ARRAY_KERNEL, INLINED, KERNEL
from assets.text.kernels.hashing import INCREMENT, absorb, hash_bytes
from assets.text.kernels.many_bytes import EIGHT, ONE, find_byte, find_bytes, read_8
from assets.text.kernels.utf8 import count_continuations, decode, last_start

NEWLINE, DOT, DOTS = 0x0A, 0x2E, uint64(0x2E2E2E2E2E2E2E2E)
PARAGRAPH_SEED = uint64(0xCBF29CE484222325)
FIRST_SLOTS, MOST_FIRST_SLOTS, BYTES_PER_SLOT = 64, 4096, 16
PROBE_LIMIT = 1 << 12  # a run of 4,096 filled slots in a half-empty table is no accident


@njit(**KERNEL)
def count_ellipses(text: Bytes, is_wide: bool) -> int:
    """Count the "..." of a text from left to right, and with `is_wide` the U+2026."""
    threes = characters = 0
    for i in range(len(text) - 2):  # a machine loop over 16 or 32 bytes at once, as the next one
        threes += (text[i] == DOT) & (text[i + 1] == DOT) & (text[i + 2] == DOT)
    if is_wide:
        for i in range(len(text) - 2):
            characters += (text[i] == 0xE2) & (text[i + 1] == 0x80) & (text[i + 2] == 0xA6)
    return characters + (_count_dots(text) if threes else 0)


@njit(**KERNEL)
def _count_dots(text: Bytes) -> int:
    """Count the "..." of a text from left to right."""
    ellipses = run = 0
    at, stop = uint64(0), uint64(len(text))
    while at < stop:
        if run == 0 and at + EIGHT <= stop and not find_bytes(read_8(text, at), DOTS):
            at += EIGHT
            continue
        run = run + 1 if text[at] == DOT else 0
        if run == 3:
            ellipses, run = ellipses + 1, 0
        at += ONE
    return ellipses


@njit(**ARRAY_KERNEL)
def count_lines(data: Bytes, span: tuple[int, int], kinds: Classes, counts: Integers) -> int:
    """Fill the counts of lines and paragraphs of data[span]; return the table slots read.

    counts: int64 [Count], with CHARACTERS filled in; kinds: of `character_classes`.
    """
    start, stop = span
    slots = FIRST_SLOTS
    while slots < MOST_FIRST_SLOTS and uint64(slots * BYTES_PER_SLOT) < stop - start:
        slots *= 2
    seen, keys, work = np.zeros(slots, np.uint64), 0, 0
    is_wide = counts[Count.CHARACTERS] < np.int64(stop - start)
    paragraph, characters = PARAGRAPH_SEED, 0
    while start < stop:
        end = find_byte(data, (start, stop), NEWLINE)
        counts[Count.RAW_LINES] += 1
        # At most half full, although a line may add its paragraph, too.
        if 2 * keys + 2 > len(seen):
            seen, work = _grown(seen), work + len(seen)
        line, length = _count_line(data, (start, end), kinds, is_wide, counts)
        if length:
            new, probes = _count_copies(seen, line, length, Count.DUPLICATE_LINES, counts)
            keys, work = keys + new, work + probes
            paragraph, characters = absorb(paragraph, line), characters + length
        if characters and (not length or end + ONE >= stop):
            counts[Count.PARAGRAPHS] += 1
            key, first = paragraph * INCREMENT, Count.DUPLICATE_PARAGRAPHS
            new, probes = _count_copies(seen, key, characters, first, counts)
            keys, work = keys + new, work + probes
            paragraph, characters = PARAGRAPH_SEED, 0
        start = end + ONE
    return work


@njit(**INLINED)
def _count_line(
    data: Bytes, span: tuple[int, int], kinds: Classes, is_wide: bool, counts: Integers
) -> tuple[int, int]:
    """Return the line's hash and its characters without surrounding white space (0: blank)."""
    length = _length(data, span[0], span[1], is_wide)
    counts[Count.LONGEST_RAW_LINE] = max(counts[Count.LONGEST_RAW_LINE], length)
    start, stop = trim(data, span[0], span[1], kinds, SPACE)
    if start == stop:
        return ONE, 0
    if stop - start < span[1] - span[0]:
        length = _length(data, start, stop, is_wide)
    counts[Count.LINES] += 1
    counts[Count.BULLET_LINES] += (kinds[decode(data, start)[0]] & BULLET) != 0
    counts[Count.TERMINAL_LINES] += (kinds[decode(data, last_start(data, stop))[0]] & TERMINAL) != 0
    counts[Count.ELLIPSIS_LINES] += ends_in_ellipsis(data, start, stop)
    counts[Count.SHORT_LINES] += length <= SHORT_LINE_CHARS
    return hash_bytes(data, start, stop), length


@njit(**INLINED)
def _length(data: Bytes, start: int, stop: int, is_wide: bool) -> int:
    """Count the characters of data[start:stop]."""
    later = count_continuations(data, start, stop) if is_wide else uint64(0)
    return np.int64(stop - start - later)


@njit(**INLINED)
def ends_in_ellipsis(data: Bytes, start: int, stop: int) -> bool:
    if stop - start < uint64(3):
        return False
    a, b, c = data[stop - uint64(3)], data[stop - uint64(2)], data[stop - ONE]
    is_dots = a == DOT and b == DOT and c == DOT
    is_character = a == 0xE2 and b == 0x80 and c == 0xA6  # U+2026
    return bool(is_dots or is_character)


@njit(**INLINED)
def _count_copies(
    seen: Hashes, key: int, characters: int, first: int, counts: Integers
) -> tuple[int, int]:
    """Enter a line or paragraph, and count it if it is a copy; return keys added and slots read.

    The counts begin at `first`: duplicates, their characters, repeated ones, their characters.
    The lowest bit of a key in the table marks a key that occurred more than once.
    """
    key = max(key, uint64(2)) & ~ONE  # 0 marks a free slot
    slot, probes = _slot(seen, key)
    entry = seen[slot]
    if entry == 0:
        seen[slot] = key
        return 1, probes
    if entry & ~ONE == key:
        # With the second copy the first one counts as well.
        copies = 1 if entry & ONE else 2
        seen[slot] = key | ONE
        counts[first] += 1
        counts[first + 1] += characters
        counts[first + 2] += copies
        counts[first + 3] += copies * characters
    return 0, probes


@njit(**INLINED)
def _slot(seen: Hashes, key: int) -> tuple[int, int]:
    """Return the slot of the key, or a free one, and the number of slots read.

    After PROBE_LIMIT it is the slot of another key, and the key is not counted.
    """
    mask = uint64(len(seen) - 1)
    slot = (key >> uint64(32)) & mask
    probes = 1
    while seen[slot] != 0 and seen[slot] & ~ONE != key and probes < PROBE_LIMIT:
        slot = (slot + ONE) & mask
        probes += 1
    return slot, probes


@njit(**ARRAY_KERNEL)
def _grown(seen: Hashes) -> Hashes:
    larger = np.zeros(4 * len(seen), np.uint64)
    for entry in seen:
        if entry != 0:
            larger[_slot(larger, entry & ~ONE)[0]] = entry
    return larger
