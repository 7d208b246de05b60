"""Count the characters and words of a text, and hash its words for the n-grams.

Words are those of `str.split()`, except that a character of a script without spaces (Han, kana) is
a word of its own; letters and digits are those of `str.isalpha`, `isdigit` and `isalnum`.
The class of a byte is a number whose fields add up to several counts at once, and the ends of words
are found without branches.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

from functools import cache

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from assets.filtered.kernels.text_counts import Count
from assets.text.kernels.character_classes import (
    BULLETS,
    SINGLES,
    TERMINAL_MARKS,
    add_marks,
    classes_by,
)
from assets.text.kernels.hashing import hash_bytes
from assets.text.kernels.many_bytes import ONE
from assets.text.kernels.utf8 import count_continuations, decode

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]
Hashes = NDArray[np.uint64]
Positions = NDArray[np.uint32]
Classes = tuple[Bytes, Hashes, Hashes]  # of code points, of a class, of ASCII bytes

SPACE, LETTER, ALPHANUMERIC, TERMINAL, BULLET, DIGIT, UPPERCASE, SINGLE = (1 << i for i in range(8))
# Six counts in one number, 10 bits each: they hold the bytes of a chunk.
FIELD = 10
FIELDS = (SPACE, ALPHANUMERIC, LETTER, DIGIT, UPPERCASE)
HASH_FIELD = len(FIELDS)
CHUNK_BYTES = 1000
EDGES = 2 * CHUNK_BYTES  # a byte starts at most one word and ends at most one

_options = {"cache": True, "nogil": True}
_inlined = {**_options, "forceinline": True}


@cache
def character_classes() -> Classes:
    """Return class bits of every code point, and the fields of a class and of an ASCII byte.

    Classes: uint8 [0x110000]; fields: uint64 [256] and [128]. Made once per process.
    """
    tests = {SPACE: str.isspace, LETTER: str.isalpha, ALPHANUMERIC: str.isalnum}
    classes = classes_by({**tests, DIGIT: str.isdigit, UPPERCASE: str.isupper})
    add_marks(classes, TERMINAL_MARKS, TERMINAL)
    add_marks(classes, BULLETS, BULLET)
    for first, last in SINGLES:
        classes[first : last + 1] |= SINGLE
    fields = np.zeros(256, np.uint64)
    for place, bit in enumerate(FIELDS):
        fields[(np.arange(256) & bit) != 0] += 1 << place * FIELD
    ascii_fields = fields[classes[:128]]
    ascii_fields[ord("#")] += 1 << HASH_FIELD * FIELD
    return classes.astype(np.uint8), fields, ascii_fields


@njit(**_options)
def count_words(
    data: Bytes,
    span: tuple[int, int],
    classes: Classes,
    arrays: tuple[Hashes, Hashes, Positions],
    counts: Integers,
) -> None:
    """Fill the counts of a text, data[span], and the hash and end of each word if there is room.

    `span` is a pair of uint64; `counts` is int64 [Count]; the end of a word is the number of
    characters of all words up to it. `arrays` is (room for edges, uint64 [EDGES + 8]; hashes,
    uint64 [words]; ends, uint32 [words]).
    """
    edges, hashes, ends = arrays
    at, stop = span
    wide, num_edges = uint64(0), uint64(0)
    word_totals = (0, 0, 0, 0)
    while at < stop:
        limit = min(at + uint64(CHUNK_BYTES), stop)
        at, num_edges, fields, more = _find_edges(data, (at, limit), classes, edges, num_edges)
        wide += more
        _add_fields(fields, counts)
        if at >= stop and num_edges & ONE:
            edges[num_edges] = at
            num_edges += ONE
        complete = (edges[: num_edges & ~ONE], wide > 0)
        word_totals = _take_words(data, complete, classes[0], (hashes, ends), word_totals)
        edges[0] = edges[num_edges & ~ONE]
        num_edges &= ONE
    counts[Count.CHARACTERS] = span[1] - span[0] - wide
    counts[Count.WORDS] = word_totals[0]
    counts[Count.ALPHABETIC_WORDS] = word_totals[1]
    counts[Count.LONGEST_WORD] = word_totals[2]
    counts[Count.WORD_CHARACTERS] = word_totals[3]


@njit(**_options)
def _add_fields(fields: int, counts: Integers) -> None:
    mask = uint64((1 << FIELD) - 1)
    counts[Count.ALPHANUMERIC_CHARACTERS] += fields >> uint64(FIELD) & mask
    counts[Count.ALPHABETIC_CHARACTERS] += fields >> uint64(2 * FIELD) & mask
    counts[Count.DIGIT_CHARACTERS] += fields >> uint64(3 * FIELD) & mask
    counts[Count.UPPERCASE_CHARACTERS] += fields >> uint64(4 * FIELD) & mask
    counts[Count.HASHES] += fields >> uint64(5 * FIELD) & mask


@njit(**_options)
def _find_edges(
    data: Bytes, span: tuple[int, int], classes: Classes, edges: Hashes, num_edges: int
) -> tuple[int, int, int, int]:
    """Append the starts and ends of words; an odd number of edges means that a word goes on.

    Returns the position reached, the number of edges, the sum of the fields, and the number of
    bytes minus the number of characters.
    """
    kinds, fields_of, ascii_fields = classes
    at, limit = span
    fields, wide = uint64(0), uint64(0)
    outside = (num_edges & ONE) ^ ONE
    while at < limit:
        byte = data[at]
        edges[num_edges] = at
        if byte < 0x80:
            field = ascii_fields[byte]
            fields += field
            num_edges += (field & ONE) ^ outside
            outside = field & ONE
            at += ONE
            continue
        code, width = decode(data, at)
        bits = kinds[code]
        fields += fields_of[bits]
        at += width
        wide += width - ONE
        if bits & SINGLE:
            num_edges += outside ^ ONE
            edges[num_edges] = at - width
            edges[num_edges + ONE] = at
            num_edges += uint64(2)
            outside = ONE
        else:
            num_edges += uint64(bits & SPACE) ^ outside
            outside = uint64(bits & SPACE)
    return at, num_edges, fields, wide


@njit(**_options)
def _take_words(
    data: Bytes,
    complete: tuple[Hashes, bool],
    kinds: Bytes,
    words: tuple[Hashes, Positions],
    totals: tuple[int, int, int, int],
) -> tuple[int, int, int, int]:
    """Count the words between edges; return words, those with letters, the longest, characters."""
    edges, is_wide = complete
    hashes, ends = words
    num_words, alphabetic, longest, characters = totals
    for i in range(0, len(edges), 2):
        start, stop = edges[i], edges[i + 1]
        length = np.int64(stop - start)
        if is_wide:
            length -= np.int64(count_continuations(data, start, stop))
        alphabetic += _has_letter(data, start, stop, kinds)
        longest = max(longest, length)
        characters += length
        if len(hashes):
            hashes[num_words] = hash_bytes(data, start, stop)
            ends[num_words] = characters
        num_words += 1
    return num_words, alphabetic, longest, characters


@njit(**_inlined)
def _has_letter(data: Bytes, at: int, stop: int, kinds: Bytes) -> bool:
    while at < stop:
        code, width = decode(data, at)
        if kinds[code] & LETTER:
            return True
        at += width
    return False
