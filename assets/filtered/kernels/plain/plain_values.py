"""Tell a random value from a word or a placeholder, where that is sure: see `pii.secret_words`."""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

import numpy as np
from numba import njit

from assets.filtered.kernels.plain.plain_bytes import (
    OPTIONS,
    REFUSED,
    UNSURE,
    Bytes,
    is_digit,
    is_letter,
    is_word,
)

STRONG = 1
THING, TECHNICAL, WORD = 1, 2, 4  # of the letters that a word begins with

_SIGN = 2  # a mark that no word and no mask of a secret has
_MARKS = np.zeros(256, np.uint8)
_MARKS[list(b"#*?")] = 1
_MARKS[list(b"!$%&+=@^|~")] = _SIGN


@njit(**OPTIONS)
def _letter(data: Bytes, at: int, end: int) -> int:
    """Return 1 to 26 for a letter of any case, 0 for any other byte and beyond the end."""
    return (data[at] | 32) - 96 if at < end and is_letter(data[at]) else 0


@njit(**OPTIONS)
def _letters_at(data: Bytes, at: int, end: int, things: Bytes) -> int:
    """Return what a table says of up to three letters at a place; 0 for one letter."""
    first, second = _letter(data, at, end), _letter(data, at + 1, end)
    return things[(first * 27 + second) * 27 + _letter(data, at + 2, end)] if second else 0


@njit(**OPTIONS)
def _is_template(data: Bytes, at: int, end: int) -> bool:
    """Check for two bytes that may open or close a variable of a template."""
    byte, after = data[at], data[at + 1] if at + 1 < end else 0
    if byte == 36:  # $
        return after in (40, 95, 123) or 65 <= after <= 90
    if byte == 123:  # {
        return after in (37, 95, 123) or 97 <= after <= 122
    if byte == 60:  # <
        return after in (32, 37, 95) or is_letter(after)
    if byte == 37:  # %
        return after in (40, 62)
    return (byte == 35 and after == 123) or (byte == 93 and after == 93)


@njit(**OPTIONS)
def is_no_placeholder(data: Bytes, start: int, end: int, things: Bytes) -> bool:
    """Check that a value of printable ASCII is surely no placeholder.

    things: uint8 [27**3], THING for three letters, as digits to base 27, of names of secrets, WORD
    for those of other placeholders.
    """
    if data[start] in (36, 37, 38, 40, 58, 60, 64, 91, 92, 123):  # $%&(:<@[\{
        return False
    is_odd = False  # no word and no mask has such a sign
    has_thing, has_sign, has_line = False, False, False
    for at in range(start, end):
        byte = data[at]
        is_sign = _MARKS[byte] == _SIGN
        has_sign, has_line = has_sign or is_sign, has_line or byte == 95
        is_odd |= is_sign or is_digit(byte)
        if is_letter(byte):
            has_thing |= not has_sign and _letters_at(data, at, end, things) & THING > 0
        elif _is_template(data, at, end):
            return False
    # A mask has no letters but x and y, a name in capitals has an underscore.
    first, second = data[start], data[start + 1] if start + 1 < end else 0
    is_mask = first | 32 in (120, 121) and second | 32 in (120, 121)
    is_word = has_line or is_mask or not (is_letter(first) and is_letter(second))
    is_word = is_word or _letters_at(data, start, end, things) & WORD > 0
    # In a placeholder, no such sign is beside a name of secrets.
    return has_sign or (not has_thing and (is_odd or not is_word))


@njit(**OPTIONS)
def _is_no_name(data: Bytes, start: int, end: int, things: Bytes) -> bool:
    """Check that a value has surely none of the forms of technical names: md5, 64bit, v2-3."""
    digits, letters, changes, head = 0, 0, 0, start
    for at in range(start, end):
        byte = data[at]
        if not (is_word(byte) or byte in (44, 45, 46, 47, 58, 64)):  # ,-./:@
            return True
        digits, letters = digits + is_digit(byte), letters + is_letter(byte)
        changes += at > start and is_digit(byte) != is_digit(data[at - 1])
        head += at == head and is_digit(byte)
    if digits + letters < end - start:
        return False
    first, second = _letter(data, head, end), _letter(data, head + 1, end)
    third = _letter(data, head + 2, end) if second else 0
    return changes > 1 or things[(first * 27 + second) * 27 + third] & TECHNICAL == 0


@njit(**OPTIONS)
def _is_no_code(data: Bytes, start: int, end: int) -> bool:
    """Check that a strong value is surely no call, path or address: see `passwords._CODE`."""
    if data[start] in (33, 43, 46, 47, 60, 61, 62, 124, 126):  # !+./<=>|~
        return False
    if not (is_letter(data[start]) or data[start] == 95):
        return True
    at = start
    while at < end and (is_word(data[at]) or data[at] == 46):
        at += 1
    return at == end or data[at] not in (40, 45, 58, 91, 123)  # (-:[{


@njit(**OPTIONS)
def judge_word(data: Bytes, start: int, end: int, things: Bytes) -> int:
    """Return STRONG for a bare value that is surely a secret, REFUSED for none, or UNSURE.

    The value has printable ASCII without blanks, and ends where a bare value does.
    """
    size = end - start
    letters, digits, marks, inner, words, run = 0, 0, 0, 0, 0, 0
    for at in range(start, end):
        byte = data[at]
        letters, digits = letters + is_letter(byte), digits + is_digit(byte)
        is_mark = _MARKS[byte] > 0
        marks += is_mark
        inner += is_mark and start < at < end - 1
        run = run + 1 if is_letter(byte) or is_digit(byte) else 0
        words += run == 2
    is_strong = letters > 0 and (digits > 0 or inner > 0 or marks > 1)
    if size < 5 or (not is_strong and words < 4) or data[start] in (40, 60, 91, 123):  # (<[{
        return REFUSED
    is_sure = is_strong and is_no_placeholder(data, start, end, things)
    is_sure = is_sure and _is_no_name(data, start, end, things) and _is_no_code(data, start, end)
    return STRONG if is_sure else UNSURE
