"""Signs of damage that are counted character by character, in one pass.

`cleanliness.BY_CHARACTER` defines them as regular expressions, with which the tests compare. Seven
passes of those took a third of the clustering.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import int64, njit, types, uint64
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_KERNEL, INLINED
from assets.text.kernels.many_bytes import RUN, first_one, mark_bytes
from assets.text.kernels.utf8 import decode

# Bits of a character's classes, in the order of `cleanliness.CLASSES`.
LOWER, UPPER, WORD, SPACE, CONTROL, CONTINUATION = range(6)
ANYWHERE = ("mojibake", "controls")  # signs that plain ASCII has none of
SIGNS = (*ANYWHERE, "upper", "lower", "titled", "words_lower", "words")
REPLACEMENT = 0xFFFD

Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int64]
_bytes = types.Array(types.uint8, 1, "C", readonly=True)
_offsets = types.Array(types.int64, 1, "C", readonly=True)


@njit(**INLINED)
def _plain_run(data: Bytes, at: int, stop: int) -> int:
    """Return how many of the next 64 bytes are ASCII and no controls; 0 near the end of `data`."""
    if at + RUN > uint64(len(data)):
        return uint64(0)
    plain = mark_bytes(data, at, uint64(0x20), uint64(0x5F))
    plain |= mark_bytes(data, at, uint64(0x09), uint64(2))
    plain |= mark_bytes(data, at, uint64(0x0D), uint64(1))
    return min(stop - at, first_one(~plain))


@njit(types.int64[:, ::1](_bytes, _offsets, _bytes, types.boolean), **ARRAY_KERNEL)
def count_signs(data: Bytes, offsets: Offsets, classes: Bytes, in_form: bool) -> Offsets:
    """Count the `SIGNS` of n texts, int64 [n, 7]; without `in_form` those `ANYWHERE` alone.

    `classes` is indexed by code point; those beyond it are of none. Mojibake is a leading character
    of U+00C2 to U+00F4 with its one to three continuations, or a replacement character.
    """
    signs = np.zeros((len(offsets) - 1, 7), np.int64)
    for i in range(len(signs)):
        at, stop = uint64(offsets[i]), uint64(offsets[i + 1])
        mojibake, controls, upper, lower, titled, words_lower, words = 0, 0, 0, 0, 0, 0, 0
        # Continuations that a leading character still needs; classes of the last two characters.
        missing, replaced, before, earlier = 0, 0, int64(0), int64(0)
        while at < stop:
            # Plain ASCII has no sign that is looked for, unless a sequence is open.
            if not (in_form or missing or replaced):
                at += _plain_run(data, at, stop)
                if at == stop:
                    break
            point, width = decode(data, at)
            at += width
            found = int64(classes[point]) if point < uint64(len(classes)) else int64(0)
            is_lower, is_upper_before = found >> LOWER & 1, before >> UPPER & 1
            lower += is_lower
            upper += found >> UPPER & 1
            controls += found >> CONTROL & 1
            # A word begins where white space ends.
            words += before >> SPACE & 1 & ~(found >> SPACE)
            words_lower += is_lower & ~(before >> WORD)
            # A capital that no character of a word precedes, with a small letter after it.
            titled += is_lower & is_upper_before & ~(earlier >> WORD)
            earlier, before = before, found
            if point < 0x80:
                mojibake += replaced
                missing, replaced = 0, 0
                continue
            # A sequence counts once, with its last continuation.
            if missing and found >> CONTINUATION & 1:
                missing -= 1
                replaced += point == uint64(REPLACEMENT)
                if missing == 0:
                    mojibake += 1
                    replaced = 0
                continue
            # It broke off: a replacement character in it counts by itself.
            mojibake += replaced + (point == uint64(REPLACEMENT))
            missing, replaced = 0, 0
            if uint64(0xC2) <= point <= uint64(0xF4):
                missing = 1 + (point >= uint64(0xE0)) + (point >= uint64(0xF0))
        mojibake += replaced
        row = signs[i]
        row[0], row[1], row[2], row[3] = mojibake, controls, upper, lower
        row[4], row[5], row[6] = titled, words_lower, words
    return signs
