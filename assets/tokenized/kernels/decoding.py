"""Compare the bytes of token ids with the text they were made of, eight bytes at a time.

For byte-level BPE, whose tokens are bytes, so that nothing has to be decoded. Most tokens have at
most eight bytes: those are compared as one number each, without a look-up in a table of strings.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import Any

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from assets.text.kernels.many_bytes import EIGHT, read_8, read_some

Bytes = NDArray[np.uint8]
Edges = NDArray[np.int64]
ALL_BITS = uint64(64)

_inlined = {"cache": True, "nogil": True, "forceinline": True}


@njit(**_inlined)
def _is_equal(one: Bytes, start: int, other: Bytes, at: int, size: int) -> bool:
    for done in range(0, size, 8):
        rest = uint64(min(size - done, 8))
        first, second = uint64(start + done), uint64(at + done)
        if read_some(one, first, rest) != read_some(other, second, rest):
            return False
    return True


@njit(cache=True, nogil=True)
def are_decoded(
    ids: NDArray[np.unsignedinteger[Any]],
    firsts: Edges,
    ends: Edges,
    spelled: tuple[Bytes, Edges, NDArray[np.uint64]],
    texts: tuple[Bytes, Edges],
) -> NDArray[np.bool_]:
    """Check for each text i that ids[firsts[i]:ends[i]] spell it, bool [n].

    `texts` are bytes end to end and their edges [n + 1]; `spelled` the same of every id, and its
    bytes as a number, the first byte lowest, shifted up to the highest bit; used up to 8 bytes.
    """
    spellings, spelling_edges, words = spelled
    data, text_edges = texts
    are_equal = np.empty(len(firsts), np.bool_)
    for row in range(len(firsts)):
        at, stop = text_edges[row], text_edges[row + 1]
        is_equal = True
        for place in range(firsts[row], ends[row]):
            token = ids[place]
            start = spelling_edges[token]
            size = spelling_edges[token + 1] - start
            if 0 < size <= 8 and at + 8 <= len(data):
                shift = ALL_BITS - EIGHT * uint64(size)
                is_equal = read_8(data, uint64(at)) << shift == words[token]
            else:
                is_equal = at + size <= stop and _is_equal(spellings, start, data, at, size)
            if not is_equal:
                break
            at += size
        are_equal[row] = is_equal and at == stop
    return are_equal
