"""Work on spans of texts in UTF-8: count characters, choose among overlaps, replace."""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_KERNEL, KERNEL
from assets.text.kernels.utf8 import decode, last_start

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]


KEPT, DROPPED, HIDDEN = 1, 0, 2
NEWLINE = 10


@njit(**ARRAY_KERNEL)
def _count_chars(data: Bytes, start: int, stop: int) -> int:
    count = 0
    for byte in data[start:stop]:  # eight times as fast as by index
        count += byte & 0xC0 != 0x80
    return count


@njit(**ARRAY_KERNEL)
def to_characters(data: Bytes, offsets: Integers, spans: Integers) -> None:
    """Replace the first and the last byte of spans, int64 [n, >= 3], by characters of their text.

    Spans: number of the text, start and end; fastest in order and without overlap. data: UTF-8
    bytes; offsets: int64 [texts + 1].
    """
    row, at, chars = -1, 0, 0
    for i in range(len(spans)):
        if spans[i, 0] != row:
            row, chars = spans[i, 0], 0
            at = offsets[row]
        for k in (1, 2):
            # One of the two is empty: a span that begins before the last one's end is counted back.
            chars += _count_chars(data, at, spans[i, k])
            chars -= _count_chars(data, spans[i, k], at)
            at = spans[i, k]
            spans[i, k] = chars


@njit(**ARRAY_KERNEL)
def to_bytes(data: Bytes, offsets: Integers, spans: Integers) -> None:
    """Replace the characters of spans, as `to_characters` makes them, by bytes of the data."""
    row, at, chars = -1, 0, 0
    for i in range(len(spans)):
        if spans[i, 0] != row:
            row, chars = spans[i, 0], 0
            at = offsets[row]
        for k in (1, 2):
            while chars < spans[i, k]:  # as many bytes as characters are missing are too few
                stop = at + spans[i, k] - chars
                chars += _count_chars(data, at, stop)
                at = stop
            while at < offsets[row + 1] and data[at] & 0xC0 == 0x80:
                at += 1
            spans[i, k] = at


@njit(**ARRAY_KERNEL)
def are_sorted(spans: Integers) -> bool:
    """Check the order of spans, int64 [n, 4]: by text and start, the longest and first kind first.

    Sorting by four keys takes 0.1 s for a million that are in order.
    """
    for i in range(1, len(spans)):
        for k in range(4):
            before, own = spans[i - 1, k], spans[i, k]
            if own != before:
                if (own > before) == (k == 2):
                    return False
                break
    return True


@njit(**ARRAY_KERNEL)
def choose_spans(spans: Integers, last_kind: int, num_kinds: int) -> Bytes:
    """Choose among sorted spans, int64 [n, 4], that overlap: the longest, then the first kind.

    Returns KEPT, DROPPED (for a span that holds it) or HIDDEN (by one that it only overlaps).
    last_kind: the kind that counts after all others.
    """
    marks = np.zeros(len(spans), np.uint8)
    last, last_rank = -1, 0
    for i in range(len(spans)):
        kind = spans[i, 3]
        # Length first, then all kinds but the last one, then the lower kind: in one number.
        rank = ((spans[i, 2] - spans[i, 1]) * 2 + (kind != last_kind)) * num_kinds - kind
        is_free = last < 0 or spans[last, 0] != spans[i, 0] or spans[last, 2] <= spans[i, 1]
        if is_free:
            marks[i], last, last_rank = KEPT, i, rank
            continue
        better, worse = (i, last) if rank >= last_rank else (last, i)
        is_inside = spans[better, 1] <= spans[worse, 1] and spans[worse, 2] <= spans[better, 2]
        marks[better], marks[worse] = KEPT, DROPPED if is_inside else HIDDEN
        last, last_rank = better, max(rank, last_rank)
    return marks


@njit(**ARRAY_KERNEL)
def mark_near(places: Integers, kind: int, spans: Integers, reach: int, is_near: Bytes) -> None:
    """Mark the texts with a place of a kind at most `reach` characters from one of n spans.

    places: int64 [p, >= 4]: text, start, end, kind, in any order; spans: the same, in order and
    without overlap. Those of texts that are marked are passed over.
    """
    for i in range(len(places)):
        row, start, end = places[i, 0], places[i, 1], places[i, 2]
        if places[i, 3] != kind or is_near[row]:
            continue
        low, high = 0, len(spans)  # the first span that begins after the place does
        while low < high:
            middle = (low + high) // 2
            own = spans[middle, 0]
            if own < row or (own == row and spans[middle, 1] <= start):
                low = middle + 1
            else:
                high = middle
        follows = low > 0 and spans[low - 1, 0] == row and spans[low - 1, 2] + reach >= start
        leads = low < len(spans) and spans[low, 0] == row and spans[low, 1] <= end + reach
        is_near[row] = follows or leads


