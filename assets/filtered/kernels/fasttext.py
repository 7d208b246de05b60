"""Predict labels with a fastText model, reading Arrow's text buffers.

Purpose: fastText's own answers for a block of texts at once, with the interpreter lock released.
Method: n-grams of all lengths are hashed side by side, and kept or dropped without a branch. The
table of buckets has 375 kB, which fit a second-level cache. The n-gram lengths and the number of
buckets are therefore constants.
Trade-off: a known word is one vector, the sum of its own row and the rows of its n-grams, added up
once when the model is loaded. The other order of addition changes a probability by 1e-6.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
from numba import njit, types, uint32, uint64
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_KERNEL, INLINED, KERNEL
from assets.text.kernels.many_bytes import count_ones

NGRAM_CHARS = (2, 4)  # `minn` and `maxn`
NUM_BUCKETS = 2_000_000
DIM = 16

Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int64]
Integers = NDArray[np.int32]
Floats = NDArray[np.float32]
Path = tuple[Offsets, NDArray[np.float64]]  # nodes to visit, and their scores


class Lookup(NamedTuple):
    """Arrays of a model; rows [0, words) are the sums of the rows of each word.

    letters: uint8, the words one after another, word i from letters[starts[i]]; starts: int64
    [words + 1]. slots: int32 [power of two], words by hash with linear probing, -1 if free. hashes:
    uint32 [words]. sizes: int32 [words], the number of rows in each sum. kept: uint64
    [NUM_BUCKETS / 64], a bit for each bucket the model has a row for. ranks: int32 of the same
    shape, row of the first bucket kept in these 64 or later. rows: float32 [words + kept buckets,
    dim], in order of the buckets. children: int32 [2 * labels - 1, 2], the Huffman tree: leaves,
    nodes, root. output: float32 [labels, dim], row i for node labels + i. end: number of the word
    `</s>` that ends a line.
    """

    letters: Bytes
    starts: Offsets
    slots: Integers
    hashes: NDArray[np.uint32]
    sizes: Integers
    kept: NDArray[np.uint64]
    ranks: Integers
    rows: Floats
    children: Integers
    output: Floats
    end: int


# Read-only, as Arrow's memory is; numba then accepts writable arrays as well.
_bytes = types.Array(types.uint8, 1, "C", readonly=True)
_offsets = types.Array(types.int64, 1, "C", readonly=True)
_integers, _hashes, _floats = types.int32[::1], types.uint32[::1], types.float32[:, ::1]
_words = (types.uint8[::1], types.int64[::1], _integers, _hashes, _integers)
_buckets = (types.uint64[::1], _integers, _floats)
_tree = (types.int32[:, ::1], _floats)
_lookup = types.NamedTuple((*_words, *_buckets, *_tree, types.int64), Lookup)
_scratch = types.uint8[::1]
_path = types.Tuple((types.int64[::1], types.float64[::1]))
_span = types.UniTuple(types.int64, 2)
_makes_arrays = {**ARRAY_KERNEL, "error_model": "numpy"}
_options = {**KERNEL, "error_model": "numpy"}
_inlined = {**INLINED, "error_model": "numpy"}

_BASIS, _PRIME = uint32(2166136261), uint32(16777619)
_ONE, _SIX, _LOW_SIX = uint64(1), uint64(6), uint64(63)
_OPEN, _CLOSE = ord("<"), ord(">")
_LABEL_PREFIX = np.frombuffer(b"__label__", np.uint8)
_REACH = 24  # bytes in which to look for whitespace before a word is cut
_UNSURE = 0.5  # below this probability more of the text is read


@njit(types.uint32(types.uint32, types.uint8), **_inlined)
def _hash_byte(hashed: int, byte: int) -> int:
    """Add a byte, taken as signed, to a hash of FNV-1a (`Dictionary::hash`)."""
    return uint32(uint32(hashed ^ uint32(np.int32(np.int8(byte)))) * _PRIME)


@njit(types.boolean(types.uint8), **_inlined)
def _is_space(byte: int) -> bool:
    """Check for the bytes that end a word (`Dictionary::readWord`): blank, \\t to \\r, \\0."""
    return byte == 32 or (9 <= byte <= 13) or byte == 0


@njit(types.uint64(types.uint32, types.boolean, _lookup, _integers, types.uint64), **_inlined)
def _append_ngram(hashed: int, is_whole: bool, lookup: Lookup, rows: Integers, count: int) -> int:
    """Write the bucket of an n-gram; return the new count, the same if the model has no row for it.

    One in fifteen has a row: `_find_rows` looks up which, once the word is done.
    """
    bucket = uint64(hashed % uint32(NUM_BUCKETS))
    # Written in any case, and kept only if the count moves on.
    rows[count] = bucket
    is_kept = lookup.kept[bucket >> _SIX] >> (bucket & _LOW_SIX)
    return count + (is_kept & _ONE & uint64(is_whole))


@njit(types.void(_lookup, _integers, types.uint64, types.uint64), **_inlined)
def _find_rows(lookup: Lookup, rows: Integers, first: int, count: int) -> None:
    """Replace the buckets rows[first:count] by their rows (`Dictionary::pushHash`)."""
    for i in range(first, count):
        bucket = uint64(rows[i])
        # Its row: the kept buckets before its 64, and those below it among them.
        bits = lookup.kept[bucket >> _SIX] & ((_ONE << (bucket & _LOW_SIX)) - _ONE)
        rows[i] = uint64(lookup.ranks[bucket >> _SIX]) + count_ones(bits)


@njit(types.int64(_scratch, types.int64, _lookup, _integers, types.int64), **_options)
def _append_ngrams(word: Bytes, size: int, lookup: Lookup, rows: Integers, count: int) -> int:
    """Append the rows of a word's n-grams; return the new count (`Dictionary::computeSubwords`).

    word[:size] is the word in its angle brackets; word[size] must begin a character.
    """
    at, seen, end, total = uint64(0), uint64(0), uint64(size), uint64(count)
    first = total
    one = two = three = four = _BASIS  # hashes of the last 1 to 4 characters
    while at < end:
        # A character begins: each hash becomes that of one character more.
        one, two, three, four = _BASIS, one, two, three
        while True:
            byte = word[at]
            one, two = _hash_byte(one, byte), _hash_byte(two, byte)
            three, four = _hash_byte(three, byte), _hash_byte(four, byte)
            at += _ONE
            if word[at] & 0xC0 != 0x80:
                break
        seen += _ONE
        total = _append_ngram(two, seen >= uint64(2), lookup, rows, total)
        total = _append_ngram(three, seen >= uint64(3), lookup, rows, total)
        total = _append_ngram(four, seen >= uint64(4), lookup, rows, total)
    _find_rows(lookup, rows, first, total)
    return total


@njit(types.uint32(_scratch, types.int64), **_inlined)
def _hash_word(word: Bytes, size: int) -> int:
    """Hash the word inside the angle brackets of word[:size]."""
    hashed = _BASIS
    for i in range(uint64(1), uint64(size - 1)):
        hashed = _hash_byte(hashed, word[i])
    return hashed


@njit(types.boolean(_scratch, types.int64, types.int64, _lookup), **_inlined)
def _is_spelt(word: Bytes, size: int, number: int, lookup: Lookup) -> bool:
    """Compare the word inside the angle brackets of word[:size] with word `number`.

    Equal hashes are not enough: `'A` has the hash of the Sindhi word U+06FD.
    """
    start = lookup.starts[number]
    if lookup.starts[number + 1] - start != size - 2:
        return False
    same = 0
    while same < size - 2 and lookup.letters[start + same] == word[same + 1]:
        same += 1
    return same == size - 2


@njit(types.int64(_scratch, types.int64, types.uint32, _lookup), **_options)
def _find_word(word: Bytes, size: int, hashed: int, lookup: Lookup) -> int:
    """Return the number of the word in word[:size], -1 if unknown (`Dictionary::find`)."""
    last_slot = len(lookup.slots) - 1
    slot = np.int64(hashed) & last_slot
    while True:
        number = lookup.slots[slot]
        if number < 0:
            return -1
        if lookup.hashes[number] == hashed and _is_spelt(word, size, number, lookup):
            return number
        slot = (slot + 1) & last_slot


@njit(types.boolean(_scratch), **_inlined)
def _is_label(word: Bytes) -> bool:
    """Check for a word that fastText reads as a label (`Dictionary::getType`)."""
    matching = 0
    while matching < len(_LABEL_PREFIX) and word[matching + 1] == _LABEL_PREFIX[matching]:
        matching += 1
    return matching == len(_LABEL_PREFIX)


@njit(types.int64(_bytes, _span, _lookup, _scratch, _integers, types.int64), **_options)
def _append_words(
    data: Bytes, span: tuple[int, int], lookup: Lookup, word: Bytes, rows: Integers, count: int
) -> int:
    """Append the rows of the words of data[span]; return the new count (`Dictionary::getLine`).

    A newline separates words like a blank. The word `</s>` ends the line: the rest is not read.
    """
    at, stop = span
    word[0] = _OPEN
    while at < stop:
        size, hashed = 1, _BASIS
        while at < stop and not _is_space(data[at]):
            word[size] = data[at]
            hashed = _hash_byte(hashed, data[at])
            size += 1
            at += 1
        at += 1
        # The zero begins a character, as `_append_ngrams` reads one byte ahead.
        word[size], word[size + 1] = _CLOSE, 0
        if size == 1 or _is_label(word):
            continue
        known = _find_word(word, size + 1, hashed, lookup)
        if known < 0:
            count = _append_ngrams(word, size + 1, lookup, rows, count)
            continue
        rows[count] = known
        count += 1
        if known == lookup.end:
            break
    return count


@njit(types.void(_integers, types.float32[::1], _lookup), **_options)
def _average(rows: Integers, hidden: Floats, lookup: Lookup) -> None:
    """Write the average of the rows to `hidden` (`Model::computeHidden`)."""
    hidden[:] = 0
    total = 0
    for row in rows:
        for k in range(uint64(len(hidden))):  # as unsigned numbers they are added side by side
            hidden[k] += lookup.rows[uint64(row), k]
        # A known word stands for its own row and those of its n-grams.
        total += lookup.sizes[row] if row < len(lookup.sizes) else 1
    for k in range(len(hidden)):
        hidden[k] /= total


@njit(types.Tuple((types.int64, types.float64))(types.float32[::1], _lookup, _path), **_options)
def _best_label(hidden: Floats, lookup: Lookup, path: Path) -> tuple[int, float]:
    """Return the likeliest label and its probability (`HierarchicalSoftmaxLoss::dfs`).

    The search follows the likelier branch first, and drops a branch below the best score so far.
    """
    num_labels = len(lookup.output)
    nodes, scores = path
    nodes[0], scores[0], waiting = len(lookup.children) - 1, 0.0, 1
    best, best_score = -1, -np.inf
    while waiting:
        waiting -= 1
        node, score = nodes[waiting], scores[waiting]
        if score <= best_score:
            continue
        if node < num_labels:
            best, best_score = node, score
            continue
        product = np.float32(0)
        for k in range(len(hidden)):
            product += hidden[k] * lookup.output[node - num_labels, k]
        right = 1 / (1 + np.exp(-np.float64(product)))
        likelier = np.int64(right > 0.5)
        # The likelier branch is pushed last and visited next: a high score soon drops the rest.
        for side in (1 - likelier, likelier):
            chance = right if side == 1 else 1 - right
            nodes[waiting] = lookup.children[node, side]
            # (1e-5: as fastText's `std_log`)
            scores[waiting] = score + np.log(chance + 1e-5)
            waiting += 1
    return best, np.exp(best_score)


@njit(types.int64(_bytes, types.int64, types.int64), **_options)
def _move_border(data: Bytes, at: int, stop: int) -> int:
    """Return the next whitespace, or the next start of a character if none is within `_REACH`."""
    for near in range(at, min(at + _REACH, stop)):
        if _is_space(data[near]):
            return near
    while at < stop and data[at] & 0xC0 == 0x80:
        at += 1
    return min(at, stop)


@njit(types.int64(_bytes, types.UniTuple(types.int64, 3), _lookup, _scratch, _integers), **_options)
def _append_windows(
    data: Bytes, span: tuple[int, int, int], lookup: Lookup, word: Bytes, rows: Integers
) -> int:
    """Write the rows of the text's first, middle and last bytes; return their count."""
    start, stop, window = span
    count, end = 0, start
    num_windows = 3 if stop - start > 3 * window else 1
    for i in range(num_windows):
        begin = start + (stop - start - window) * i // 2
        begin = max(_move_border(data, begin, stop), end) if i > 0 else start
        is_last = i == num_windows - 1
        end = stop if is_last else _move_border(data, max(begin, end) + window, stop)
        count = _append_words(data, (begin, end), lookup, word, rows, count)
        if count > 0 and rows[count - 1] == lookup.end:
            return count
    rows[count] = lookup.end
    return count + 1


