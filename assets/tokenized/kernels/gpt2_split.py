"""Split texts into words as GPT-2 does, and count the distinct ones, straight from Arrow's buffers.

The pattern is GPT-2's, which byte-level BPE uses (`tokenizers`: pre_tokenizers/byte_level.rs):

    's|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+

Every character is a letter, number, blank or other, so that a word is one run of a class, perhaps
after one blank; the last of several blanks belongs to what follows.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment"

import numpy as np
from numba import njit, uint8, uint64
from numpy.typing import NDArray

from assets.text.kernels.byte_strings import LENGTH, START, VALUE, Bytes, Records, find_string
from assets.text.kernels.utf8 import decode, last_start

OTHER, LETTER, NUMBER, SPACE = 0, 1, 2, 3  # classes of characters
TEXT, BYTE, NUM_WORDS, NUM_BYTES = 0, 1, 2, 3  # where the counting is, and what the table holds

Integers = NDArray[np.int64]

_ONE, _TWO, _THREE = uint64(1), uint64(2), uint64(3)
_options = {"cache": True, "nogil": True}
_inlined = {**_options, "forceinline": True}


@njit(**_inlined)
def _class_and_width(data: Bytes, at: int, classes: Bytes) -> tuple[int, int]:
    byte = data[at]
    if byte < 0x80:
        return classes[byte], uint8(1)
    code_point, width = decode(data, at)
    return classes[code_point], width


@njit(**_inlined)
def _run_end(data: Bytes, at: int, stop: int, classes: Bytes, wanted: int) -> int:
    while at < stop:
        found, width = _class_and_width(data, at, classes)
        if found != wanted:
            break
        at += width
    return at


@njit(**_inlined)
def _contraction_end(data: Bytes, at: int, stop: int) -> int:
    """Where 's 't 'm 'd 're 've 'll that begins at `at` ends; `at` if there is none."""
    if at + _ONE < stop:
        first = data[at + _ONE]
        if first == ord("s") or first == ord("t") or first == ord("m") or first == ord("d"):
            return at + _TWO
        if at + _TWO < stop:
            second = data[at + _TWO]
            if second == ord("e") and (first == ord("r") or first == ord("v")):
                return at + _THREE
            if second == ord("l") and first == ord("l"):
                return at + _THREE
    return at


@njit(**_inlined)
def word_end(data: Bytes, at: int, stop: int, classes: Bytes) -> int:
    """Where the word ends that begins at byte `at` of a text which ends at `stop`; all uint64."""
    begin = at
    if data[at] == ord("'"):
        end = _contraction_end(data, at, stop)
        if end > at:
            return end
    found, width = _class_and_width(data, at, classes)
    at += width
    if found == SPACE:
        if data[begin] == ord(" ") and at < stop:
            following, width = _class_and_width(data, at, classes)
            if following != SPACE:
                return _run_end(data, at + width, stop, classes, following)
        end = _run_end(data, at, stop, classes, SPACE)
        if end in (at, stop):
            return end
        return last_start(data, end)
    return _run_end(data, at, stop, classes, found)


@njit(**_options)
def count_words(
    text: Bytes, offsets: Integers, classes: Bytes, records: Records, data: Bytes, state: Integers
) -> bool:
    """Count the words of two bytes or more of all texts; False where a table is full.

    Then the caller makes it larger and calls again: the counting goes on there.

    `classes`, uint8 [0x110000], has the class of each code point. A record's VALUE is the count,
    its START a place in `data`; `state`, int64 [4]: where the counting is, what there is so far.
    """
    most_words = len(records) // 2
    for row in range(state[TEXT], len(offsets) - 1):
        at = uint64(max(state[BYTE], offsets[row]))
        stop = uint64(offsets[row + 1])
        while at < stop:
            end = word_end(text, at, stop, classes)
            if end - at > _ONE:
                slot = find_string(records, data, text, at, end)
                if records[slot, VALUE] == 0:
                    size = uint64(state[NUM_BYTES])
                    if state[NUM_WORDS] >= most_words or size + (end - at) > uint64(len(data)):
                        state[TEXT], state[BYTE] = row, at
                        return False
                    data[size : size + (end - at)] = text[at:end]
                    records[slot, START] = size
                    state[NUM_WORDS] += 1
                    state[NUM_BYTES] += np.int64(end - at)
                records[slot, VALUE] += _ONE
            at = end
    return True


@njit(**_options)
def words_of(
    records: Records, data: Bytes, byte_ids: NDArray[np.int32], words: NDArray[np.int32]
) -> None:
    """Write each word as its size, its count and the ids of its bytes, int32, end to end."""
    at = 0
    for row in range(len(records)):
        if records[row, VALUE] != 0:
            size, start = np.int64(records[row, LENGTH]), np.int64(records[row, START])
            words[at], words[at + 1] = size, records[row, VALUE]
            for i in range(size):
                words[at + 2 + i] = byte_ids[data[start + i]]
            at += size + 2
