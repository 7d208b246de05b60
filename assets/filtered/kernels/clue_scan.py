"""Look for clues, short patterns of bytes, in texts: one pass over the bytes for all of them.

Digits are one byte here, and so are the two cases of a letter: the hash of the last four bytes
selects, with a table of bits, the places where a clue may be, and only there bytes are compared.
Clues shorter than that have an "@", which is looked for as it is. Each clue found makes a window of
the text around it, or widens the one before.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
from numba import njit, uint32, uint64
from numpy.typing import NDArray

GRAM = 4  # bytes
HASH_BITS = 19  # 64 kB of bits; some 5,000 grams set 1 % of them
SIGN = ord("@")
BLOCK = 1 << 14  # bytes between the two steps, whose places fit the CPU cache

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]


class ClueTables(NamedTuple):
    """Tables of c clues with e elements in all, of the hashes of their grams, and of s scans."""

    folded: NDArray[np.uint32]  # [256]: the byte that stands for a byte, in the highest 8 bits
    bits: NDArray[np.uint32]  # [2**HASH_BITS / 32]
    slots: NDArray[np.int32]  # [2**HASH_BITS + 1]: first link of a hash's chain; of the sign's
    chained: NDArray[np.int32]  # [links, 2]: a clue, and the next link or -1
    elements: Bytes  # [e, 256]: 1 where an element allows the byte
    starts: Integers  # [c + 1]: first element of each clue
    ends: Integers  # [c]: elements of a clue up to the end of its gram
    scans: Integers  # [c]: the scan of a clue
    held: Bytes  # [s, 256]: 1 for the bytes that a candidate of a scan can have
    reaches: Integers  # [s]: bytes from a clue to either end of a candidate, at most


_options = {"cache": True, "nogil": True}
_inlined = {**_options, "forceinline": True}


@njit(**_inlined)
def hash_gram(gram: int) -> int:
    """Hash four folded bytes, uint32, to HASH_BITS bits."""
    return uint32(gram * uint32(0x9E3779B1)) >> uint32(32 - HASH_BITS)


@njit(**_inlined)
def _next_clue(
    data: Bytes, text: tuple[int, int], at: int, tables: ClueTables, link: int
) -> tuple[int, int]:
    """Return the first clue of a chain that is there, its gram's end before `at`; the next link."""
    while link >= 0:
        clue, link = tables.chained[link, 0], tables.chained[link, 1]
        first = at - tables.ends[clue]
        element, end = tables.starts[clue], tables.starts[clue + 1]
        if first < text[0]:
            continue
        while element < end and tables.elements[element, data[first] if first < text[1] else 0]:
            element += 1
            first += 1
        if element == end:
            return clue, link
    return -1, -1


@njit(**_inlined)
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


@njit(**_inlined)
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


@njit(**_options)
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


@njit(**_options)
def _find_likely(
    data: Bytes, span: tuple[int, int, int], tables: ClueTables, places: Integers
) -> int:
    """Write the places after a gram of a clue or a sign; return their number.

    span: begin of the text, then the bytes to search; places: int64 [>= bytes].

    Without a branch: one that is wrong for 1 byte in 30 takes longer than the rest.
    """
    at, end = uint64(span[1]), uint64(span[2])
    folded, bits = tables.folded, tables.bits
    gram = uint32(0)
    for i in range(max(span[0], span[1] - GRAM), span[1]):
        gram = (gram >> uint32(8)) | folded[data[i]]
    count = uint64(0)
    while at < end:
        byte = data[at]
        gram = (gram >> uint32(8)) | folded[byte]
        at += uint64(1)
        key = hash_gram(gram)
        places[count] = at
        is_gram = uint64((bits[key >> uint32(5)] >> (key & uint32(31))) & uint32(1))
        count += is_gram | uint64(byte == SIGN)
    return count


@njit(**_inlined)
def _key_before(data: Bytes, text: tuple[int, int], at: int, folded: NDArray[np.uint32]) -> int:
    """Return the hash of the gram before `at`, which may be one byte after the text's end."""
    gram = uint32(0)
    for i in range(max(text[0], at - GRAM), at):
        gram = (gram >> uint32(8)) | (folded[data[i]] if i < text[1] else uint32(0))
    return hash_gram(gram)


@njit(**_inlined)
def _clues_at(
    data: Bytes, span: tuple[int, int], at: int, tables: ClueTables, clues: Integers
) -> int:
    """Write the clues that are there and whose gram or sign ends before `at`; return how many."""
    link = tables.slots[_key_before(data, span, at, tables.folded)]
    signs = tables.slots[-1] if at <= span[1] and data[at - 1] == SIGN else -1
    count = 0
    while link >= 0 or signs >= 0:
        if link < 0:
            link, signs = signs, -1
        clue, link = _next_clue(data, span, at, tables, link)
        clues[count] = clue
        count += clue >= 0
    return count


@njit(**_options)
def find_windows(data: Bytes, offsets: Integers, tables: ClueTables) -> Integers:
    """Return the windows around the clues of n texts, int64 [windows, 4]: scan, row, start, stop.

    data: UTF-8 bytes; offsets: int64 [n + 1]. Those of one scan share no byte and are in order.
    """
    windows = np.empty((1024, 4), np.int64)
    last = np.full(len(tables.reaches) + 1, -1)  # the last window of each scan; their number
    last[-1] = 0
    places, clues = np.empty(BLOCK + 1, np.int64), np.empty(len(tables.ends) + 1, np.int64)
    for row in range(len(offsets) - 1):
        start, stop = offsets[row], offsets[row + 1]
        for begin in range(start, stop + 1, BLOCK):
            end = min(begin + BLOCK, stop)
            count = _find_likely(data, (start, begin, end), tables, places)
            if begin + BLOCK > stop:
                places[count] = stop + 1  # a clue may end with the byte after the text
                count += 1
            for at in places[:count]:
                num_clues = _clues_at(data, (start, stop), at, tables, clues)
                if len(windows) - last[-1] < num_clues:
                    windows = np.concatenate((windows, np.empty_like(windows)))
                for clue in clues[:num_clues]:
                    scan = tables.scans[clue]
                    place = (at - tables.ends[clue], scan)
                    around = (tables.held[scan], tables.reaches[scan])
                    _add_window(data, (row, start, stop), place, around, (windows, last))
    return windows[: last[-1]]
