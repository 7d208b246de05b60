"""Look for clues, short patterns of bytes, in texts: one pass over the bytes for all of them.

Digits are one byte here, and so are the two cases of a letter. The hash of the four bytes at every
second place selects, with a table of bits, where a clue may be, and only there bytes are compared:
of each clue there is a gram for either case. Clues of less than a gram have an "@", which is looked
for as it is. Each clue found makes a window of the text around it, or widens the one before.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
from numba import int64, njit, uint32, uint64
from numpy.typing import NDArray

from assets.text.kernels.compiling import INLINED, KERNEL
from assets.text.kernels.many_bytes import EIGHT, ONES, RUN, copy_64, find_bytes, read_4, read_8

GRAM = 4  # bytes
HASH_BITS = 20  # 128 kB of bits; some 18,000 grams set 2 % of them
SLOT_BITS = 15
NO_GRAM = np.uint32(0x01010101)  # of bytes that `fold` does not leave
SIGN = ord("@")
BLOCK = 1 << 14  # bytes between the steps, whose places fit the CPU cache
AROUND = 64  # bytes before the first text, and after the last, that grams may have

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]


class ClueTables(NamedTuple):
    """Tables of c clues with e elements in all, of their g grams or signs, and of s scans."""

    bits: NDArray[np.uint32]  # [2**HASH_BITS / 32]: set for the hashes of grams
    grams: NDArray[np.uint32]  # [2**SLOT_BITS]: each in the slot of its hash, or in the next free
    slots: NDArray[np.int32]  # [2**SLOT_BITS + 1]: first link of a gram's chain; of the sign's
    links: Integers  # [g, 3]: a clue, its bytes before the gram or sign, the next link or -1
    elements: Bytes  # [e, 256]: 1 where an element allows the byte
    starts: Integers  # [c + 1]: first element of each clue
    scans: Integers  # [c]: the scan of a clue
    held: Bytes  # [s, 256]: 1 for the bytes that a candidate of a scan can have
    reaches: Integers  # [s]: bytes from a clue to either end of a candidate, at most


_options = {"cache": True, "nogil": True}  # of a function that makes arrays


@njit(**INLINED)
def fold(word: int) -> int:
    """Make all digits one byte, and the two cases of a letter, in each of eight bytes, uint64."""
    word |= uint64(0x20) * ONES
    beyond_nine = (word & (uint64(15) * ONES)) + uint64(6) * ONES
    is_digit = word & ~beyond_nine & ~(word >> uint64(2)) & ~(word >> uint64(3))
    return word & ~(((is_digit >> uint64(4)) & ONES) * uint64(15))


@njit(**INLINED)
def _hash_gram(gram: int) -> int:
    """Hash four folded bytes, uint32, to HASH_BITS bits."""
    return uint32(gram * uint32(0x9E3779B1)) >> uint32(32 - HASH_BITS)


@njit(**INLINED)
def _slot_of(gram: int, grams: NDArray[np.uint32]) -> int:
    """Return the slot of a gram, or the free one where it would be."""
    slot = _hash_gram(gram) >> uint32(HASH_BITS - SLOT_BITS)
    while grams[slot] != gram and grams[slot] != NO_GRAM:
        slot = (slot + uint32(1)) & uint32(len(grams) - 1)
    return slot


@njit(**KERNEL)
def link_grams(words: NDArray[np.uint32], first: int, tables: ClueTables) -> None:
    """Put grams into the tables; the links `first` and following begin their chains."""
    for i in range(len(words)):
        key, slot = _hash_gram(words[i]), _slot_of(words[i], tables.grams)
        tables.bits[key >> uint32(5)] |= uint32(1) << (key & uint32(31))
        tables.grams[slot] = words[i]
        tables.links[first + i, 2] = tables.slots[slot]
        tables.slots[slot] = first + i


@njit(**INLINED)
def _is_clue(data: Bytes, text: tuple[int, int], at: int, tables: ClueTables, clue: int) -> bool:
    """Check that a clue begins at a place; its last bytes may be those after the text, zeros."""
    for element in range(tables.starts[clue], tables.starts[clue + 1]):
        if not tables.elements[element, data[at] if at < text[1] else 0]:
            return False
        at += 1
    return True


@njit(**INLINED)
def _left_of(
    data: Bytes, text: tuple[int, int], place: int, done: int, scan: tuple[Bytes, int]
) -> int:
    """Return where a candidate with a clue at `place` may begin; not far before `done`."""
    left, lower = place, max(text[0], place - scan[1], done)
    while left > lower and scan[0][data[left - 1]]:
        left -= 1
    while left > text[0] and data[left] & 0xC0 == 0x80:
        left -= 1
    return left


@njit(**INLINED)
def _right_of(
    data: Bytes, text: tuple[int, int], place: int, done: int, scan: tuple[Bytes, int]
) -> int:
    """Return where a candidate with a clue at `place` may end, from `done` on."""
    right, upper = max(place, done), min(text[1], place + scan[1])
    while right < upper and scan[0][data[right]]:
        right += 1
    while right < text[1] and data[right] & 0xC0 == 0x80:
        right += 1
    return right


@njit(**KERNEL)
def _add_window(
    data: Bytes,
    text: tuple[int, int, int],
    clue: tuple[int, int],
    around: tuple[Bytes, int],
    found: tuple[Integers, Integers],
) -> None:
    """Add the window of a clue of a scan, or widen the scan's last one."""
    row, start, stop = text
    place, scan = clue
    windows, last = found
    before = last[scan]
    has_window = before >= 0 and windows[before, 1] == row
    done = windows[before, 3] if has_window else start
    left = _left_of(data, (start, stop), place, done, around)
    right = _right_of(data, (start, stop), place, done, around)
    if has_window and left <= done:
        windows[before, 3] = right
        return
    count = last[-1]
    windows[count] = scan, row, left, right
    last[scan], last[-1] = count, count + 1