@njit(**KERNEL)
def _is_white(code: int) -> bool:
    """Check for White_Space of Unicode."""
    if code < 0x80:
        return code == 32 or 9 <= code <= 13
    return bool(
        code in (0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000)
        or 0x2000 <= code <= 0x200A
    )


@njit(**ARRAY_KERNEL)
def find_edges(data: Bytes, offsets: Integers) -> Integers:
    """Return where n texts begin and end without blank lines first and white space last.

    Returns int64 [n, 2]. data: UTF-8 bytes; offsets: int64 [n + 1].
    """
    edges = np.empty((len(offsets) - 1, 2), np.int64)
    for row in range(len(edges)):
        first, stop = offsets[row], offsets[row + 1]
        while stop > first:
            last = last_start(data, stop)
            if not _is_white(decode(data, last)[0]):
                break
            stop = last
        at = first
        while at < stop:
            code, size = decode(data, at)
            if not _is_white(code):
                break
            at += size
            if code == NEWLINE:
                first = at
        edges[row] = first, stop
    return edges


@njit(**ARRAY_KERNEL)
def replace_spans(
    data: Bytes, offsets: Integers, spans: Integers, words: Bytes, ends: Integers
) -> tuple[Bytes, Integers]:
    """Return the bytes of n texts with words in place of spans, and their offsets, int64 [n + 1].

    spans: int64 [s, 4]: text, first byte, end, number of the word; in order and without overlap.
    words: the bytes of all words; ends: where each ends.
    """
    size = offsets[-1] - offsets[0]
    for i in range(len(spans)):
        word = spans[i, 3]
        size += ends[word] - (ends[word - 1] if word else 0) - (spans[i, 2] - spans[i, 1])
    edited, new_offsets = np.empty(size, np.uint8), np.zeros(len(offsets), np.int64)
    at, done, i = 0, offsets[0], 0
    for row in range(len(offsets) - 1):
        while i < len(spans) and spans[i, 0] == row:
            start, word = spans[i, 1], spans[i, 3]
            edited[at : at + start - done] = data[done:start]
            at, done = at + start - done, spans[i, 2]
            own = words[(ends[word - 1] if word else 0) : ends[word]]
            edited[at : at + len(own)] = own
            at += len(own)
            i += 1
        stop = offsets[row + 1]
        edited[at : at + stop - done] = data[done:stop]
        at, done = at + stop - done, stop
        new_offsets[row + 1] = at
    return edited, new_offsets


_BASE = uint64(0x9E3779B97F4A7C15)
_SLOT_BITS = 12
_HASHED = 48  # bytes from a candidate's first on, by which candidates meet
_PRIME = uint64(0x100000001B3)


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
        # The next byte comes in; the first one goes, at the power that it has now.
        own = own * _BASE + uint64(data[at + size]) - power * uint64(data[at])
        at += 1
    return at


@njit(**ARRAY_KERNEL)
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


@njit(**ARRAY_KERNEL)
def _slot(data: Bytes, start: int, stop: int) -> int:
    key = uint64(0xCBF29CE484222325)
    for byte in data[start : min(stop, start + _HASHED)]:
        key = (key ^ uint64(byte)) * _PRIME
    return np.int64(key >> uint64(64 - _SLOT_BITS))


@njit(**ARRAY_KERNEL)
def first_alike(
    data: Bytes, offsets: Integers, places: Integers, before: int, after: int
) -> Integers:
    """Return the number of an earlier candidate with the same text around, or its own, int64 [n].

    places: int64 [n, 3]: row, first byte, end. All of a candidate, `before` bytes before it and
    `after` bytes after it are compared, as far as its text goes; some that are alike may be missed.
    """
    firsts = np.arange(len(places))
    lasts = np.full(1 << _SLOT_BITS, -1)
    # What is known to be the same as that `shift` bytes before is not read again: a text of one
    # repeated word has all of its candidates at one distance.
    shift, known, stop = 0, 0, 0
    for i in range(len(places)):
        row, start, end = places[i]
        low, high = max(offsets[row], start - before), min(offsets[row + 1], end + after)
        slot = _slot(data, start, high)
        j, lasts[slot] = lasts[slot], i
        if j < 0:
            continue
        other, first, last = places[j]
        is_alike = end - start == last - first
        is_alike &= start - low == first - max(offsets[other], first - before)
        is_alike &= high - end == min(offsets[other + 1], last + after) - last
        if not is_alike:
            continue
        # Another distance, or a gap: nothing is known of what is between.
        if start - first != shift or not known <= low <= stop:
            shift, known, stop = start - first, low, low
        while stop < high and data[stop] == data[stop - shift]:
            stop += 1
        if stop >= high:
            firsts[i] = firsts[j]
    return firsts
