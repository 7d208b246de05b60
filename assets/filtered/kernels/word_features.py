"""Hashed word n-grams of texts, a linear score over them, and the training of its weights.

The *features* of a text are the distinct buckets of the hashes of its runs of 1 to `ngram_words`
words, each with the value 1 / sqrt(number of features), so that long and short texts weigh the
same. One pass reads Arrow's text buffers with the interpreter lock released.
Trade-off: occurrence counts, not frequency. One bit per bucket finds repeats in 32 kB of
first-level cache, and a page that repeats its menu gains nothing by it.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import math

import numpy as np
from numba import njit, types, uint32, uint64
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_INLINED, ARRAY_KERNEL
from assets.text.kernels.words import LOWER, entry_and_width

MAX_STEPS, TOLERANCE = 100, 1e-12  # of one document's update, which takes 8 steps on average

Bytes = NDArray[np.uint8]
Entries = NDArray[np.uint32]
Offsets = NDArray[np.int64]
Hashes = NDArray[np.uint64]
Buckets = NDArray[np.uint32]
Doubles = NDArray[np.float64]

# Read-only, as Arrow's memory is; numba then accepts writable arrays as well.
_bytes = types.Array(types.uint8, 1, "C", readonly=True)
_entries = types.Array(types.uint32, 1, "C", readonly=True)
_offsets = types.Array(types.int64, 1, "C", readonly=True)
_floats = types.Array(types.float32, 1, "C", readonly=True)
_hashes, _buckets = types.uint64[::1], types.uint32[::1]
_integers, _doubles = types.int64[::1], types.float64[::1]
_shape = types.UniTuple(types.int64, 3)

_ONE, _TWO, _THREE = uint64(1), uint64(2), uint64(3)  # uint64 + 1 would be a float64
_LAST_SIX = uint64(63)
# Odd constants without pattern: the fractions of the golden ratio, and of sqrt(3) and sqrt(5).
_GOLDEN = uint64(0x9E3779B97F4A7C15)
_STEP = uint64(0xBB67AE8584CAA73B)
_CHAIN = uint64(0x3C6EF372FE94F82B)


@njit(types.uint64(_bytes, types.int64, types.int64, types.int64), **ARRAY_INLINED)
def _cut(data: Bytes, start: int, stop: int, max_bytes: int) -> int:
    """Return the end of a text's first `max_bytes` bytes, rounded down to whole characters."""
    if stop - start <= max_bytes:
        return uint64(stop)
    stop = start + max_bytes
    while stop > start and data[stop] & 0xC0 == 0x80:
        stop -= 1
    return uint64(stop)


@njit(
    types.uint64(_bytes, types.uint64, types.uint64, _entries, _hashes, types.uint64),
    **ARRAY_KERNEL,
)
def hash_words(
    data: Bytes, at: int, stop: int, entries: Entries, hashes: Hashes, pairs: int
) -> int:
    """Write the hash of each lower-cased word of data[at:stop]; return their number.

    With `pairs` = 1 also that of each two neighbours in scripts written without spaces, whose
    characters are words. At most one hash a byte. ASCII takes no branches: a word ends every six
    bytes, and a mispredicted branch costs ten.
    """
    count, key, before = uint64(0), _GOLDEN, uint64(0)
    single = uint64(0)  # hash of the character before, if it is a word
    while at < stop:
        byte = data[at]
        if byte < 0x80:
            entry = entries[byte]
            is_word = uint64(entry >> uint32(25))
            hashes[count] = key
            count += before & (is_word ^ _ONE)
            grown = (key ^ uint64(entry & uint32(LOWER))) * _STEP
            key = grown if is_word else _GOLDEN
            before = is_word
            single = uint64(0)
            at += _ONE
            continue
        wide, width = entry_and_width(data, at, entries)
        is_word, is_single = wide >> uint64(25) & _ONE, wide >> uint64(26)
        ends_word = is_single | (is_word ^ _ONE)
        hashes[count] = key
        count += before & ends_word
        grown = ((_GOLDEN if is_single else key) ^ (wide & uint64(LOWER))) * _STEP
        hashes[count] = grown if is_single else key
        count += is_single
        hashes[count] = (single ^ single >> uint64(29)) * _CHAIN + grown
        count += pairs & is_single & uint64(single != 0)
        single = grown if is_single else uint64(0)
        key = _GOLDEN if ends_word else grown
        before = ends_word ^ _ONE
        at += width
    hashes[count] = key
    return count + before


