"""MinHash signatures of joined words, bit for bit those of datasketch's scheme `affine32` on XXH32.

Purpose: hash every shingle and fold it into the minima of a signature, without the interpreter
lock.
Trade-off: numba compiles the kernels once per machine and keeps them in the user's cache.
Trap: numba silently widens `uint32 * uint32` to 64 bits, so every step of 32-bit arithmetic goes
through `uint32(...)`.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import njit, types, uint32, uint64
from numpy.typing import NDArray

from assets.deduped.kernels.shingles import BLOCK, first_span, next_spans
from assets.text.kernels.compiling import ARRAY_INLINED, ARRAY_KERNEL
from assets.text.kernels.many_bytes import read_4

_VECTOR = 32  # hashes per iteration of the vectorised loop of `_lower_signature`

Words = NDArray[np.uint32]
Offsets = NDArray[np.int64]
_bytes = types.Array(types.uint8, 1, "C", readonly=True)
_offsets = types.Array(types.int64, 1, "C", readonly=True)
_matrix = types.Array(types.uint32, 2, "C", readonly=True)
_keys = types.Array(types.uint64, 1, "C", readonly=True)
_shingle = types.Tuple((types.int64, types.boolean))

_PRIME_1, _PRIME_2, _PRIME_3 = uint32(0x9E3779B1), uint32(0x85EBCA77), uint32(0xC2B2AE3D)
_PRIME_4, _PRIME_5 = uint32(0x27D4EB2F), uint32(0x165667B1)
_FMIX32 = (uint32(0x85EBCA6B), uint32(0xC2B2AE35))
_LANES = (0x24234428, 0x85EBCA77, 0, 0x61C8864F)  # prime_1 + prime_2, prime_2, 0, -prime_1


@njit("uint32(uint32, uint32)", **ARRAY_INLINED)
def _rotate(value: int, turn: int) -> int:
    """Rotate 32 bits to the left."""
    return uint32(uint32(value << turn) | uint32(value >> uint32(uint32(32) - turn)))


@njit("uint32(uint32, uint32)", **ARRAY_INLINED)
def _lane(lane: int, value: int) -> int:
    """Absorb four bytes into a lane of XXH32."""
    return uint32(_rotate(uint32(lane + uint32(value * _PRIME_2)), uint32(13)) * _PRIME_1)


@njit(types.uint32(_bytes, types.int64, types.int64), **ARRAY_INLINED)
def _stripes(data: NDArray[np.uint8], start: int, stop: int) -> int:
    """Absorb the whole stripes of 16 bytes of data[start:stop] and merge the lanes of XXH32."""
    one, two = uint32(_LANES[0]), uint32(_LANES[1])
    three, four = uint32(_LANES[2]), uint32(_LANES[3])
    for at in range(start, stop - 15, 16):
        one = _lane(one, read_4(data, at))
        two = _lane(two, read_4(data, at + 4))
        three = _lane(three, read_4(data, at + 8))
        four = _lane(four, read_4(data, at + 12))
    low = _rotate(one, uint32(1)) + _rotate(two, uint32(7))
    return uint32(low + _rotate(three, uint32(12)) + _rotate(four, uint32(18)))


@njit("uint32(uint32, uint32, uint32)", **ARRAY_INLINED)
def _absorb_word(hashed: int, word: int, is_there: int) -> int:
    """Absorb four bytes after the stripes if they belong to the span."""
    mixed = uint32(hashed + uint32(word * _PRIME_3))
    return uint32(_rotate(mixed, uint32(17)) * _PRIME_4) if is_there else hashed


@njit("uint32(uint32, uint32, uint32)", **ARRAY_INLINED)
def _absorb_byte(hashed: int, byte: int, is_there: int) -> int:
    """Absorb a byte after the last four if it belongs to the span."""
    mixed = uint32(hashed + uint32(uint32(byte & uint32(0xFF)) * _PRIME_5))
    return uint32(_rotate(mixed, uint32(11)) * _PRIME_1) if is_there else hashed


@njit("uint32(uint32, uint32, uint32, uint32)", **ARRAY_INLINED)
def _finish(value: int, shift: int, factor: int, last_factor: int) -> int:
    """Mix all bits of a value into all bits, the last step of both XXH32 and MurmurHash3."""
    value = uint32(uint32(value ^ (value >> shift)) * factor)
    value = uint32(uint32(value ^ (value >> uint32(13))) * last_factor)
    return uint32(value ^ (value >> uint32(16)))


@njit("uint64(uint64)", **ARRAY_INLINED)
def _fmix64(value: int) -> int:
    """Apply the 64-bit finalizer of MurmurHash3."""
    value = uint64(value ^ (value >> uint64(33))) * uint64(0xFF51AFD7ED558CCD)
    value = uint64(value ^ (value >> uint64(33))) * uint64(0xC4CEB9FE1A85EC53)
    return uint64(value ^ (value >> uint64(33)))


@njit(types.void(_bytes, types.int64[:, ::1], types.int64, types.uint32[:, ::1]), **ARRAY_KERNEL)
def hash_spans(joined: NDArray[np.uint8], spans: Offsets, count: int, hashes: Words) -> None:
    """Hash the first `count` spans, int64 [2, BLOCK], by XXH32 and MurmurHash3's finalizer.

    The seed is 0. Writes hashes[0, :count] of uint32 [6, BLOCK]; the other rows are scratch. 16
    bytes must be readable after each span. Source: datasketch 2.0 and
    https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md. The rest after the stripes of 16
    bytes is read in one loop and absorbed in another, which the compiler vectorises: always three
    words and three bytes, of which the absent ones change nothing.
    """
    for i in range(count):
        start, size = spans[0, i], spans[1, i] - spans[0, i]
        hashed = _stripes(joined, start, start + size)
        # A span without a stripe starts from another constant.
        hashed = hashed if size >= 16 else _PRIME_5
        hashes[0, i], hashes[5, i] = uint32(hashed + uint32(size)), size
        words = start + (size >> 4 << 4)
        # Read whether they belong to the span or not: absent ones change nothing below.
        hashes[1, i], hashes[2, i] = read_4(joined, words), read_4(joined, words + 4)
        hashes[3, i] = read_4(joined, words + 8)
        # The last 0 to 3 bytes begin behind the span's last whole word.
        hashes[4, i] = read_4(joined, start + (size >> 2 << 2))
    for i in range(count):
        hashed, tail, size = hashes[0, i], hashes[4, i], hashes[5, i]
        # Counts instead of branches: all lanes do the same six steps.
        words_left, bytes_left = uint32(size >> uint32(2)) & uint32(3), size & uint32(3)
        for k in range(3):
            hashed = _absorb_word(hashed, hashes[1 + k, i], uint32(k) < words_left)
        for k in range(3):
            hashed = _absorb_byte(hashed, uint32(tail >> uint32(8 * k)), uint32(k) < bytes_left)
        hashed = _finish(hashed, uint32(15), _PRIME_2, _PRIME_3)
        hashes[0, i] = _finish(hashed, uint32(16), *_FMIX32)


@njit(types.void(types.uint32[::1], types.uint32[::1], _matrix), **ARRAY_KERNEL)
def _lower_signature(signature: Words, hashes: Words, permutations: Words) -> None:
    """Lower the values of a signature, in place, to the minima of the permuted hashes."""
    # Hashes are the inner loop: a block of them stays in the cache, the minimum in a register.
    for k in range(len(signature)):
        factor, increment, lowest = permutations[0, k], permutations[1, k], signature[k]
        for i in range(len(hashes)):
            # Modulo 2**32 by overflow: with an odd factor no two hashes become equal.
            lowest = min(lowest, uint32(uint32(factor * hashes[i]) + increment))
        signature[k] = lowest


@njit(types.uint32[:, ::1](_bytes, _offsets, _offsets, _matrix, _shingle), **ARRAY_KERNEL)
def sketch(
    joined: NDArray[np.uint8],
    starts: Offsets,
    word_offsets: Offsets,
    permutations: Words,
    shingle: tuple[int, bool],
) -> Words:
    """Return signatures, uint32 [n, values], of the words that `join_words` returns.

    `permutations`, uint32 [2, values], are odd factors and increments. `shingle` is its number of
    words, or of characters if True comes second. All values of a text without words are 2**32 - 1,
    as in an empty sketch of datasketch.
    """
    num_texts = len(word_offsets) - 1
    signatures = np.full((num_texts, permutations.shape[1]), 0xFFFFFFFF, np.uint32)
    spans, hashes = np.empty((2, BLOCK), np.int64), np.empty((6, BLOCK), np.uint32)
    for i in range(num_texts):
        if word_offsets[i] == word_offsets[i + 1]:
            continue
        text = joined, starts[word_offsets[i] : word_offsets[i + 1] + 1]
        count, state = next_spans(text, shingle, first_span(text, shingle), spans)
        while count:
            hash_spans(joined, spans, count, hashes)
            size = (count + _VECTOR - 1) // _VECTOR * _VECTOR
            # Filled up with the last hash, which changes no minimum, to whole vectors.
            hashes[0, count:size] = hashes[0, count - 1]
            _lower_signature(signatures[i], hashes[0, :size], permutations)
            count, state = next_spans(text, shingle, state, spans)
    return signatures


@njit(types.uint64[:, ::1](_matrix, types.int64, types.int64, _keys), **ARRAY_KERNEL)
def hash_bands(
    signatures: Words, bands: int, first: int, groups: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    """Return a key per text and band, uint64 [n, bands], of signatures uint32 [n, bands * rows].

    A key starts as the band's number, counted from `first`, xor the finalized group of the text,
    uint64 [n]. Each value of the band is then xor-ed in and the result finalized. The finalizer is
    that of MurmurHash3 for 64 bits.
    """
    num_texts, rows = len(signatures), signatures.shape[1] // bands
    hashes = np.empty((num_texts, bands), np.uint64)
    for i in range(num_texts):
        group = _fmix64(groups[i])
        for band in range(bands):
            hashed = uint64(first + band) ^ group
            for k in range(band * rows, (band + 1) * rows):
                # Finalized each time: the same values in another order give another key.
                hashed = _fmix64(hashed ^ uint64(signatures[i, k]))
            hashes[i, band] = hashed
    return hashes
