"""Whether a token is a listed profane word in disguise: "sh1t", "f**k", "fuuuck".

Digits and symbols are read as the letters that they stand for, runs of a letter are shortened, and
a masked letter may be any one. A token has at most 40 characters.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, return-value"

import numpy as np
from numba import njit, uint8, uint64
from numpy.typing import NDArray

from assets.filtered.kernels.term_table import PRIME, Entries, Tables, find
from assets.text.kernels.words import BLANK, LOWER, entry_of

Points = NDArray[np.int64]

_options = {"cache": True, "nogil": True}
_inlined = {**_options, "forceinline": True}


@njit(**_inlined)
def is_letter(byte: int) -> bool:
    """ASCII letter, or any byte of a character outside ASCII."""
    return (uint8(byte | 0x20) - uint8(97)) & 0xFF < 26 or byte >= 0x80


@njit(**_inlined)
def is_symbol(byte: int) -> bool:
    """Read as a letter or as a mask: ! # $ * + @."""
    return (
        byte == 0x21 or byte == 0x23 or byte == 0x24 or byte == 0x2A or byte == 0x2B or byte == 0x40
    )


@njit(**_inlined)
def is_special(byte: int) -> bool:
    """A symbol, or one of the digits read as letters (0 1 3 4 5 7 8)."""
    is_digit = byte >= 0x30 and byte <= 0x38 and byte != 0x32 and byte != 0x36
    return is_digit or is_symbol(byte)


@njit(**_options)
def _is_disguised(token: Points) -> bool:
    """Whether one to three special characters stand between letters, or a letter three times."""
    for i in range(len(token) - 2):
        a, b, c = token[i], token[i + 1], token[i + 2]
        if is_letter(a) and is_special(b):
            end = i + 2
            while end < min(i + 4, len(token)) and is_special(token[end]):
                end += 1
            if end < len(token) and is_letter(token[end]):
                return True
        if a < 0x80 and is_letter(a) and a | 0x20 == b | 0x20 and a | 0x20 == c | 0x20:
            return True
        if a >= 0x80 and a < 0x800 and a == b and a == c:
            return True
    return False


@njit(**_options)
def is_profane(token: Points, entries: Entries, tables: Tables, languages: np.uint64) -> bool:
    """Whether a token is a disguised profane word of these languages (and not itself listed)."""
    word = _stripped(token)
    if len(word) < 3 or not is_letter(word[0]) or not _is_disguised(word):
        return False
    visible = masks = 0
    for i in range(len(word)):
        masks += word[i] == 0x2A or word[i] == 0x23
        visible += is_letter(word[i])
        if word[i] > 0x40:  # below, no letters
            word[i] = np.int64(entry_of(word[i], entries) & uint64(LOWER))
    if 2 * visible < len(word) or (len(word) < 4 and word[0] < 0x80):
        return False
    return _matches_mask(word, tables, languages) if masks else _matches(word, tables, languages)


@njit(**_options)
def _stripped(token: Points) -> Points:
    first, last = 0, len(token)
    while first < last and is_symbol(token[first]):
        first += 1
    while first < last and is_symbol(token[last - 1]):
        last -= 1
    return token[first:last]


@njit(**_options)
def _matches(word: Points, tables: Tables, languages: np.uint64) -> bool:
    """Whether a reading of the word is listed, and the word as it stands is not."""
    key = uint64(BLANK)
    for letter in word:
        key = key * PRIME + uint64(letter)
    slot = find(key, tables)
    if slot >= 0 and tables.profane[slot] & languages:
        return False
    for one in (0x69, 0x6C):
        for kept in (1, 2):
            slot = find(_spelled(word, one, kept), tables)
            if slot >= 0 and tables.profane[slot] & languages:
                return True
    return False


@njit(**_options)
def _plain_letter(letter: int, one: int) -> int:
    """The letter that a digit or symbol stands for."""
    if letter == 0x31:  # 1
        return one
    if letter == 0x30:
        return 0x6F  # o
    if letter == 0x21:  # !
        return 0x69
    if letter == 0x33:
        return 0x65  # e
    if letter == 0x34 or letter == 0x40:  # 4 @
        return 0x61
    if letter == 0x35 or letter == 0x24:  # 5 $
        return 0x73
    if letter == 0x37 or letter == 0x2B:  # 7 +
        return 0x74
    return 0x62 if letter == 0x38 else letter  # 8: b


@njit(**_options)
def _spelled(word: Points, one: int, kept: int) -> int:
    """Hash of the word in plain letters, runs of three and more cut to `kept`."""
    key, i = uint64(BLANK), 0
    while i < len(word):
        letter, end = _plain_letter(word[i], one), i + 1
        while end < len(word) and _plain_letter(word[end], one) == letter:
            end += 1
        for _ in range(end - i if end - i < 3 else kept):
            key = key * PRIME + uint64(letter)
        i = end
    return key


@njit(**_options)
def _matches_mask(word: Points, tables: Tables, languages: np.uint64) -> bool:
    """Whether a listed word has the same length and the same letters where they are visible."""
    wanted = np.int64(len(word)) << 21 | word[0]
    low, high = 0, len(tables.masked.keys)
    while low < high:
        middle = (low + high) // 2
        if tables.masked.keys[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    while low < len(tables.masked.keys) and tables.masked.keys[low] == wanted:
        start, fits = tables.masked.starts[low], (tables.masked.languages[low] & languages) != 0
        for i in range(len(word)):
            is_mask = word[i] == 0x2A or word[i] == 0x23
            same = _plain_letter(word[i], 0x69) == tables.masked.letters[start + i]
            fits = fits and (is_mask or same)
        if fits:
            return True
        low += 1
    return False
