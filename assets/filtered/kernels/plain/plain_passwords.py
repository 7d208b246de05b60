"""Decide on plain passwords; see the folder. Each function mirrors one of `pii.passwords`.

What is beside a value is read as far as the check reads it: the kernel decides where all of that is
printable ASCII, without the signs that lead the check to another form.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

import numpy as np
from numba import njit

from assets.filtered.kernels.plain.plain_bare import (
    MAX_VALUE,
    after_mark,
    end_of_bare,
    is_bare_start,
    may_be_tag,
)
from assets.filtered.kernels.plain.plain_bytes import (
    REFUSED,
    UNSURE,
    Bytes,
    Integers,
    is_among,
    is_blank,
    is_digit,
    is_letter,
    is_letter_of_cjk,
    packed,
    pair_at,
    triple_at,
    word_at,
)
from assets.filtered.kernels.plain.plain_named_after import named_after
from assets.filtered.kernels.plain.plain_names import WordTree
from assets.filtered.kernels.plain.plain_values import is_bare_secret, is_placeholder
from assets.text.kernels.compiling import ARRAY_KERNEL, KERNEL

_QUOTED_SIGHT = 140  # characters that the check reads from a quote on
_NOTHING = (REFUSED, 0)
_NOT_SURE = (UNSURE, 0)

_VERBS = packed(
    "is was are be remains became ist lautet war bleibt est sera es era foi to jest brzmi er on je "
    "bude este adalah olan reads equals"
)
_ADVERBS = packed("al no st ju ma je nu ah ag or")  # the first letters of those after a verb
# Of three bytes, right after a word for "password"; those of Korean have a blank after them.
_PARTICLES = packed("は 是 为 為 が 叫")
_KOREAN_PARTICLES = packed("는 은 이 가")
_COLON, _COMMA = packed("： 、").tolist()


@njit(**KERNEL)
def _may_be_name(data: Bytes, start: int, end: int) -> bool:
    """Check for a path, what has "passw" in it, and two capitals in camelCase."""
    capitals, is_camel = 0, True
    for at in range(start, end):
        is_capital = 65 <= data[at] <= 90
        is_camel &= is_letter(data[at]) and not (is_capital and 65 <= data[at - 1] <= 90)
        capitals += is_capital
        if data[at] == 47 or (data[at] | 32 == 119 and data[at - 1] | 32 == 115):
            return True
    return is_camel and capitals > 1


@njit(**KERNEL)
def _end_of_quoted(data: Bytes, start: int, stop: int) -> int:
    """Return where a value in quotes ends, 0 if its quotes are not closed, -1 if unsure."""
    at, last, is_plain = start + 1, start + MAX_VALUE + 2, True
    while at < min(last, stop):
        byte = data[at]
        if byte == data[start]:
            return at if is_plain and at > start + 1 else -1
        is_plain &= byte > 32 and byte != 92
        if byte == 92:  # a backslash: the next byte may be the quote
            at, last = at + 1, start + _QUOTED_SIGHT
            byte = data[at] if at < stop else 10
        if byte > 126:
            return -1
        if byte == 10:
            return 0
        at += 1
    return 0


@njit(**KERNEL)
def _quoted(data: Bytes, first: int, end: int, tree: WordTree) -> tuple[int, int]:
    """Decide on a value in quotes after a sign: `passwords._is_quoted_secret`."""
    if end - first < 4 or data[first] in (40, 60, 91, 123):  # (<[{
        return _NOTHING
    if _may_be_name(data, first, end):
        return _NOT_SURE
    is_label = data[first] in (43, 44) or data[end - 1] in (43, 44, 58)
    if is_label:
        return _NOTHING
    return _NOTHING if is_placeholder(data, first, end, tree) else (end, first)


@njit(**KERNEL)
def _may_be_config(data: Bytes, word: tuple[int, int], place: int) -> bool:
    """Check for NAME=value or -name=value, where any value may count."""
    start = word[0]
    capitals = int(data[start] > 127)
    for byte in data[start : start + 4]:
        capitals += 65 <= byte <= 90
    is_option = start > word[1] and data[start - 1] in (38, 45, 59)  # &-;
    return data[place - 1] == 61 and (is_option or capitals > 0)


@njit(**KERNEL)
def _are_within(data: Bytes, start: int, end: int, span: tuple[int, int]) -> bool:
    """Check that all bytes are from the first to the last of a span."""
    at = start
    while at < end and span[0] <= data[at] <= span[1]:
        at += 1
    return at == end


@njit(**KERNEL)
def _assigned(
    data: Bytes, word: tuple[int, int], stop: int, place: int, tree: WordTree
) -> tuple[int, int]:
    """Decide on the value at a place after "=" or ":", for a word: `passwords._assigned`."""
    place = after_mark(data, place, stop)
    is_quote = place < stop and data[place] in (34, 39)
    end = _end_of_quoted(data, place, stop) if is_quote else 0
    if end > 0:
        return _quoted(data, place + 1, end, tree)
    if end < 0 or not (is_quote or is_bare_start(data, place, stop)):
        return _NOT_SURE
    if place < stop and data[place] in (40, 60, 91, 123):  # (<[{
        return _NOTHING
    end = end_of_bare(data, place, stop)
    if 0 <= end < place + 4:
        return _NOTHING
    if end < 0:
        return _NOT_SURE
    is_config = _may_be_config(data, word, place)
    if end - place <= 32 and _are_within(data, place, end, (48, 57)):  # 09
        after = data[end] if end < stop else 10
        if after in (10, 34, 38, 39, 41, 44, 46, 59, 60, 124):
            return (end, place)
        return _NOT_SURE if is_config else _NOTHING
    if is_bare_secret(data, place, end, tree):
        return (end, place)
    is_line = is_config or _are_within(data, place, end, (97, 122))  # az
    return _NOT_SURE if is_line and not is_placeholder(data, place, end, tree) else _NOTHING


@njit(**KERNEL)
def _may_tell(data: Bytes, place: int, stop: int) -> bool:
    """Check for a sign or verb after words from a place on, that may lead to a value."""
    for at in range(place, min(stop, place + 50)):
        byte, after = data[at], data[at + 1] if at + 1 < stop else 0
        if byte in (10, 33, 46, 59, 63):  # line end !.;?
            return False
        if byte == 62 or (byte == 60 and 65 <= after <= 90):  # no tag
            return False
        if byte > 126 or byte in (34, 45, 58, 60, 61):  # "-:<=
            return True
        if byte == 32 and is_letter(after) and is_among(word_at(data, at + 1, stop), _VERBS):
            return True
    return False


@njit(**KERNEL)
def _place_of_told(data: Bytes, place: int, stop: int) -> int:
    """Return where the value is after "password ": there, or after "is "; -1 if unsure."""
    word, after = word_at(data, place, stop), data[place + 1] if place + 1 < stop else 0
    if word != _VERBS[0] or place + 2 >= stop or data[place + 2] != 32:
        is_value = data[place] == 118 and after == 97
        is_told = is_among(word, _VERBS) or _may_tell(data, place - 1, stop)
        return -1 if is_value or is_told else place
    place += 3
    if place < stop and (data[place] in (32, 58) or data[place] > 126):
        return -1
    is_adverb = place + 1 < stop and is_among(pair_at(data, place), _ADVERBS)
    return -1 if is_adverb else place


@njit(**KERNEL)
def _told_value(
    data: Bytes, place: int, stop: int, tree: WordTree, is_adjacent: bool
) -> tuple[int, int]:
    """Decide on the value at a place in prose; is_adjacent: it is right after the word."""
    if not is_bare_start(data, place, stop):
        return _NOT_SURE
    end = end_of_bare(data, place, stop)
    if end < 0:
        return _NOT_SURE
    letters, digits, is_odd = 0, 0, False
    for byte in data[place:end]:
        letters, digits = letters + is_letter(byte), digits + is_digit(byte)
        is_odd |= byte in (40, 41, 44, 61, 91, 93, 123, 125)  # (),=[]{}
    if letters == end - place:
        return _NOTHING
    if digits == end - place or (is_adjacent and (is_odd or not digits)):
        return _NOT_SURE
    return (end, place) if is_bare_secret(data, place, end, tree) else _NOTHING


@njit(**KERNEL)
def _told(data: Bytes, start: int, stop: int, tree: WordTree) -> tuple[int, int]:
    """Decide on the value after "password is ", or right after "password "."""
    byte = data[start] if start < stop else 0
    if not (is_letter(byte) or is_digit(byte)):
        is_placeholder = byte == 60 and start + 1 < stop and 65 <= data[start + 1] <= 90
        return _NOTHING if is_placeholder else _NOT_SURE
    place = _place_of_told(data, start, stop)
    return _told_value(data, place, stop, tree, place == start) if place >= 0 else _NOT_SURE


@njit(**KERNEL)
def _after_letter(data: Bytes, at: int, stop: int, tree: WordTree) -> tuple[int, int]:
    """Decide on a word with a letter of three bytes after it: a particle may lead to a value."""
    if data[at] & 0xF0 != 0xE0 or at + 2 >= stop:
        return _NOT_SURE
    sign, at = triple_at(data, at), at + 3
    if is_among(sign, _KOREAN_PARTICLES):
        at += at < stop and data[at] == 58
        is_told = at < stop and data[at] == 32
        return _told_value(data, at + 1, stop, tree, False) if is_told else _NOT_SURE
    if not is_among(sign, _PARTICLES):
        return _NOTHING if is_letter_of_cjk(sign) else _NOT_SURE
    if at + 2 < stop and triple_at(data, at) == _COLON:
        at += 3
    if at + 2 < stop and triple_at(data, at) == _COMMA:
        at += 3
    elif at < stop and data[at] == 32:
        at += 1
    return _told_value(data, at, stop, tree, False)


@njit(**KERNEL)
def _after_line(data: Bytes, start: int, stop: int) -> tuple[int, int]:
    """Decide on a word at the end of a line: only a sign on the next one leads to a value."""
    at = start
    while at < min(stop, start + 2) and is_blank(data[at]):
        at += 1
    byte = data[at] if at < stop else 32
    is_plain = is_blank(byte) or (32 < byte < 127 and byte not in (45, 58, 61))  # -:=
    return _NOTHING if is_plain else _NOT_SURE


@njit(**KERNEL)
def _value_after(
    data: Bytes, word: tuple[int, int, int], stop: int, tree: WordTree
) -> tuple[int, int]:
    """Decide on the value after a word; word: its first byte, that of its text, its end."""
    start, first, at = word
    if at == stop:
        return _NOTHING
    sign = data[at]
    is_wide = sign == 0xEF and at + 2 < stop and triple_at(data, at) == _COLON
    if sign in (58, 61) or is_wide:
        at += 3 if is_wide else 1
        byte, after = data[at] if at < stop else 0, data[at + 1] if at + 1 < stop else 0
        if sign == 61 and byte in (61, 126):  # "==", "=~"
            return _NOTHING
        if sign == 61 and byte == 62 and after not in (61, 62, 126):  # "=>"
            at, byte = at + 1, after
            after = data[at + 1] if at + 1 < stop else 0
        # ":=" and others like it, marks of emphasis, or a tag.
        if byte in (61, 62, 126) or (byte in (42, 95) and after == byte):
            return _NOT_SURE
        if at < stop and may_be_tag(data, at, stop):
            return _NOT_SURE
        blanks = at
        while at < stop and at - blanks < 4 and data[at] in (9, 32):
            at += 1
        return _assigned(data, (start, first), stop, at, tree)
    if sign in (10, 13):
        return _after_line(data, at + 1, stop)
    return _told(data, at + 1, stop, tree) if sign == 32 else _after_letter(data, at, stop, tree)


@njit(**KERNEL)
def _goes_on(data: Bytes, start: int, stop: int) -> bool:
    """Check for digits after a word that make it no name of a password: `passwords._TAIL`."""
    at = start
    while at < stop and is_digit(data[at]):
        at += 1
    return at - start > 3 or (at > start and at < stop and is_letter(data[at]))


@njit(**ARRAY_KERNEL)
def decide_password(data: Bytes, offsets: Integers, places: Integers, tree: WordTree) -> Integers:
    """Decide on words for a password; the place of one that is accepted is that of the value.

    tree: see `plain_names`.
    """
    ends = np.zeros(len(places), np.int64)
    for i in range(len(places)):
        row, start, end = places[i]
        text, stop = offsets[row], offsets[row + 1]
        while end > start and data[end - 1] in (32, 34, 39, 42, 58, 61, 96):  # "=: \"'`*"
            end -= 1
        if end < start + 3 or data[end - 3] == 32:  # "identified by"
            continue
        if end < stop and data[end] == 62 and start > text and data[start - 1] == 60:
            ends[i] = REFUSED  # a placeholder of ours, in capitals
            for byte in data[start:end]:
                ends[i] = ends[i] if 65 <= byte <= 90 else UNSURE
            continue
        if _goes_on(data, end, stop):
            ends[i] = REFUSED
            continue
        value = _value_after(data, (start, text, end), stop, tree)
        if value[0] == REFUSED:
            value = named_after(data, text, start, tree)
        ends[i] = value[0]
        if value[0] > 0:
            places[i, 1] = value[1]
    return ends
