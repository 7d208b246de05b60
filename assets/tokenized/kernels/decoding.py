"""Compare the bytes of token ids with their original text, eight bytes at a time.

Purpose: check byte-level BPE, whose tokens are bytes, without decoding text. Most tokens have at
most eight bytes: each of them is compared as one number, without a look-up in a table of strings.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import Any

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_INLINED, ARRAY_KERNEL
from assets.text.kernels.many_bytes import EIGHT, read_8, read_some

Bytes = NDArray[np.uint8]
Edges = NDArray[np.int64]
ALL_BITS = uint64(64)


@njit(**ARRAY_INLINED)
def _is_equal(one: Bytes, start: int, other: Bytes, at: int, size: int) -> bool:
    """Compare `size` bytes of `one` from `start` on with those of `other` from `at` on."""
    for done in range(0, size, 8):
        rest = uint64(min(size - done, 8))
        first, second = uint64(start + done), uint64(at + done)
        if read_some(one, first, rest) != read_some(other, second, rest):
            return False
    return True


@njit(**ARRAY_KERNEL)
def are_decoded(
    ids: NDArray[np.unsignedinteger[Any]],
    runs: tuple[Edges, Edges],
    spelled: tuple[Bytes, Edges, NDArray[np.uint64]],
    texts: tuple[Bytes, Edges],
) -> NDArray[np.bool_]:
    """Check for each text that the bytes of its runs of ids, one after another, are its, bool [n].

    `runs` are the first place of each run in the ids and the place behind it, int64 [n, runs of a
    text]. `texts` are the concatenated bytes and their int64 edges [n + 1]. `spelled` are the same
    for the bytes of every id, and a number per id, uint64: its first 8 bytes or fewer as a
    little-endian number, shifted left to the highest bit. The number of an id of more than 8 bytes
    is not used.
    """
    spellings, spelling_edges, words = spelled
    data, text_edges = texts
    firsts, ends = runs
    are_equal = np.empty(len(firsts), np.bool_)
    for row in range(len(firsts)):
        at, stop = text_edges[row], text_edges[row + 1]
        is_equal = True
        for run in range(firsts.shape[1]):
            for place in range(firsts[row, run], ends[row, run]):
                token = ids[place]
                start = spelling_edges[token]
                size = spelling_edges[token + 1] - start
                # May read bytes of the next text: `at == stop` refuses what crosses the end.
                if 0 < size <= 8 and at + 8 <= len(data):
                    shift = ALL_BITS - EIGHT * uint64(size)
                    is_equal = read_8(data, uint64(at)) << shift == words[token]
                else:
                    is_equal = at + size <= stop and _is_equal(spellings, start, data, at, size)
                if not is_equal:
                    break
                at += size
            if not is_equal:
                break
        are_equal[row] = is_equal and at == stop
    return are_equal