@njit(types.uint64(_hashes, types.uint64, _shape, _hashes, _buckets), **ARRAY_KERNEL)
def _distinct_buckets(
    hashes: Hashes, count: int, shape: tuple[int, int, int], seen: Hashes, buckets: Buckets
) -> int:
    """Write the distinct buckets of a text's n-grams, mark them in `seen`; return their number."""
    ngram_words, shift = uint64(shape[0]), uint64(64 - shape[1])
    size = uint64(0)
    for i in range(count):
        first = uint64(i)
        chain = hashes[first]
        stop = min(first + ngram_words, count)
        following = first + _ONE
        while True:
            # The highest bits: those that a multiplication mixes best.
            bucket = ((chain ^ chain >> uint64(32)) * _GOLDEN) >> shift
            bits = seen[bucket >> uint64(6)]
            # Written in any case, and kept only if its bit was not set.
            buckets[size] = bucket
            size += (bits >> (bucket & _LAST_SIX) & _ONE) ^ _ONE
            seen[bucket >> uint64(6)] = bits | _ONE << (bucket & _LAST_SIX)
            if following >= stop:
                break
            chain = (chain ^ chain >> uint64(29)) * _CHAIN + hashes[following]
            following += _ONE
    return size


@njit(types.UniTuple(types.int64, 2)(_offsets, types.int64), **ARRAY_KERNEL)
def _bytes_read(offsets: Offsets, max_bytes: int) -> tuple[int, int]:
    """Return the bytes read of the longest text, and of all; both exceed the number of words."""
    longest, total = 0, 0
    for i in range(len(offsets) - 1):
        num_bytes = min(offsets[i + 1] - offsets[i], max_bytes) + 1
        longest = max(longest, num_bytes)
        total += num_bytes
    return longest, total


@njit(types.float64(types.float64), **ARRAY_INLINED)
def _sigmoid(margin: float) -> float:
    return 1.0 / (1.0 + math.exp(-margin)) if margin > -700.0 else 0.0


