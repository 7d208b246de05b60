"""Count lines, words, comments and encoded data of source code over the Arrow buffers of a column.

A word is a run of ASCII letters, digits, underscores and non-ASCII bytes. `code_comments` defines
comments, `html_text` visible text.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import njit
from numpy.typing import NDArray

from assets.filtered.kernels.code_comments import count_comments
from assets.filtered.kernels.code_syntax import (
    LF,
    SPACE,
    TAB,
    Bytes,
    Count,
    Integers,
    Trait,
    find_newline,
    is_blank,
)
from assets.filtered.kernels.html_text import count_visible
from assets.text.kernels.compiling import ARRAY_KERNEL, KERNEL
from assets.text.kernels.hashing import MULTIPLIER

Hashes = NDArray[np.uint64]

WORD, START, PUNCTUATION, ENCODED, DIGIT = 1, 2, 4, 8, 16
KEYWORD_BYTES = 8  # a keyword is compared as one 64-bit number
KEYWORD_SLOTS_LOG2 = 10
ENCODED_RUN = 64  # bytes; the lines of PEM files (RFC 7468) have as many


def byte_classes(punctuation: str) -> Bytes:
    """Return the class bits of each byte, uint8 [256]; all of `punctuation` must be ASCII."""
    classes = np.zeros(256, np.uint8)
    classes[0x80:] = WORD
    for byte in range(128):
        if chr(byte).isalnum() or byte == 0x5F:
            is_digit = chr(byte).isdigit()
            classes[byte] = WORD | (DIGIT if is_digit else START) | ENCODED
    classes[0x5F] = WORD | START
    classes[list(b"+/")] |= ENCODED
    classes[list(punctuation.encode())] |= PUNCTUATION
    return classes


def hash_words(words: list[str]) -> Hashes:
    """Return an open-addressing table, uint64 [2 ** KEYWORD_SLOTS_LOG2]; 0 marks a free slot.

    A word is its bytes as one big-endian number; it has 1 to KEYWORD_BYTES bytes.
    """
    table = np.zeros(1 << KEYWORD_SLOTS_LOG2, np.uint64)
    for word in words:
        key = np.uint64(int.from_bytes(word.encode(), "big"))
        table[slot_of(table, key)] = key
    return table


@njit(**ARRAY_KERNEL)
def count_documents(
    starts: Integers,
    data: Bytes,
    syntaxes: tuple[Integers, Bytes, Bytes, Integers],
    lexicon: tuple[Bytes, Hashes],
    counts: Integers,
) -> None:
    """Fill `counts`, int64 [Count, n], for n texts with offsets `starts`, int64 [n + 1].

    `syntaxes` is (syntax of each text, int64 [n], -1 for none; actions, uint8 [syntaxes, 256];
    marks, uint8 [syntaxes, MARKS, MARK_BYTES]; traits, int64 [syntaxes]); `lexicon` is (class of
    each byte, uint8 [256]; keywords by hash, uint64 [2 ** KEYWORD_SLOTS_LOG2]).
    """
    chosen, actions, marks, traits = syntaxes
    classes, keywords = lexicon
    for row in range(counts.shape[1]):
        text = data[starts[row] : starts[row + 1]]
        _count_lines(text, counts[:, row])
        _count_words(text, classes, keywords, counts[:, row])
        _count_encoded(text, classes, counts[:, row])
        syntax = chosen[row]
        if syntax >= 0:
            count_comments(text, actions[syntax], marks[syntax], traits[syntax], counts[:, row])
            if traits[syntax] & Trait.HTML:
                counts[Count.VISIBLE_TEXT_CHARACTERS, row] = count_visible(text)


@njit(**ARRAY_KERNEL)
def _count_lines(text: Bytes, counts: Integers) -> None:
    at = 0
    while at < len(text):
        first = at
        while at < len(text) and is_blank(text[at]):
            at += 1
        if at < len(text) and text[at] != LF:
            counts[Count.CODE_LINES] += 1
            is_two = text[first] == SPACE and at > first + 1  # all before `at` are blanks
            counts[Count.INDENTED_LINES] += at > first and (text[first] == TAB or is_two)
        at = find_newline(text, at) + 1


@njit(**ARRAY_KERNEL)
def _count_words(text: Bytes, classes: Bytes, keywords: Hashes, counts: Integers) -> None:
    punctuation = words = num_keywords = length = 0
    key, previous = np.uint64(0), np.uint8(0)
    for byte in text:
        bits = classes[byte]
        punctuation += (bits & PUNCTUATION) >> 2
        if bits & WORD:
            words += (bits & START) > (previous & WORD) << 1
            key = key << np.uint64(8) | np.uint64(byte)
            length += 1
        elif length:
            num_keywords += length <= KEYWORD_BYTES and keywords[slot_of(keywords, key)] == key
            key, length = np.uint64(0), 0
        previous = bits
    num_keywords += 0 < length <= KEYWORD_BYTES and keywords[slot_of(keywords, key)] == key
    counts[Count.PUNCTUATION_CHARACTERS] = punctuation
    counts[Count.CODE_WORDS] = words
    counts[Count.KEYWORD_WORDS] = num_keywords


@njit(**KERNEL)
def slot_of(keywords: Hashes, key: np.uint64) -> np.uint64:
    """Return the slot of `key` in the open-addressing table, or the free slot for it."""
    slot = (key * MULTIPLIER) >> np.uint64(64 - KEYWORD_SLOTS_LOG2)
    while keywords[slot] != 0 and keywords[slot] != key:
        slot = (slot + np.uint64(1)) & np.uint64(len(keywords) - 1)
    return slot


@njit(**ARRAY_KERNEL)
def _count_encoded(text: Bytes, classes: Bytes, counts: Integers) -> None:
    """Count the bytes of encoded runs; every run of 64 has a byte at one of the probes."""
    done, probe = 0, ENCODED_RUN - 1
    while probe < len(text):
        if not classes[text[probe]] & ENCODED:
            probe += ENCODED_RUN
            continue
        start = stop = probe
        while start > done and classes[text[start - 1]] & ENCODED:
            start -= 1
        while stop < len(text) and classes[text[stop]] & ENCODED:
            stop += 1
        if stop - start >= ENCODED_RUN and _is_encoded(text[start:stop], classes):
            counts[Count.LONG_HEX_OR_BASE64_CHARACTERS] += stop - start
        done, probe = stop, stop + ENCODED_RUN - 1


@njit(**ARRAY_KERNEL)
def _is_encoded(run: Bytes, classes: Bytes) -> bool:
    """Tell data from rulers, paths and long names, which have no digit or too many signs."""
    digits = alphanumerics = 0
    for byte in run:
        digits += (classes[byte] & DIGIT) != 0
        alphanumerics += (classes[byte] & WORD) != 0
    return bool(digits > 0 and 8 * alphanumerics >= 7 * len(run))
