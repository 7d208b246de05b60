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
def _is_template_at(data: Bytes, at: int, end: int) -> bool:
    """Check for a variable of a template, or its start, at a sign: `secret_words._TEMPLATE`."""
    byte, after = data[at], data[at + 1] if at + 1 < end else 0
    third = data[at + 2] if at + 2 < end else 0
    last = at + 1
    if byte == 36:  # $
        while last < end and (65 <= data[last] <= 90 or data[last] == 95):
            last += 1
        return after in (40, 123) or last - at > 4
    if byte == 123:  # {
        while last < end and (97 <= data[last] <= 122 or data[last] == 95):
            last += 1
        return after in (37, 123) or (last - at > 1 and last < end and data[last] == 125)
    if byte == 60:  # <
        while last < end and (is_letter(data[last]) or data[last] in (32, 95)):
            last += 1
        return after == 37 or (last - at > 1 and last < end and data[last] == 62)
    if byte == 37:  # %
        return after == 62 or (after == 40 and is_word(third))
    return (byte == 35 and after == 123) or (byte == 93 and after == 93)


@njit(**OPTIONS)
def _is_variable(data: Bytes, start: int, end: int) -> bool:
    """Check for a template all of which is a variable: `secret_words._PLACEHOLDER`."""
    byte, after = data[start], data[start + 1] if start + 1 < end else 0
    if byte in (40, 60, 91, 92, 123):  # (<[\\{
        return True
    if byte == 35:  # #
        return after == 123
    if byte not in (36, 37, 38, 58, 64):  # $%&:@
        return False
    if byte == 36 and after in (40, 123):
        return True
    if byte == 37 and after in (40, 123):
        return True
    at = start + 1
    while at < end and (is_letter(data[at]) or data[at] == 95):
        at += 1
    if byte != 37:
        return at == end and at > start + 1
    if end == start + 2 and after | 32 in (100, 113, 114, 115):  # dqrs
        return True
    while at < end and is_word(data[at]):
        at += 1
    return at == end - 1 and data[at] == 37 and 0 <= at - start - 1 <= 30


@njit(**OPTIONS)
def judge_placeholder(data: Bytes, start: int, end: int, things: Bytes) -> int:
    """Return STRONG for a value of printable ASCII that is surely no placeholder, REFUSED for one.

    Else UNSURE. things: uint8 [27**3], THING for three letters, as digits to base 27, of names of
    secrets, WORD for those of other placeholders.
    """
    is_odd = False  # no word and no mask has such a sign
    has_thing, has_sign, has_line, may_mask, no_mask = False, False, False, False, False
    for at in range(start, end):
        byte = data[at]
        if is_letter(byte):
            no_mask |= not 120 <= byte | 32 <= 121  # xy
            has_thing |= not has_sign and _letters_at(data, at, end, things) & THING > 0
        elif is_digit(byte):
            is_odd = no_mask = True
        else:
            # A placeholder of words has no signs but -./()_, and a mask may have \\*.
            is_sign = not (45 <= byte <= 47 or byte in (40, 41, 92, 95))
            is_mask = byte in (35, 42, 58, 63)  # #*:?
            has_sign, has_line = has_sign or (is_sign and not is_mask), has_line or byte == 95
            may_mask |= is_mask
            if _is_template_at(data, at, end):
                return REFUSED
    if _is_variable(data, start, end):
        return REFUSED
    # A mask has no letters but x and y, a name in capitals has an underscore.
    first, second = data[start], data[start + 1] if start + 1 < end else 0
    is_mask = first | 32 in (120, 121) and second | 32 in (120, 121)
    is_word = has_line or is_mask or not (is_letter(first) and is_letter(second))
    is_word = is_word or _letters_at(data, start, end, things) & WORD > 0
    # In a placeholder, no such sign is beside a name of secrets, nor one of a mask.
    has_sign |= may_mask and no_mask
    return STRONG if has_sign or (not has_thing and (is_odd or not is_word)) else UNSURE


@njit(**OPTIONS)
def _is_no_name(data: Bytes, start: int, end: int, things: Bytes) -> bool:
    """Check that a value has surely none of the forms of technical names: md5, 64bit, v2-3."""
    digits, letters, changes, head, signs, last = 0, 0, 0, start, 0, start
    for at in range(start, end):
        byte = data[at]
        if not (is_word(byte) or byte in (44, 45, 46, 47, 58, 64)):  # ,-./:@
            return True
        digits, letters = digits + is_digit(byte), letters + is_letter(byte)
        changes += at > start and is_digit(byte) != is_digit(data[at - 1])
        head += at == head and is_digit(byte)
        if not is_word(byte):
            # With letters, none has a comma or colon, and none has three signs.
            signs, last = signs + (3 if byte in (44, 58) else 1), at
    first, second = _letter(data, head, end), _letter(data, head + 1, end)
    if letters and signs > 2:
        return True
    if letters and signs == 1 and data[last] == 64 and first not in (13, 25):  # no hash, my@, your@
        for byte in data[last + 1 : end]:
            if not (is_digit(byte) or 97 <= byte | 32 <= 102):
                return True
    if digits + letters < end - start:
        return False
    third = _letter(data, head + 2, end) if second else 0
    return changes > 1 or things[(first * 27 + second) * 27 + third] & TECHNICAL == 0


