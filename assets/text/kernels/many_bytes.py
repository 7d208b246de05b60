"""Read four or eight bytes of an Arrow buffer at once.

The functions are inlined into their callers, across files as well.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import Any

import numpy as np
from numba import njit, types, uint64
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

ONE, EIGHT = uint64(1), uint64(8)
ONES, HIGH_BITS = uint64(0x0101010101010101), uint64(0x8080808080808080)

_inlined = {"cache": True, "nogil": True, "forceinline": True}


def _load(word: Any, position: Any) -> Any:
    """Make a reader of a little-endian number, since numba has no unaligned read."""

    def read(typing_context: Any, data: Any, at: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, arguments[0])
            address = cgutils.pointer_add(builder, array.data, arguments[1])
            pointer = builder.bitcast(address, context.get_value_type(word).as_pointer())
            return builder.load(pointer, align=1)

        return word(data, position), generate

    return read


read_4 = intrinsic(_load(types.uint32, types.int64))
read_8 = intrinsic(_load(types.uint64, types.uint64))


@njit(**_inlined)
def read_some(data: Bytes, at: int, size: int) -> int:
    """Return the next `size` bytes, 1 to 8, as one uint64; the unused high bytes are 0."""
    if at + EIGHT <= uint64(len(data)):
        return read_8(data, at) & (~uint64(0) >> (uint64(64) - EIGHT * size))
    word = uint64(0)
    for i in range(size):
        word |= uint64(data[at + uint64(i)]) << (EIGHT * uint64(i))
    return word


@njit(**_inlined)
def find_bytes(word: int, wanted: int) -> int:
    """Mark the bytes of a word, uint64, that are equal to the byte that `wanted` repeats 8 times.

    The lowest bit set is the highest bit of the first equal byte; higher bits may be wrong. Returns
    0 if no byte is equal.
    """
    differences = word ^ wanted
    return (differences - ONES) & ~differences & HIGH_BITS


@njit(**_inlined)
def find_byte(data: Bytes, span: tuple[int, int], byte: int) -> int:
    """Return the position of the first `byte` in data[span], or the span's end; all uint64."""
    at, stop = span
    wanted = uint64(byte) * ONES
    while at + EIGHT <= stop:
        equal = find_bytes(read_8(data, at), wanted)
        if equal:
            below = (equal & (~equal + ONE)) - ONE
            return at + ((below & ONES) * ONES >> uint64(56)) - ONE
        at += EIGHT
    while at < stop and data[at] != byte:
        at += ONE
    return at
