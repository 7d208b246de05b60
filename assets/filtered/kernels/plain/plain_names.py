"""Tell names of secrets, other placeholders and technical names: see `pii.secret_words`.

The words are a tree of letters, made there. All values are of printable ASCII.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from assets.filtered.kernels.plain.plain_bytes import (
    Bytes,
    Integers,
    is_digit,
    is_letter,
    is_word,
)
from assets.text.kernels.compiling import INLINED, KERNEL

# What a word is: before the name of a secret, that name, after it, a placeholder, part of a
# technical name, a unit, and "mon", which "monkey" does not begin with.
ROLE, THING, MORE, PLACEHOLDER, TECHNICAL, UNIT, NO_KEY = 1, 2, 4, 8, 16, 32, 64
SIGNS = 96  # small letters, digits and marks of ASCII, from the blank on

LONGEST = 128  # bytes, more than six roles, a thing and three more words have
_ROLES = 0x7F  # how many roles are read: a bit for each number from 0 to 6
_FIRST = 0x80  # the name of a secret is read
_MORE = 0x380  # the same and 0 to 2 words after it; one more bit for 3
_FOOBAR = tuple(b"foobar")
_WAITING = 4  # bits to the left: the same with a separator read


class WordTree(NamedTuple):
    """A tree of the words in small letters: the node after each sign, and what ends at a node."""

    nodes: NDArray[np.int16]  # [n, SIGNS]; 0 for none
    flags: Bytes  # [n]
    ways: Integers  # [LONGEST + 1]: room for `is_name_of_secret`, for the reader's own use


@njit(**INLINED)
def next_node(tree: WordTree, node: int, byte: int) -> int:
    """Return the node after one for a sign of any case; 0 if no word goes on so."""
    sign = (byte | 32 if is_letter(byte) else byte) - 32
    return np.int64(tree.nodes[node, sign]) if 0 <= sign < SIGNS else 0


@njit(**KERNEL)
def _flags_of(data: Bytes, start: int, end: int, tree: WordTree) -> int:
    """Return what a word is; 0 for one that is not in the tree."""
    node = 0
    for at in range(start, end):
        node = next_node(tree, node, data[at])
        if not node:
            return 0
    return np.int64(tree.flags[node])


@njit(**INLINED)
def _is_separator(data: Bytes, at: int, end: int) -> bool:
    return at < end and data[at] in (32, 45, 46, 95)  # -._


@njit(**INLINED)
def _is_key(data: Bytes, at: int, end: int) -> bool:
    if at + 3 > end:
        return False
    return data[at] | 32 == 107 and data[at + 1] | 32 == 101 and data[at + 2] | 32 == 121


@njit(**KERNEL)
def _read_words(data: Bytes, text: tuple[int, int], at: int, tree: WordTree) -> None:
    """Add the ways that words at a place of a value lead on: see `is_name_of_secret`."""
    start, end = text
    read = tree.ways
    own, node, last = read[at - start], 0, at
    named = (own | own >> _WAITING) & _MORE
    while last < end:
        node = next_node(tree, node, data[last])
        if not node:
            break
        last += 1
        flags = tree.flags[node]
        if flags & ROLE and not (flags & NO_KEY and _is_key(data, last, end)):
            roles = (own & (_ROLES >> 1)) << 1
            read[last - start] |= roles
            read[last + _is_separator(data, last, end) - start] |= roles
        if flags & THING and own & _ROLES:
            read[last - start] |= _FIRST
        if flags & MORE:
            read[last - start] |= named << 1


@njit(**KERNEL)
def is_name_of_secret(data: Bytes, start: int, end: int, tree: WordTree) -> bool:
    """Check for up to six roles, the name of a secret and up to three words: `my-password_12`.

    All ways to read a value are followed at once: `tree.ways` has those that lead to each place.
    """
    if end - start > LONGEST:
        return False
    read = tree.ways
    read[: end - start + 1] = 0
    read[0] = 1
    for at in range(start, end):
        own = read[at - start]
        if not own:
            continue
        if is_word(data[at]):
            read[at + 1 - start] |= ((own | own >> _WAITING) & _MORE) << 1
        if _is_separator(data, at, end):
            read[at + 1 - start] |= (own & _MORE) << _WAITING
        _read_words(data, (start, end), at, tree)
    return read[end - start] & (_MORE | _MORE << 1) > 0


@njit(**KERNEL)
def _is_mask(data: Bytes, start: int, end: int) -> bool:
    """Check for signs that name nothing: `***`, `xxxx`, `...`."""
    at = start
    while at < end:
        byte = data[at]
        if byte == 92 and at + 1 < end and data[at + 1] == 42:
            at += 1
        elif not (byte | 32 in (120, 121) and is_letter(byte)) and byte not in (
            *(35, 42, 45, 46, 58, 63, 95),  # #*-.:?_
        ):
            return False
        at += 1
    return True


@njit(**KERNEL)
def _is_constant(data: Bytes, start: int, end: int) -> bool:
    """Check for a name in capitals with an underscore: `DB_PASS`."""
    lines = 0
    for at in range(start, end):
        is_line = data[at] == 95
        if not (is_line or 65 <= data[at] <= 90):
            return False
        if is_line and (at == start or at == end - 1 or data[at - 1] == 95):
            return False
        lines += is_line
    return lines > 0


@njit(**KERNEL)
def _is_foobar(data: Bytes, start: int, end: int) -> bool:
    """Check for "foo" and any number of "bar" after it."""
    if end - start < 6 or (end - start) % 3:
        return False
    for at in range(end - start):
        if data[start + at] | 32 != _FOOBAR[at if at < 3 else 3 + at % 3]:
            return False
    return True


@njit(**KERNEL)
def is_other_placeholder(data: Bytes, start: int, end: int, tree: WordTree) -> bool:
    """Check for a placeholder that has no name of a secret: `changeme`, `xxxx`, `DB_PASS`."""
    if _flags_of(data, start, end, tree) & PLACEHOLDER or _is_foobar(data, start, end):
        return True
    return _is_mask(data, start, end) or _is_constant(data, start, end)


@njit(**KERNEL)
def _end_of_word(data: Bytes, at: int, end: int) -> int:
    while at < end and is_word(data[at]):
        at += 1
    return at


@njit(**KERNEL)
def _end_of_digits(data: Bytes, at: int, end: int) -> int:
    while at < end and is_digit(data[at]):
        at += 1
    return at


@njit(**KERNEL)
def _is_numbered(data: Bytes, start: int, end: int, tree: WordTree) -> bool:
    """Check for a technical name, up to four digits and a word: `md5`, `utf-8`, `v2-beta`."""
    at = start
    while at < end and is_letter(data[at]):
        at += 1
    if at == end or not _flags_of(data, start, at, tree) & TECHNICAL:
        return False
    at += data[at] in (45, 95)  # -_
    digits = _end_of_digits(data, at, end)
    if not 1 <= digits - at <= 4:
        return False
    if digits == end:
        return True
    is_more = data[digits] in (45, 46, 47, 95)  # -./_
    return is_more and 2 <= end - digits <= 13 and _end_of_word(data, digits + 1, end) == end


@njit(**KERNEL)
def _is_measure(data: Bytes, start: int, end: int, tree: WordTree) -> bool:
    """Check for digits with a unit, or with a hyphen and a word: `64bit`, `3rd`, `2-way`."""
    at = _end_of_digits(data, start, end)
    if at in (start, end):
        return False
    if _flags_of(data, at, end, tree) & UNIT:
        return True
    return data[at] == 45 and at + 1 < end and _end_of_word(data, at + 1, end) == end


@njit(**KERNEL)
def _is_joined(data: Bytes, start: int, end: int) -> bool:
    """Check for a word, a sign and a word: `name@hash`, `step-1`, `my.name`."""
    at = _end_of_word(data, start, end)
    # The underscore of "my_name" is part of a word.
    second = data[start + 1] | 32 if start + 1 < end else 0
    is_my = data[start] | 32 == 109 and second == 121
    is_your = end - start > 3 and data[start] | 32 == 121 and second == 111
    is_your = is_your and data[start + 2] | 32 == 117 and data[start + 3] | 32 == 114
    if is_my or is_your:
        sign = start + (2 if is_my else 4)
        is_sign = sign + 1 < end and data[sign] in (45, 46, 64, 95)  # -.@_
        if is_sign and _end_of_word(data, sign + 1, end) == end:
            return True
    if at in (start, end):
        return False
    if data[at] == 45:
        return 1 <= end - at - 1 <= 2 and _end_of_digits(data, at + 1, end) == end
    if data[at] != 64 or end - at - 1 < 7:
        return False
    is_hash = True
    for byte in data[at + 1 : end]:
        is_hash &= is_digit(byte) or (is_letter(byte) and byte | 32 <= 102)
    return is_hash


@njit(**KERNEL)
def is_technical(data: Bytes, start: int, end: int, tree: WordTree) -> bool:
    """Check for a technical name or numbers: `secret_words._TECHNICAL`."""
    at = start
    while at < end and 44 <= data[at] <= 58:  # ,-./ digits :
        at += 1
    if at == end or _is_numbered(data, start, end, tree):
        return True
    return _is_measure(data, start, end, tree) or _is_joined(data, start, end)