@njit(**OPTIONS)
def _end_of_words(data: Bytes, at: int, end: int, dots: bool) -> int:
    """Return the end of letters, digits and underscores, and of single dots between them."""
    start = at
    while at < end:
        if not is_word(data[at]):
            is_dot = dots and data[at] == 46 and at > start and at + 1 < end
            if not is_dot or not is_word(data[at + 1]):
                break
        at += 1
    return at


@njit(**OPTIONS)
def _is_call(data: Bytes, at: int, end: int) -> bool:
    """Check that a value ends with arguments after the "(" at a place: `a(b, c).d(`."""
    at += 1
    while at < end and (is_word(data[at]) or data[at] in (32, 44)):
        at += 1
    at += at < end and data[at] == 41
    while at < end and (is_word(data[at]) or data[at] == 46):
        at += 1
    at += at < end and data[at] == 40
    return at == end


@njit(**OPTIONS)
def _is_name_of_code(data: Bytes, start: int, end: int) -> bool:
    """Check for a value that begins with a name: `a.b`, `abc(...`, `a.b[...`, `abc;`, `abc);`."""
    at, letters = start, 0
    while at < end and (is_letter(data[at]) or data[at] in (46, 95)):
        letters += at - start < 3 and data[at] != 46
        at += 1
    sign, after = data[at] if at < end else 0, data[at + 1] if at + 1 < end else 0
    is_member = (sign == 58 and after == 58) or (sign == 45 and after == 62)  # :: ->
    if letters == 3 and (sign in (40, 91) or is_member):
        return True
    words, dotted = _end_of_words(data, start, end, False), _end_of_words(data, start, end, True)
    sign = data[dotted] if dotted < end else 0
    if dotted > words and (sign in (40, 91) or (at == end == dotted)):
        return True
    sign = data[words] if words < end else 0
    if words + 1 == end and sign in (40, 123):  # ({
        return True
    if sign == 40 and not 65 <= data[start] <= 90 and _is_call(data, words, end):
        return True
    last = words
    while last < end - 1 and data[last] in (44, 46, 59):  # ,.;
        last += 1
    if last == end - 1 and data[last] in (41, 59, 93):  # );]
        return True
    # A lone word, with a question mark or one sign after it.
    at = start
    while at < end and (is_letter(data[at]) or data[at] == 95):
        at += 1
    at += at < end and data[at] == 63
    at += at < end and data[at] in (41, 44, 59)
    return at == end


@njit(**OPTIONS)
def _starts_like_path(data: Bytes, start: int, end: int) -> bool:
    """Check for a path of Unix or Windows, or a URL."""
    byte, after = data[start], data[start + 1] if start + 1 < end else 0
    third = data[start + 2] if start + 2 < end else 0
    if byte == 47 or (byte in (46, 126) and after == 47):  # / ./ ~/
        return True
    if is_letter(byte) and after == 58 and third == 92:  # a drive
        return True
    if end - start < 7 or byte != 104 or after != 116 or third != 116 or data[start + 3] != 112:
        return False
    at = start + 4 + (data[start + 4] == 115)
    return at + 2 < end and data[at] == 58 and data[at + 1] == 47 and data[at + 2] == 47


@njit(**OPTIONS)
def _is_code(data: Bytes, start: int, end: int) -> bool:
    """Check for a call, path, address or name: `passwords._CODE`, of printable ASCII."""
    byte = data[start]
    if byte in (33, 60, 61, 62, 124) or (data[end - 2] == 40 and data[end - 1] == 41):  # !<=>| ()
        return True
    if _starts_like_path(data, start, end):
        return True
    if byte == 43:
        return _end_of_words(data, start + 1, end, False) == end
    return (is_letter(byte) or byte == 95) and _is_name_of_code(data, start, end)


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
    if size < 5 or (not is_strong and words < 4) or _is_code(data, start, end):
        return REFUSED
    verdict = judge_placeholder(data, start, end, things)
    if verdict == STRONG and not (is_strong and _is_no_name(data, start, end, things)):
        verdict = UNSURE
    return verdict
