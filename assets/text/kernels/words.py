"""Words and whitespace of a block of texts, straight from Arrow's text buffers.

One pass over the bytes, no Python object per word, the interpreter lock released. Two choices make
it fast: ASCII is handled by arithmetic instead of branches (a word ends once in six bytes; a wrong
branch prediction costs as much as ten bytes), and positions are unsigned, since numba compiles a
test for negative values into every use of a signed index.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

import numpy as np
from numba import njit, types, uint32, uint64
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_KERNEL, INLINED, KERNEL
from assets.text.kernels.many_bytes import (
    HIGH_BITS,
    ONE,
    RUN,
    count_ones,
    first_one,
    mark_bytes,
    ones_below,
    pack_64,
    read_8,
    size_of,
)
from assets.text.kernels.utf8 import decode

Bytes = NDArray[np.uint8]


@njit(**INLINED)
def plain_words(data: Bytes, span: tuple[int, int]) -> tuple[int, int]:
    """Mark the bytes of the whole words of ASCII at the start of data[span], up to 63 bytes.

    Returns the mask and the bytes it stands for: 0 if the text begins with a word that is longer or
    not ASCII, or near the end of `data`: from any byte of the mask, 64 can be read. `span` and all
    results are uint64.
    """
    at, stop = span
    if data[at] >= 0x80 or at + RUN + RUN > uint64(len(data)):
        return uint64(0), uint64(0)
    spaces = plain_spaces(data, at)
    size = min(stop - at, uint64(63), first_one(wide_bytes(data, at)))
    # Behind the last white space: the word that goes on is left whole.
    if size != stop - at:
        size = size_of(spaces & ones_below(size))
    return ~spaces & ones_below(size), size


@njit(**INLINED)
def plain_spaces(data: Bytes, at: int) -> int:
    """Mark the white space of ASCII."""
    return mark_bytes(data, at, uint64(9), uint64(5)) | mark_bytes(data, at, uint64(28), uint64(5))


@njit(**INLINED)
def wide_bytes(data: Bytes, at: int) -> int:
    """Mark the bytes that are not ASCII."""
    return mark_bytes(data, at, uint64(0x80), uint64(0x80))


@njit(**INLINED)
def wide_spaces(data: Bytes, at: int) -> int:
    """Mark the first bytes of white space that is not ASCII: 67 bytes must be readable.

    It is U+0085, U+00A0, U+1680, U+2000 to U+200A, U+2028, U+2029, U+202F, U+205F and U+3000.
    """
    of_two, of_three = mark_byte(data, at, 0xC2), mark_bytes(data, at, uint64(0xE1), uint64(3))
    # Hardly any bytes: the other masks are not needed.
    if not of_two | of_three:
        return uint64(0)
    next_at, last_at = at + ONE, at + ONE + ONE
    of_two &= mark_byte(data, next_at, 0x85) | mark_byte(data, next_at, 0xA0)
    is_first = mark_byte(data, last_at, 0x80)
    ogham = mark_byte(data, at, 0xE1) & mark_byte(data, next_at, 0x9A) & is_first
    ideographic = mark_byte(data, at, 0xE3) & mark_byte(data, next_at, 0x80) & is_first
    quads = mark_bytes(data, last_at, uint64(0x80), uint64(11)) | mark_byte(data, last_at, 0xAF)
    quads |= mark_bytes(data, last_at, uint64(0xA8), uint64(2))
    medium = mark_byte(data, next_at, 0x81) & mark_byte(data, last_at, 0x9F)
    general = mark_byte(data, at, 0xE2) & (mark_byte(data, next_at, 0x80) & quads | medium)
    return of_two | ogham | general | ideographic


@njit(**INLINED)
def mark_byte(data: Bytes, at: int, byte: int) -> int:
    """Mark those of the 64 bytes at data[at] that are equal to `byte`."""
    return mark_bytes(data, at, uint64(byte), uint64(1))


@njit(**INLINED)
def small_letters(data: Bytes, at: int) -> int:
    return mark_bytes(data, at, uint64(97), uint64(26))


@njit(**INLINED)
def capitals(data: Bytes, at: int) -> int:
    return mark_bytes(data, at, uint64(65), uint64(26))


@njit(**INLINED)
def digit_bytes(data: Bytes, at: int) -> int:
    return mark_bytes(data, at, uint64(48), uint64(10))


@njit(**INLINED)
def word_bytes(data: Bytes, at: int) -> int:
    """Mark letters, digits and underscores."""
    letters = small_letters(data, at) | capitals(data, at)
    return letters | digit_bytes(data, at) | mark_byte(data, at, 95)


# Entry of a code point in the table: its lower case (a blank if it is in no word) below these bits.
SPACE, WORD, SINGLE = 1 << 24, 1 << 25, 3 << 25
LOWER = (1 << 24) - 1
BLANK = 32
PADDING = 64  # bytes after the last word, for a hash that reads ahead

Entries = NDArray[np.uint32]
Offsets = NDArray[np.int64]

# Read-only, as Arrow's memory is; numba then accepts writable arrays as well.
_bytes = types.Array(types.uint8, 1, "C", readonly=True)
_entries = types.Array(types.uint32, 1, "C", readonly=True)
_offsets = types.Array(types.int64, 1, "C", readonly=True)
_ONE = uint64(1)  # uint64 + 1 would be a float64


@njit(types.uint64(types.uint64, _entries), **INLINED)
def entry_of(code_point: int, entries: Entries) -> int:
    """Return the entry of a code point; those beyond the table are ideographs or in no word."""
    if code_point < uint64(len(entries)):
        return uint64(entries[code_point])
    is_single = code_point < uint64(0x40000)
    return code_point | uint64(SINGLE) if is_single else uint64(BLANK)


@njit(types.UniTuple(types.uint64, 2)(_bytes, types.uint64, _entries), **INLINED)
def entry_and_width(data: Bytes, at: int, entries: Entries) -> tuple[int, int]:
    """Return the entry of the code point at byte `at` of valid UTF-8, and its width in bytes."""
    code_point, width = decode(data, at)
    return entry_of(code_point, entries), uint64(width)


@njit(types.uint64(types.uint64, types.uint8[::1], types.uint64), **KERNEL)
def _write(code_point: int, target: Bytes, at: int) -> int:
    """Encode a code point as UTF-8 at a position of the target; return the position after it."""
    point = np.int64(code_point)
    if point < 0x80:
        target[at] = point
        return at + _ONE
    if point < 0x800:
        target[at] = 0xC0 | point >> 6
    else:
        if point < 0x10000:
            target[at] = 0xE0 | point >> 12
        else:
            target[at] = 0xF0 | point >> 18
            at += _ONE
            target[at] = 0x80 | point >> 12 & 0x3F
        at += _ONE
        target[at] = 0x80 | point >> 6 & 0x3F
    target[at + _ONE] = 0x80 | point & 0x3F
    return at + uint64(2)


@njit(**INLINED)
def _ascii_rules(entries: Entries) -> tuple[int, int]:
    """Return what makes a capital small, and whether marks are in words (see `buffers`)."""
    case = uint64(entries[ord("A")] & uint32(LOWER)) - uint64(ord("A"))
    return case, uint64(entries[ord("!")] >> uint32(25)) & _ONE


@njit(**INLINED)
def _join_plain(
    data: Bytes,
    window: tuple[int, int, int, int],
    joined: Bytes,
    starts: Offsets,
    target: tuple[int, int, int],
) -> tuple[int, int, int]:
    """Append the words of up to 63 bytes of ASCII; return `target` as it is then, all uint64.

    `window` is their position, the mask of their words, their number, and what makes a capital
    small. `target` is the sizes of `joined` and `starts`, and 0 if the last word may go on.
    """
    (at, words, width, case), (size, count, between) = window, target
    # Bit i: byte i - 1 is of a word; bit 0: the word before this window goes on.
    after_word = words << _ONE | (between ^ _ONE)
    begins, blanks = words & ~after_word, ~words & after_word & ones_below(width)
    kept = words | blanks
    pack_64(data, at, joined, size, (blanks, case, kept))
    for _ in range(count_ones(begins)):
        # A word begins behind the kept bytes below it.
        starts[count] = size + count_ones(kept & ones_below(first_one(begins)))
        begins &= begins - _ONE
        count += _ONE
    return size + count_ones(kept), count, ~words >> (width - _ONE) & _ONE


@njit(
    types.UniTuple(types.uint64, 2)(
        types.UniTuple(types.uint64, 2),
        _bytes,
        _entries,
        types.uint8[::1],
        types.int64[::1],
        types.UniTuple(types.uint64, 2),
    ),
    **KERNEL,
)
def _join_text(
    span: tuple[int, int],
    data: Bytes,
    entries: Entries,
    joined: Bytes,
    starts: Offsets,
    target: tuple[int, int],
) -> tuple[int, int]:
    """Append the words of data[span] to `joined` and `starts`, whose sizes are `target`."""
    (at, stop), (size, count), between = span, target, _ONE
    case, keeps_marks = _ascii_rules(entries)
    while at < stop:
        if at + RUN + RUN <= uint64(len(data)) and not read_8(data, at) & HIGH_BITS:
            width = min(stop - at, uint64(63), first_one(wide_bytes(data, at)))
            words = ~plain_spaces(data, at) if keeps_marks else word_bytes(data, at)
            window = at, words & ones_below(width), width, case
            size, count, between = _join_plain(data, window, joined, starts, (size, count, between))
            at += width
            continue
        byte = data[at]
        if byte < 0x80:
            entry = entries[byte]
            is_word = uint64(entry >> uint32(25))
            # Written in any case; it counts if it is of a word, or the first behind one (a blank).
            joined[size] = entry
            starts[count] = size
            count += is_word & between
            size += is_word | (between ^ _ONE)
            between = is_word ^ _ONE
            at += _ONE
            continue
        wide_entry, width = entry_and_width(data, at, entries)
        is_word, is_single = wide_entry >> uint64(25) & _ONE, wide_entry >> uint64(26)
        ends_word = is_single | (is_word ^ _ONE)
        joined[size] = BLANK
        size += ends_word & (between ^ _ONE)
        starts[count] = size
        count += is_word & (between | ends_word)
        if is_word:
            size = _write(wide_entry & uint64(LOWER), joined, size)
        joined[size] = BLANK
        size += is_single
        between = ends_word
        at += width
    joined[size] = BLANK
    return size + (between ^ _ONE), count


@njit(
    types.Tuple((types.uint8[::1], types.int64[::1], types.int64[::1]))(_bytes, _offsets, _entries),
    **ARRAY_KERNEL,
)
def join_words(data: Bytes, offsets: Offsets, entries: Entries) -> tuple[Bytes, Offsets, Offsets]:
    """Join the lower-case words of n texts, with a blank after each.

    Returns `joined`, uint8 [bytes + PADDING]; `starts`, int64 [words + 1]: words i to j are
    joined[starts[i] : starts[j + 1] - 1]; and `word_offsets`, int64 [n + 1]: text i has the words
    from word_offsets[i] up to word_offsets[i + 1].
    """
    num_bytes, num_texts = offsets[-1] - offsets[0], len(offsets) - 1
    joined = np.empty(2 * num_bytes + num_texts + PADDING + 64, np.uint8)  # see `pack_64`
    starts = np.empty(num_bytes + 1, np.int64)
    word_offsets = np.zeros(num_texts + 1, np.int64)
    size, count = uint64(0), uint64(0)
    for i in range(num_texts):
        span = (uint64(offsets[i]), uint64(offsets[i + 1]))
        size, count = _join_text(span, data, entries, joined, starts, (size, count))
        word_offsets[i + 1] = count
    starts[count] = size
    return joined[: size + uint64(PADDING)], starts[: count + _ONE], word_offsets


@njit(**INLINED)
def _plain_width(data: Bytes, at: int, stop: int) -> int:
    """Return the bytes, up to 63, of whole characters before white space that is not ASCII.

    0 near the end of `data`: 64 bytes can be read from any of them. All numbers are uint64.
    """
    if at + RUN + RUN > uint64(len(data)):
        return uint64(0)
    width = min(stop - at, uint64(63), first_one(wide_spaces(data, at)))
    while data[at + width] & 0xC0 == 0x80:  # the later bytes of a character
        width -= _ONE
    return width


@njit(**KERNEL)
def _fold_text(
    data: Bytes, span: tuple[int, int], entries: Entries, folded: Bytes, size: int
) -> int:
    begin, (at, stop), after_space = size, span, _ONE
    while at < stop:
        width = _plain_width(data, at, stop)
        if width:
            spaces = plain_spaces(data, at) & ones_below(width)
            # The first white space of a run, none at the text's start or behind the last window's.
            kept = ones_below(width) & ~(spaces & (spaces << _ONE | after_space))
            pack_64(data, at, folded, size, (spaces, uint64(0), kept))
            after_space = spaces >> (width - _ONE) & _ONE
            size += count_ones(kept)
            at += width
            continue
        byte = data[at]
        if byte < 0x80:
            is_space = uint64(entries[byte] >> uint32(24)) & _ONE
            folded[size] = BLANK if is_space else byte
            size += _ONE ^ (is_space & after_space)
            after_space = is_space
            at += _ONE
            continue
        entry, width = entry_and_width(data, at, entries)
        is_space = entry >> uint64(24) & _ONE
        folded[size] = BLANK
        size += is_space & (after_space ^ _ONE)
        after_space = is_space
        for _ in range(width):
            if not is_space:
                folded[size] = data[at]
                size += _ONE
            at += _ONE
    return size - after_space if size > begin else begin


@njit(types.Tuple((types.uint8[::1], types.int64[::1]))(_bytes, _offsets, _entries), **ARRAY_KERNEL)
def fold_whitespace(data: Bytes, offsets: Offsets, entries: Entries) -> tuple[Bytes, Offsets]:
    """Fold each run of whitespace to one blank, none at the ends: bytes, offsets int64 [n + 1]."""
    folded = np.empty(offsets[-1] - offsets[0] + 1 + 64, np.uint8)  # see `pack_64`
    folded_offsets = np.zeros(len(offsets), np.int64)
    size = uint64(0)
    for i in range(len(offsets) - 1):
        span = (uint64(offsets[i]), uint64(offsets[i + 1]))
        size = _fold_text(data, span, entries, folded, size)
        folded_offsets[i + 1] = size
    return folded[:size], folded_offsets
