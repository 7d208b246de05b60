"""Tell a secret from a word, a placeholder and code: see `pii.secret_words`."""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

import numpy as np
from numba import njit

from assets.filtered.kernels.plain.plain_bytes import (
    Bytes,
    is_digit,
    is_letter,
    is_word,
)
from assets.filtered.kernels.plain.plain_names import (
    WordTree,
    is_name_of_secret,
    is_other_placeholder,
    is_technical,
)
from assets.text.kernels.compiling import KERNEL

_MAX_STRONG = 128
_MARKS = np.zeros(256, np.uint8)
_MARKS[list(b"!#$%&*+=?@^|~")] = 1
_TEMPLATE_SIGNS = np.zeros(256, np.uint8)  # 1 for those that `_is_template_at` begins with
_TEMPLATE_SIGNS[list(b"#$%<]{")] = 1


@njit(**KERNEL)
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


@njit(**KERNEL)
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


@njit(**KERNEL)
def is_placeholder(data: Bytes, start: int, end: int, tree: WordTree) -> bool:
    """Check a value of printable ASCII: `secret_words.is_placeholder`."""
    for at in range(start, end):
        if _TEMPLATE_SIGNS[data[at]] and _is_template_at(data, at, end):
            return True
    if start == end:
        return False
    if _is_variable(data, start, end) or is_other_placeholder(data, start, end, tree):
        return True
    return is_name_of_secret(data, start, end, tree)


@njit(**KERNEL)
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


@njit(**KERNEL)
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


@njit(**KERNEL)
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


@njit(**KERNEL)
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


@njit(**KERNEL)
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


@njit(**KERNEL)
def _is_strong(data: Bytes, start: int, end: int, tree: WordTree) -> bool:
    """Check that a value is no word or name: `secret_words.is_strong`."""
    if not 5 <= end - start <= _MAX_STRONG:
        return False
    letters, digits, marks, inner, words, run, has_sign = 0, 0, 0, 0, 0, 0, False
    is_strong = False
    for at in range(start, end):
        byte = data[at]
        letters, digits = letters + is_letter(byte), digits + is_digit(byte)
        is_mark = _MARKS[byte] > 0
        marks += is_mark
        inner += is_mark and start < at < end - 1
        is_strong = letters > 0 and (digits > 0 or inner > 0 or marks > 1)
        if is_strong:
            break  # whatever follows
        run = run + 1 if is_letter(byte) or is_digit(byte) else 0
        words += run == 2
        has_sign |= byte in (44, 46, 47, 58, 92)  # ,./:\\
    is_strong |= words >= 4 and not has_sign
    return is_strong and not is_technical(data, start, end, tree)


@njit(**KERNEL)
def is_bare_secret(data: Bytes, start: int, end: int, tree: WordTree) -> bool:
    """Check that a bare value of printable ASCII is strong, and neither placeholder nor code."""
    if not _is_strong(data, start, end, tree) or _is_code(data, start, end):
        return False
    return not is_placeholder(data, start, end, tree)
