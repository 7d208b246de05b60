"""Cut texts into chunks, runs between white space, and keep the tokens of each in one table.

A tokenizer that cuts each chunk by itself (spaCy) needs to see it once: the kernels find its tokens
under the hash of its bytes. A chunk of letters alone is one token, unless it is an exception of the
tokenizer: those are in the table from the start.
Trade-off: a tokenizer takes time with the square of the marks of a chunk (spaCy: 7 s for 5,000
"="), so a chunk ends after MAX_MARKS of them, and after MAX_BYTES.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment"

from typing import NamedTuple

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from assets.filtered.kernels.text_words import ALPHANUMERIC, LETTER, SPACE
from assets.text.kernels.compiling import ARRAY_INLINED, ARRAY_KERNEL
from assets.text.kernels.hashing import hash_bytes
from assets.text.kernels.utf8 import decode

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]
Hashes = NDArray[np.uint64]

MAX_BYTES, MAX_MARKS = 8192, 256
ONE = uint64(1)
FREE = np.int64(-1)
PROBE_LIMIT = 1 << 12  # a run of 4,096 filled slots in a half-empty table is no accident


class Tokens(NamedTuple):
    """Tokens of chunks, one after the other, and an open-addressing table of the chunks.

    keys: uint64 [slots], a power of two. firsts: int64 [slots], the chunk's first token, -1: free.
    lengths: int64 [slots], its number of tokens. sizes and characters: int64, of each token in
    bytes and code points. flags: uint8, of each token.
    """

    keys: Hashes
    firsts: Integers
    lengths: Integers
    sizes: Integers
    characters: Integers
    flags: Bytes


@njit(**ARRAY_INLINED)
def slot_of(keys: Hashes, firsts: Integers, key: int) -> int:
    """Return the slot of a chunk's hash, or a free one; after PROBE_LIMIT that of another hash.

    A chunk that finds no slot is not entered, and is one token.
    """
    mask = uint64(len(keys) - 1)
    slot, probes = (key >> uint64(20)) & mask, 1
    while firsts[slot] != FREE and keys[slot] != key and probes < PROBE_LIMIT:
        slot = (slot + ONE) & mask
        probes += 1
    return slot


@njit(**ARRAY_INLINED)
def chunk_at(data: Bytes, at: int, stop: int, kinds: Bytes) -> tuple[int, int, bool]:
    """Return the end of the chunk at byte `at`, its characters, and if all are letters."""
    first, characters, marks, is_plain = at, 0, 0, True
    while at < stop:
        code, width = decode(data, at)
        bits = kinds[code]
        if bits & SPACE:
            break
        is_plain &= (bits & LETTER) != 0
        marks += (bits & ALPHANUMERIC) == 0
        if marks > MAX_MARKS or at + width > first + uint64(MAX_BYTES):
            break
        characters += 1
        at += width
    return at, characters, is_plain


@njit(**ARRAY_INLINED)
def space_at(data: Bytes, at: int, stop: int, kinds: Bytes) -> int:
    """Return the end of the white space at byte `at`."""
    while at < stop:
        code, width = decode(data, at)
        if not kinds[code] & SPACE:
            break
        at += width
    return at


@njit(**ARRAY_KERNEL)
def find_unknown(
    data: Bytes, starts: Integers, kinds: Bytes, tokens: Tokens, found: tuple[Hashes, Integers]
) -> int:
    """Fill in hash, start and end of the chunks of texts that the table lacks; count them.

    `starts`: int64 [n + 1], of n texts in `data`. `found`: uint64 [m] and int64 [m, 2], with room
    for half of the bytes; a chunk comes as often as it occurs.
    """
    hashes, bounds = found
    count = 0
    for row in range(len(starts) - 1):
        at, stop = uint64(starts[row]), uint64(starts[row + 1])
        while at < stop:
            at = space_at(data, at, stop, kinds)
            end, _, is_plain = chunk_at(data, at, stop, kinds)
            if not is_plain:
                key = hash_bytes(data, at, end)
                if tokens.firsts[slot_of(tokens.keys, tokens.firsts, key)] == FREE:
                    hashes[count] = key
                    bounds[count, 0] = at
                    bounds[count, 1] = end
                    count += 1
            at = end
    return count


@njit(**ARRAY_KERNEL)
def hash_texts(data: Bytes, starts: Integers) -> Hashes:
    """Return the hash of each of n texts that are not empty, uint64 [n]."""
    hashes = np.empty(len(starts) - 1, np.uint64)
    for i in range(len(hashes)):
        hashes[i] = hash_bytes(data, uint64(starts[i]), uint64(starts[i + 1]))
    return hashes


@njit(**ARRAY_KERNEL)
def enter(tokens: Tokens, hashes: Hashes, firsts: Integers, lengths: Integers) -> None:
    """Enter chunks with their first tokens and numbers of tokens."""
    for i in range(len(hashes)):
        slot = slot_of(tokens.keys, tokens.firsts, hashes[i])
        if tokens.firsts[slot] != FREE:
            continue
        tokens.keys[slot] = hashes[i]
        tokens.firsts[slot] = firsts[i]
        tokens.lengths[slot] = lengths[i]