@njit(
    types.Tuple((types.int64[::1], types.float32[::1]))(
        _bytes, _offsets, _lookup, types.int64, types.int64
    ),
    **_makes_arrays,
)
def predict(
    data: Bytes, offsets: Offsets, lookup: Lookup, window: int, prefix: int
) -> tuple[NDArray[np.int64], Floats]:
    """Return the best label and its probability, int64 [n] and float32 [n], of n texts.

    data: UTF-8 bytes; offsets: int64 [n + 1]. Of a text longer than 3 * `window` bytes, `window`
    bytes each are read from its start, middle and end; if the probability is then below 0.5, its
    first `prefix` bytes are read instead.
    """
    longest = max(prefix, 3 * window) + 4 * _REACH
    word = np.empty(longest + 3, np.uint8)
    rows = np.empty(6 * (longest + 3), np.int32)  # 3 n-grams a character, brackets included
    hidden = np.empty(lookup.rows.shape[1], np.float32)
    path = (np.empty(len(lookup.output) + 1, np.int64), np.empty(len(lookup.output) + 1))
    labels = np.empty(len(offsets) - 1, np.int64)
    scores = np.empty(len(offsets) - 1, np.float32)
    for i in range(len(labels)):
        start, stop = offsets[i], offsets[i + 1]
        count = _append_windows(data, (start, stop, window), lookup, word, rows)
        _average(rows[:count], hidden, lookup)
        label, score = _best_label(hidden, lookup, path)
        if score < _UNSURE and stop - start > 3 * window:
            stop = _move_border(data, min(start + prefix, stop), stop)
            count = _append_windows(data, (start, stop, stop - start), lookup, word, rows)
            _average(rows[:count], hidden, lookup)
            label, score = _best_label(hidden, lookup, path)
        labels[i], scores[i] = label, score
    return labels, scores


