"""Look for clues, short patterns of bytes, in texts: one pass over the bytes for all of them.

A gram is four bytes of a clue, or beside it, that begin at an even place: two pairs. A table gives
for each pair of bytes the groups of grams that it begins, and those that it ends: where a pair and
the next one have a group in common there may be a clue, and only there bytes are compared. Each
clue found makes a window of the text around it, or widens the one before.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
from numba import int64, njit, uint64
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_KERNEL, INLINED, KERNEL
from assets.text.kernels.many_bytes import EIGHT, ONE, RUN, copy_64, first_one, read_4, read_8

GRAM = 4  # bytes
GROUPS = 64  # of grams: the bits of a number
BLOCK = 1 << 14  # bytes between the steps, whose places fit the CPU cache
AROUND = 64  # bytes before the first text, and after the last, that grams may have

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]
Bits = NDArray[np.uint64]


class ClueTables(NamedTuple):
    """Tables of c clues with e elements of k classes, of their two grams each, and of s scans."""

    pairs: Bits  # [65536, 2]: groups whose grams begin with two bytes (low one first); end with
    groups: Integers  # [GROUPS + 1]: the first gram of each group
    grams: Integers  # [2 * c, 4]: a clue, bytes before the gram; bits it shares, their values
    classes: Bytes  # [k, 256]: 1 where an element of the class allows the byte
    elements: Integers  # [e]: the class of each
    starts: Integers  # [c + 1]: first element of each clue
    scans: Integers  # [c]: the scan of a clue
    held: Bytes  # [s, 256]: 1 for the bytes that a candidate of a scan can have
    reaches: Integers  # [s]: bytes from a clue to either end of a candidate, at most


@njit(**INLINED)
def _is_clue(data: Bytes, text: tuple[int, int], at: int, tables: ClueTables, clue: int) -> bool:
    """Check that a clue begins at a place; its last bytes may be those after the text, zeros."""
    for element in range(tables.starts[clue], tables.starts[clue + 1]):
        if not tables.classes[tables.elements[element], data[at] if at < text[1] else 0]:
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
    before, key = last[scan], row * (len(last) - 1) + scan
    has_window = before >= 0 and windows[before, 0] == key
    done = windows[before, 2] if has_window else start
    left = _left_of(data, (start, stop), place, done, around)
    right = _right_of(data, (start, stop), place, done, around)
    # It reaches the scan's last window, which is widened: no byte is in two.
    if has_window and left <= done:
        windows[before, 2] = right
        return
    count = last[-1]
    windows[count, 0], windows[count, 1], windows[count, 2] = key, left, right
    last[scan], last[-1] = count, count + 1


@njit(**INLINED)
def _common(pairs: Bits, first: int, second: int) -> int:
    """Return the groups of the grams that two pairs of bytes can be."""
    return pairs[first, 0] & pairs[second, 1]


@njit(**KERNEL)
def _find_likely(block: Bytes, size: int, pairs: Bits, places: Integers, groups: Bits) -> int:
    """Write the even places of likely grams, and the groups of each; return how many."""
    at, count, low = uint64(0), 0, uint64(0xFFFF)
    word = read_8(block, at)
    while at < size:
        after = read_8(block, at + EIGHT)
        # Even places only: five pairs make four grams, and the fifth pair is the next word's.
        one, two = word & low, (word >> uint64(16)) & low
        three, four, five = (word >> uint64(32)) & low, word >> uint64(48), after & low
        likely = (
            _common(pairs, one, two),
            _common(pairs, two, three),
            _common(pairs, three, four),
            _common(pairs, four, five),
        )
        # One branch for eight bytes.
        if likely[0] | likely[1] | likely[2] | likely[3]:
            for i in range(4):
                # Written in any case, and kept only if the count moves on.
                places[count], groups[count] = at + uint64(2 * i), likely[i]
                count += likely[i] != 0
        word = after
        at += EIGHT
    return count


@njit(**KERNEL)
def _fill(block: Bytes, skipped: int, own: Bytes) -> None:
    """Copy bytes into a block after `skipped` zeros; zeros follow."""
    if len(own) == len(block):  # eight times as fast as byte by byte
        for first in range(0, len(own), RUN):
            copy_64(own, uint64(first), block, uint64(first), (uint64(0), uint64(0)))
        return
    block[:] = 0
    for i in range(len(own)):
        block[skipped + i] = own[i]


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
    block: tuple[Bytes, int],
    likely: tuple[Integers, Bits],
    tables: ClueTables,
    found: tuple[Integers, Integers],
) -> int:
    """Add the windows of the clues at likely places of a block, while there is room for them.

    Returns the number of places done. block: its bytes, and the place of its first one.
    """
    data, offsets = texts
    places, groups = likely
    windows, last = found
    # Places ascend: the text is near that of the last window.
    row = 0 if last[-1] == 0 else windows[last[-1] - 1, 0] // (len(last) - 1)
    for i in range(len(places)):
        # Room for a window of each scan, else the caller makes more and goes on here.
        if len(windows) - last[-1] < len(tables.scans):
            return i
        word, left = int64(read_4(block[0], places[i])), groups[i]
        while left:
            group = first_one(left)
            left &= left - ONE
            for gram in range(tables.groups[group], tables.groups[group + ONE]):
                if word & tables.grams[gram, 2] != tables.grams[gram, 3]:
                    continue
                clue, first = tables.grams[gram, 0], block[1] + places[i] - tables.grams[gram, 1]
                if first < offsets[0] or first >= offsets[-1]:
                    continue
                row = _text_at(offsets, row, first)
                text = (offsets[row], offsets[row + 1])
                if _is_clue(data, text, first, tables, clue):
                    scan = tables.scans[clue]
                    around = (tables.held[scan], tables.reaches[scan])
                    _add_window(data, (row, text[0], text[1]), (first, scan), around, found)
    return len(places)


@njit(**ARRAY_KERNEL)
def find_windows(data: Bytes, offsets: Integers, tables: ClueTables) -> Integers:
    """Return the windows around the clues of n texts, int64 [windows, 3]: key, start, stop.

    data: UTF-8 bytes; offsets: int64 [n + 1]. A key is that of s scans and a text: its row times s
    and the scan. The windows of one scan share no byte and are in order.
    """
    windows = np.empty((1024, 3), np.int64)
    last = np.full(len(tables.reaches) + 1, -1)  # the last window of each scan; their number
    last[-1] = 0
    block = np.zeros(BLOCK + AROUND, np.uint8)
    places, groups = np.empty(BLOCK // 2 + 4, np.int64), np.empty(BLOCK // 2 + 4, np.uint64)
    begin, end = offsets[0], offsets[-1]
    for first in range(begin - AROUND, end, BLOCK):
        own = data[max(first, begin) : min(first + BLOCK + AROUND, end)]
        _fill(block, max(begin - first, 0), own)
        count = _find_likely(block, min(BLOCK, end - first), tables.pairs, places, groups)
        done = 0
        while done < count:
            likely = (places[done:count], groups[done:count])
            done += _add_windows((data, offsets), (block, first), likely, tables, (windows, last))
            if done < count:
                # As many as all bytes have if they are like those before, but not too many for a
                # list at the start. To double the room took 0.4 GB more of a list of 50 MB.
                share = (end - begin) / (first + BLOCK - begin)
                size = min(max(1.25 * len(windows), 1.05 * share * last[-1]), 4 * len(windows))
                grown = np.empty((int(size), 3), np.int64)
                for row in range(last[-1]):  # not as slices: see `compiling`
                    for column in range(3):
                        grown[row, column] = windows[row, column]
                windows = grown
    return windows[: last[-1]]
