"""Decide on passwords that come before their name: "use ... as the password"."""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

import numpy as np
from numba import njit

from assets.filtered.kernels.plain.plain_bytes import (
    REFUSED,
    UNSURE,
    Bytes,
    is_among,
    is_ascii,
    is_blank,
    is_digit,
    is_letter,
    is_word,
    packed,
    word_at,
)
from assets.filtered.kernels.plain.plain_names import WordTree
from assets.filtered.kernels.plain.plain_values import is_bare_secret
from assets.text.kernels.compiling import KERNEL
from assets.text.kernels.many_bytes import read_4

_BEFORE = 70  # characters that the check reads before a word
_MAX_BETWEEN = 18  # bytes between " as " and the word
_AS = np.uint32(int.from_bytes(b" as ", "little"))
_ARTICLES = packed("the my your a our")
_NOTHING = (REFUSED, 0)
_NOT_SURE = (UNSURE, 0)


@njit(**KERNEL)
def _find_as(data: Bytes, at: int, stop: int) -> int:
    """Return the first place from `at` on where " as " begins, from `stop` on if there is none.

    Three bytes can be read from `stop` on.
    """
    while at < stop and read_4(data, at) != _AS:
        at += 1
    return at


@njit(**KERNEL)
def _follows_as(data: Bytes, first: int, start: int) -> bool:
    """Check for " as " in the 70 characters before, after which a value may be the password."""
    size = _BEFORE
    for byte in data[max(first, start - _BEFORE) : start]:
        size = 4 * _BEFORE if byte > 127 else size
    return _find_as(data, max(first, start - size), start - 3) < start - 3


@njit(**KERNEL)
def _is_as_the(data: Bytes, start: int, stop: int) -> bool:
    """Check that at most an article and a word, with a blank after each, are between " as " and."""
    at, words = start, 0
    while at < stop:
        first = at
        while at < stop and is_word(data[at]):
            at += 1
        if at == stop or data[at] != 32 or not 1 <= at - first <= 12 or words == 2:
            return False
        if words == 1 and not is_among(word_at(data, start, stop), _ARTICLES):
            return False
        words, at = words + 1, at + 1
    return True


@njit(**KERNEL)
def _end_before_as(data: Bytes, first: int, start: int) -> int:
    """Return where a value before " as the " ends, -1 if there is none, or -2 if unsure."""
    if not is_ascii(data, max(first, start - _BEFORE), start):
        return -2
    stop = start - 3
    end = _find_as(data, max(first, start - _MAX_BETWEEN - 4), stop)
    if end >= stop:
        return -1
    if _find_as(data, end + 1, stop) < stop:
        return -2
    return end if _is_as_the(data, end + 4, start) else -1


@njit(**KERNEL)
def named_after(data: Bytes, first: int, start: int, tree: WordTree) -> tuple[int, int]:
    """Decide on a value that comes first, "use ... as the password": `passwords._named_after`."""
    end = _end_before_as(data, first, start) if _follows_as(data, first, start) else -1
    if end < 0:
        return _NOTHING if end == -1 else _NOT_SURE
    at, digits, is_plain = end, 0, True
    while at > first and end - at <= 40 and 32 < data[at - 1] < 127:
        at -= 1
        digits += is_digit(data[at])
        is_plain &= is_letter(data[at]) or is_digit(data[at]) or data[at] in (60, 62)  # <PASSWORD>
    # Code is no reason here: "use >abc1 as the password".
    is_plain &= at > start - _BEFORE and end - at <= 40 and data[at] != 62
    if not is_plain or (at > first and not is_blank(data[at - 1])):
        return _NOT_SURE
    if end - at < 5 or not digits:
        return _NOTHING
    return (end, at) if is_bare_secret(data, at, end, tree) else _NOTHING
