"""Decide on plain passwords; see the folder. Each function mirrors one of `pii.passwords`.

What is beside a value is read as far as the check reads it: the kernel decides where all of that is
printable ASCII, without the signs that lead the check to another form.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

import numpy as np
from numba import njit

from assets.filtered.kernels.plain.plain_bytes import (
    OPTIONS,
    REFUSED,
    UNSURE,
    Bytes,
    Integers,
    is_among,
    is_digit,
    is_letter,
    is_word,
    packed,
    pair_at,
)
from assets.filtered.kernels.plain.plain_values import STRONG, judge_placeholder, judge_word

_MAX_VALUE = 128  # characters that the check reads
_BEFORE = 70  # characters that the check reads before a word, for a value "as the password"
_MAX_BETWEEN = 18  # bytes between " as " and the word
_NOTHING = (REFUSED, 0, 0)
_NOT_SURE = (UNSURE, 0, 0)


_VERBS = packed(
    "is was are be remains became ist lautet war bleibt est sera es era foi to jest brzmi er on je "
    "bude este adalah olan reads equals"
)
_ADVERBS = packed("al no st ju ma je nu ah ag or")  # the first letters of those after a verb
_ARTICLES = packed("the my your a our")


@njit(**OPTIONS)
def _is_blank(byte: int) -> bool:
    return byte in (9, 10, 13, 32)


@njit(**OPTIONS)
def _word_at(data: Bytes, start: int, stop: int) -> int:
    """Return the bytes of up to 7 letters as a number, 0 for more."""
    word, at = np.int64(0), start
    while at < stop and is_letter(data[at]) and at - start < 8:
        word, at = word * 256 + np.int64(data[at]), at + 1
    return word if at - start < 8 else 0


@njit(**OPTIONS)
def _is_field(data: Bytes, at: int, end: int) -> bool:
    """Check for the next field or an entity after a value: &name= &amp; ,name: ;name="""
    last = at + 1
    while last < end and (is_letter(data[last]) or data[last] == 95):
        last += 1
    size, sign = last - at - 1, data[last] if last < end else 0
    if data[at] != 38:
        return 1 <= size <= 20 and sign in (58, 61)
    is_entity = size == 3 and data[at + 1] == 97 and data[at + 2] == 109 and data[at + 3] == 112
    return (size > 0 and sign == 61) or (is_entity and sign == 59)


@njit(**OPTIONS)
def _ends_at(data: Bytes, at: int, end: int) -> bool:
    """Check for a sign that a bare value in data[:end] ends before: `passwords._END`."""
    byte, after = data[at], data[at + 1] if at + 1 < end else 0
    if byte in (96, 124) or (byte == 60 and after == 47):  # ` | </
        return True
    if byte == 92:
        return after in (34, 39, 110, 114)
    if byte in (38, 44, 59) and _is_field(data, at, end):
        return True
    if byte in (34, 39, 41, 44, 59, 62, 93, 125):
        while at < end and data[at] in (34, 39, 41, 44, 59, 62, 93, 125):  # "'),;>]}
            at += 1
        return at == end
    if byte == 42 and after == 42:
        at += 2
        while at < end and not is_word(data[at]):
            at += 1
        return at == end
    return False


@njit(**OPTIONS)
def _end_of_bare(data: Bytes, start: int, stop: int) -> int:
    """Return the end of a value without quotes: `passwords._bare`; -1 if not in ASCII."""
    end = start
    while end < stop and end - start < _MAX_VALUE and 32 < data[end] < 127:
        end += 1
    if end - start < _MAX_VALUE and end < stop and not _is_blank(data[end]):
        return -1
    for at in range(start, end):
        if not is_word(data[at]) and _ends_at(data, at, end):
            end = at if at - start >= 3 else end
            break
    while end > start and data[end - 1] in (34, 39, 41, 44, 46, 58, 59, 62, 93, 125):
        end -= 1
    return end


_PREFIXES = tuple(b"brufLN")  # of a string in quotes


@njit(**OPTIONS)
def _after_mark(data: Bytes, start: int, stop: int) -> int:
    """Return the place after a lone mark of emphasis: the first part of `passwords._OPEN`."""
    byte, after = data[start] if start < stop else 0, data[start + 1] if start + 1 < stop else 0
    return start + (byte in (42, 96) and after not in (42, 60, 95, 96))  # *` and no *<_`


@njit(**OPTIONS)
def _is_lone_line(data: Bytes, start: int, stop: int) -> bool:
    """Check that no underscore follows soon, which could close an emphasis."""
    for at in range(start, min(stop, start + 64)):
        if _is_blank(data[at]):
            return True
        if data[at] == 95 or data[at] > 126:
            return False
    return True


@njit(**OPTIONS)
def _is_bare_start(data: Bytes, start: int, stop: int) -> bool:
    """Check that nothing opens at a value: no quote, no emphasis, no tag, no prefix of a string."""
    if start == stop:
        return True
    byte, after = data[start], data[start + 1] if start + 1 < stop else 0
    if byte > 126 or byte in (34, 39, 42, 96):  # "'*`
        return False
    if byte == 95:
        return _is_lone_line(data, start + 1, stop)
    if byte in (64, 92) and (after in (34, 39, 92, 96) or after > 126):  # @" \'
        return False
    if byte == 60:
        return not (97 <= after <= 122 or after == 47)
    third = data[start + 2] if start + 2 < stop else 0
    is_prefix = byte in _PREFIXES and (
        after in (34, 39) or (after in _PREFIXES and third in (34, 39))
    )
    return not is_prefix


@njit(**OPTIONS)
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


@njit(**OPTIONS)
def _quoted(data: Bytes, start: int, stop: int, things: Bytes) -> tuple[int, int, int]:
    """Decide on a value in quotes after a sign: `passwords._is_quoted_secret`."""
    end = start + 1
    while end < stop and data[end] != data[start]:
        if not 32 < data[end] < 127 or data[end] == 92 or end - start > _MAX_VALUE:
            return _NOT_SURE
        end += 1
    first = start + 1
    if end in (stop, first):
        return _NOT_SURE
    if end - first < 4 or data[first] in (40, 60, 91, 123):  # (<[{
        return _NOTHING
    if _may_be_name(data, first, end):
        return _NOT_SURE
    is_label = data[first] in (43, 44) or data[end - 1] in (43, 44, 58)
    if is_label:
        return _NOTHING
    return (judge_placeholder(data, first, end, things), first, end)


@njit(**OPTIONS)
def _may_be_config(data: Bytes, word: tuple[int, int], place: int) -> bool:
    """Check for NAME=value or -name=value, where any value may count."""
    start = word[0]
    capitals = int(data[start] > 127)
    for byte in data[start : start + 4]:
        capitals += 65 <= byte <= 90
    is_option = start > word[1] and data[start - 1] in (38, 45, 59)  # &-;
    return data[place - 1] == 61 and (is_option or capitals > 0)


@njit(**OPTIONS)
def _assigned(
    data: Bytes, word: tuple[int, int], stop: int, place: int, things: Bytes
) -> tuple[int, int, int]:
    """Decide on the value at a place after "=" or ":", for a word: `passwords._assigned`."""
    place = _after_mark(data, place, stop)
    if place < stop and data[place] in (34, 39):
        return _quoted(data, place, stop, things)
    if not _is_bare_start(data, place, stop):
        return _NOT_SURE
    if place < stop and data[place] in (40, 60, 91, 123):  # (<[{
        return _NOTHING
    end = _end_of_bare(data, place, stop)
    if 0 <= end < place + 4:
        return _NOTHING
    if end < 0:
        return _NOT_SURE
    small, digits = 0, 0
    for byte in data[place:end]:
        small, digits = small + (97 <= byte <= 122), digits + is_digit(byte)
    is_config = _may_be_config(data, word, place)
    if digits == end - place and digits <= 32:
        after = data[end] if end < stop else 10
        if after in (10, 34, 38, 39, 41, 44, 46, 59, 60, 124):
            return (STRONG, place, end)
        return _NOT_SURE if is_config else _NOTHING
    verdict = judge_word(data, place, end, things)
    if verdict == REFUSED and (is_config or small == end - place):
        return _NOT_SURE
    return (verdict, place, end)


@njit(**OPTIONS)
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
        if byte == 32 and is_letter(after) and is_among(_word_at(data, at + 1, stop), _VERBS):
            return True
    return False


@njit(**OPTIONS)
def _place_of_told(data: Bytes, place: int, stop: int) -> int:
    """Return where the value is after "password ": there, or after "is "; -1 if unsure."""
    word, after = _word_at(data, place, stop), data[place + 1] if place + 1 < stop else 0
    if word != _VERBS[0] or place + 2 >= stop or data[place + 2] != 32:
        is_value = data[place] == 118 and after == 97
        is_told = is_among(word, _VERBS) or _may_tell(data, place - 1, stop)
        return -1 if is_value or is_told else place
    place += 3
    if place < stop and (data[place] in (32, 58) or data[place] > 126):
        return -1
    is_adverb = place + 1 < stop and is_among(pair_at(data, place), _ADVERBS)
    return -1 if is_adverb else place


@njit(**OPTIONS)
def _told(data: Bytes, start: int, stop: int, things: Bytes) -> tuple[int, int, int]:
    """Decide on the value after "password is ", or right after "password "."""
    byte = data[start] if start < stop else 0
    if not (is_letter(byte) or is_digit(byte)):
        is_placeholder = byte == 60 and start + 1 < stop and 65 <= data[start + 1] <= 90
        return _NOTHING if is_placeholder else _NOT_SURE
    place = _place_of_told(data, start, stop)
    if place < 0 or not _is_bare_start(data, place, stop):
        return _NOT_SURE
    end = _end_of_bare(data, place, stop)
    if end < 0:
        return _NOT_SURE
    letters, digits, is_odd = 0, 0, False
    for byte in data[place:end]:
        letters, digits = letters + is_letter(byte), digits + is_digit(byte)
        is_odd |= byte in (40, 41, 44, 61, 91, 93, 123, 125)  # (),=[]{}
    if letters == end - place:
        return _NOTHING
    if digits == end - place or (place == start and (is_odd or not digits)):
        return _NOT_SURE
    return (judge_word(data, place, end, things), place, end)


@njit(**OPTIONS)
def _after_line(data: Bytes, start: int, stop: int) -> tuple[int, int, int]:
    """Decide on a word at the end of a line: only a sign on the next one leads to a value."""
    at = start
    while at < min(stop, start + 2) and _is_blank(data[at]):
        at += 1
    byte = data[at] if at < stop else 32
    is_plain = _is_blank(byte) or (32 < byte < 127 and byte not in (45, 58, 61))  # -:=
    return _NOTHING if is_plain else _NOT_SURE


@njit(**OPTIONS)
def _value_after(
    data: Bytes, word: tuple[int, int, int], stop: int, things: Bytes
) -> tuple[int, int, int]:
    """Decide on the value after a word; word: its first byte, that of its text, its end."""
    start, first, at = word
    if at == stop:
        return _NOTHING
    sign, after = data[at], data[at + 1] if at + 1 < stop else 10
    is_wide = sign == 0xEF and after == 0xBC and at + 2 < stop and data[at + 2] == 0x9A  # ：
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
        if byte == 60 and (97 <= after <= 122 or after == 47):
            return _NOT_SURE
        blanks = at
        while at < stop and at - blanks < 4 and data[at] in (9, 32):
            at += 1
        return _assigned(data, (start, first), stop, at, things)
    if sign in (10, 13):
        return _after_line(data, at + 1, stop)
    return _told(data, at + 1, stop, things) if sign == 32 else _NOT_SURE


@njit(**OPTIONS)
def _follows_as(data: Bytes, first: int, start: int) -> bool:
    """Check for " as " in the 70 characters before, after which a value may be the password."""
    size = _BEFORE
    for byte in data[max(first, start - _BEFORE) : start]:
        size = 4 * _BEFORE if byte > 127 else size
    for at in range(max(first, start - size), start - 3):
        if data[at] == 32 and data[at + 1] == 97 and data[at + 2] == 115 and data[at + 3] == 32:
            return True
    return False


@njit(**OPTIONS)
def _is_as_the(data: Bytes, start: int, stop: int) -> bool:
    """Check that at most an article and a word, with a blank after each, are between " as " and."""
    at, words = start, 0
    while at < stop:
        first = at
        while at < stop and is_word(data[at]):
            at += 1
        if at == stop or data[at] != 32 or not 1 <= at - first <= 12 or words == 2:
            return False
        if words == 1 and not is_among(_word_at(data, start, stop), _ARTICLES):
            return False
        words, at = words + 1, at + 1
    return True


@njit(**OPTIONS)
def _end_before_as(data: Bytes, first: int, start: int) -> int:
    """Return where a value before " as the " ends, -1 if there is none, or -2 if unsure."""
    most, end = 0, -1
    for byte in data[max(first, start - _BEFORE) : start]:
        most |= byte
    if most > 127:
        return -2
    for at in range(max(first, start - _MAX_BETWEEN - 4), start - 3):
        if data[at] == 32 and data[at + 1] == 97 and data[at + 2] == 115 and data[at + 3] == 32:
            if end >= 0:
                return -2
            end = at
    return end if end >= 0 and _is_as_the(data, end + 4, start) else -1


@njit(**OPTIONS)
def _named_after(data: Bytes, first: int, start: int, things: Bytes) -> tuple[int, int, int]:
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
    if not is_plain or (at > first and not _is_blank(data[at - 1])):
        return _NOT_SURE
    if end - at < 5 or not digits:
        return _NOTHING
    return (judge_word(data, at, end, things), at, end)


@njit(**OPTIONS)
def decide_password(data: Bytes, offsets: Integers, places: Integers, things: Bytes) -> Integers:
    """Decide on words for a password; the place of one that is accepted is that of the value.

    things: uint8 [27**3], 1 for three letters, as digits to base 27, that names of secrets have.
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
        value = _value_after(data, (start, text, end), stop, things)
        if value[0] == REFUSED:
            value = _named_after(data, text, start, things)
        ends[i] = value[2] if value[0] == STRONG else value[0]
        if value[0] == STRONG:
            places[i, 1] = value[1]
    return ends