@njit(**INLINED)
def _is_likely(gram: int, bits: NDArray[np.uint32]) -> int:
    key = _hash_gram(uint32(gram))
    return uint64((bits[key >> uint32(5)] >> (key & uint32(31))) & uint32(1))


@njit(**KERNEL)
def _find_likely(block: Bytes, size: int, bits: NDArray[np.uint32], places: Integers) -> int:
    """Write the even places of likely grams and, inverted, those of signs; return how many.

    places: int64 [>= 1.5 * size + 8].

    Without a branch for grams: one that is wrong for 1 byte in 30 takes longer than the rest.
    """
    at, count = uint64(0), uint64(0)
    word = read_8(block, at)
    folded = fold(word)
    while at < size:
        if find_bytes(word, uint64(SIGN) * ONES):
            for i in range(EIGHT):
                places[count] = ~int64(at + i)
                count += uint64(block[at + i] == SIGN)
        word = read_8(block, at + EIGHT)
        after = fold(word)
        for i in range(3):
            places[count] = at + uint64(2 * i)
            count += _is_likely(folded >> uint64(16 * i), bits)
        places[count] = at + uint64(6)
        count += _is_likely((folded >> uint64(48)) | (after << uint64(16)), bits)
        folded = after
        at += EIGHT
    return count


@njit(**KERNEL)
def _fill(block: Bytes, skipped: int, own: Bytes) -> None:
    """Copy bytes into a block after `skipped` zeros; zeros follow."""
    if len(own) == len(block):  # eight times as fast as byte by byte
        for first in range(0, len(own), RUN):
            copy_64(own, uint64(first), block, uint64(first), uint64(0))
        return
    block[:] = 0
    for i in range(len(own)):
        block[skipped + i] = own[i]


@njit(**INLINED)
def _slot_at(block: Bytes, place: int, tables: ClueTables) -> int:
    """Return the slot of the gram at a place, or of the sign."""
    if place < 0:
        return int64(len(tables.slots) - 1)
    return int64(_slot_of(uint32(fold(uint64(read_4(block, place)))), tables.grams))


@njit(**KERNEL)
def _keep_exact(block: Bytes, places: Integers, count: int, tables: ClueTables) -> int:
    """Keep signs, and places of a clue's gram, not of another with its hash; return how many."""
    kept = 0
    for place in places[:count]:
        places[kept] = place
        kept += tables.slots[_slot_at(block, place, tables)] >= 0
    return kept


@njit(**INLINED)
def _text_at(offsets: Integers, row: int, place: int) -> int:
    """Return the text that has the byte at a place; `row` is one nearby."""
    while offsets[row] > place:
        row -= 1
    while offsets[row + 1] <= place:
        row += 1
    return row


@njit(**KERNEL)
def _add_windows(
    texts: tuple[Bytes, Integers],
    row: int,
    place: tuple[int, int],
    tables: ClueTables,
    found: tuple[Integers, Integers],
) -> int:
    """Add the windows of the clues with a gram or sign at a place, in a slot; return their text."""
    data, offsets = texts
    at, slot = place
    link = tables.slots[slot]
    while link >= 0:
        clue, first = tables.links[link, 0], at - tables.links[link, 1]
        link = tables.links[link, 2]
        if first < offsets[0] or first >= offsets[-1]:
            continue
        row = _text_at(offsets, row, first)
        text = (offsets[row], offsets[row + 1])
        if _is_clue(data, text, first, tables, clue):
            scan = tables.scans[clue]
            around = (tables.held[scan], tables.reaches[scan])
            _add_window(data, (row, text[0], text[1]), (first, scan), around, found)
    return row


@njit(**_options)
def find_windows(data: Bytes, offsets: Integers, tables: ClueTables) -> Integers:
    """Return the windows around the clues of n texts, int64 [windows, 4]: scan, row, start, stop.

    data: UTF-8 bytes; offsets: int64 [n + 1]. Those of one scan share no byte and are in order.
    """
    windows = np.empty((1024, 4), np.int64)
    last = np.full(len(tables.reaches) + 1, -1)  # the last window of each scan; their number
    last[-1] = 0
    block, places = np.zeros(BLOCK + AROUND, np.uint8), np.empty(2 * BLOCK, np.int64)
    row, begin, end = 0, offsets[0], offsets[-1]
    for first in range(begin - AROUND, end, BLOCK):
        own = data[max(first, begin) : min(first + BLOCK + AROUND, end)]
        _fill(block, max(begin - first, 0), own)
        count = _find_likely(block, min(BLOCK, end - first), tables.bits, places)
        for place in places[: _keep_exact(block, places, count, tables)]:
            if len(windows) - last[-1] < len(tables.scans):
                windows = np.concatenate((windows, np.empty_like(windows)))
            at = (first + max(place, ~place), _slot_at(block, place, tables))
            row = _add_windows((data, offsets), row, at, tables, (windows, last))
    return windows[: last[-1]]