@njit(_doubles(_bytes, _offsets, _entries, _shape, _floats, types.float64), **ARRAY_KERNEL)
def score_texts(
    data: Bytes,
    offsets: Offsets,
    entries: Entries,
    shape: tuple[int, int, int],
    weights: NDArray[np.float32],
    bias: float,
) -> Doubles:
    """Return the probabilities of n texts, float64 [n]; NaN for a text without words.

    data: UTF-8 bytes; offsets: int64 [n + 1]; entries: uint32 [code points], see `words`; shape:
    words of an n-gram, bits of a bucket's number, bytes read of a text; weights: float32
    [2 ** bits].
    """
    longest, _ = _bytes_read(offsets, shape[2])
    hashes = np.empty(longest + 1, np.uint64)
    seen = np.zeros(len(weights) // 64, np.uint64)
    buckets = np.empty(min(longest * shape[0], len(weights)) + 1, np.uint32)
    scores = np.empty(len(offsets) - 1, np.float64)
    for i in range(len(scores)):
        start = offsets[i]
        stop = _cut(data, start, offsets[i + 1], shape[2])
        count = hash_words(data, uint64(start), stop, entries, hashes, uint64(0))
        size = _distinct_buckets(hashes, count, shape, seen, buckets)
        total = 0.0
        for k in range(size):
            bucket = buckets[uint64(k)]
            total += weights[bucket]
            # Only what was set is cleared: all of `seen` would cost more than a short text.
            seen[bucket >> uint32(6)] = uint64(0)
        scores[i] = _sigmoid(bias + total / math.sqrt(size)) if size else math.nan
    return scores


@njit(
    types.Tuple((_buckets, _integers, _hashes))(_bytes, _offsets, _entries, _shape), **ARRAY_KERNEL
)
def find_features(
    data: Bytes, offsets: Offsets, entries: Entries, shape: tuple[int, int, int]
) -> tuple[Buckets, Offsets, Hashes]:
    """Find the features of n texts for training; the arguments are those of `score_texts`.

    Returns buckets, uint32; feature offsets, int64 [n + 1]: text i has buckets[offsets[i]] up to
    buckets[offsets[i + 1]]; and a hash of each text's words in order, uint64 [n], 0 without words.
    """
    longest, total = _bytes_read(offsets, shape[2])
    hashes = np.empty(longest + 1, np.uint64)
    seen = np.zeros((1 << shape[1]) // 64, np.uint64)
    buckets = np.empty(total * shape[0] + 1, np.uint32)
    feature_offsets = np.zeros(len(offsets), np.int64)
    keys = np.zeros(len(offsets) - 1, np.uint64)
    for i in range(len(keys)):
        start = offsets[i]
        stop = _cut(data, start, offsets[i + 1], shape[2])
        count = hash_words(data, uint64(start), stop, entries, hashes, uint64(0))
        own = buckets[feature_offsets[i] :]
        size = _distinct_buckets(hashes, count, shape, seen, own)
        for k in range(size):
            seen[own[uint64(k)] >> uint32(6)] = uint64(0)
        key = uint64(0)
        for k in range(count):
            key = ((key ^ key >> uint64(29)) + hashes[uint64(k)]) * _GOLDEN
        keys[i] = key
        feature_offsets[i + 1] = feature_offsets[i] + np.int64(size)
    return buckets[: feature_offsets[-1]].copy(), feature_offsets, keys


@njit(types.float64(types.float64, types.float64, types.float64, types.float64), **ARRAY_KERNEL)
def _solve(slope: float, cap: float, alpha: float, agreement: float) -> float:
    """Return the optimal dual variable of one document while all others stay.

    With alpha = cap * sigmoid(u), the optimum is the root of the increasing function
    u + slope * cap * sigmoid(u) - (slope * alpha - agreement). Each step is Newton's, or halves the
    bracket if Newton's would leave it or gain less.
    """
    target = slope * alpha - agreement
    low, high = target - slope * cap, target
    u = 0.5 * (low + high)
    step = before = high - low
    for _ in range(MAX_STEPS):
        share = _sigmoid(u)
        value = u + slope * cap * share - target
        rise = 1.0 + slope * cap * share * (1.0 - share)
        low, high = (low, u) if value > 0.0 else (u, high)
        before, step = step, value / rise
        if not low < u - step < high or abs(2.0 * step) > abs(before):
            step = u - 0.5 * (low + high)
        u -= step
        if abs(step) < TOLERANCE:
            break
    return cap * _sigmoid(u)


@njit(
    types.void(
        _buckets, types.int64[::1], _doubles, _doubles, types.int64[::1], _doubles, _doubles
    ),
    **ARRAY_KERNEL,
)
def fit_epoch(  # noqa: PLR0913 (the state in arrays: numba has no dataclasses)
    buckets: Buckets,
    offsets: Offsets,
    signs: Doubles,
    caps: Doubles,
    order: Offsets,
    alphas: Doubles,
    weights: Doubles,
) -> None:
    """Run one epoch of dual coordinate descent for logistic regression, in the given order.

    Minimises |w|^2 / 2 + sum of caps * log(1 + exp(-signs * w.x)); the last weight is the bias, of
    a feature that is 1 everywhere. `alphas`, float64 [documents], and `weights`, float64
    [buckets + 1], are updated in place. Document i has buckets[offsets[i]:offsets[i + 1]].
    Source: Yu, Huang and Lin 2011, "Dual coordinate descent methods for logistic regression and
    maximum entropy models".
    """
    bias = len(weights) - 1
    for document in order:
        start, stop = offsets[document], offsets[document + 1]
        total = 0.0
        for k in range(start, stop):
            total += weights[buckets[k]]
        scale = 1.0 / math.sqrt(stop - start)
        agreement = signs[document] * (weights[bias] + scale * total)
        alpha = _solve(2.0, caps[document], alphas[document], agreement)
        change = signs[document] * (alpha - alphas[document])
        alphas[document] = alpha
        weights[bias] += change
        for k in range(start, stop):
            weights[buckets[k]] += change * scale