@njit(types.Tuple((_hashes, _integers, _floats))(_lookup), **_makes_arrays)
def sum_words(lookup: Lookup) -> tuple[NDArray[np.uint32], Integers, Floats]:
    """Return the `hashes`, `sizes` and summed rows of all words (`Dictionary::initNgrams`).

    The word `</s>` has no n-grams. `slots`, `hashes` and `sizes` of the lookup are not read.
    """
    num_words = len(lookup.starts) - 1
    hashes, sizes = np.empty(num_words, np.uint32), np.ones(num_words, np.int32)
    sums = lookup.rows[:num_words].copy()
    for i in range(num_words):
        start, stop = lookup.starts[i], lookup.starts[i + 1]
        size = stop - start + 2
        word, rows = np.zeros(size + 1, np.uint8), np.empty(3 * size + 1, np.int32)
        word[0], word[size - 1] = _OPEN, _CLOSE
        for at in range(stop - start):  # not as slices: see `compiling`
            word[at + 1] = lookup.letters[start + at]
        hashes[i] = _hash_word(word, size)
        count = _append_ngrams(word, size, lookup, rows, 0) if i != lookup.end else 0
        for row in rows[:count]:
            for column in range(sums.shape[1]):
                sums[i, column] += lookup.rows[row, column]
        sizes[i] += count
    return hashes, sizes, sums
