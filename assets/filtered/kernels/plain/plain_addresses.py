"""Decide on plain e-mail addresses and IP addresses; see the folder."""
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
    is_cjk,
    is_digit,
    is_gap,
    is_letter,
    is_mark_of_cjk,
    is_printable,
    is_word,
    packed,
    pair_at,
    triple_at,
)

# The last two letters of names of fields with an address: "mail", "to", "login".
_ENDS_OF_KEYS = packed("il to om cc er me in id ct or ly ss nt sr ho")
_MAX_LABEL, _MAX_LOCAL, _MAX_ADDRESS = 63, 64, 250
_CLOSING = tuple(b"}'`*|_~/$")
_MAX_RUN = 200  # characters that the check reads before the "@"
_MAX_USER = 80  # characters that the check reads before an address, for the start of a URL
_BEFORE = 16  # bytes that the check of an IP address reads for words such as "version"


@njit(**OPTIONS)
def _is_part_of_more(data: Bytes, text: tuple[int, int], start: int, end: int) -> bool:
    """Check for a letter, digit or dot before or after, which no address has beside it."""
    if start > text[0] and (is_word(data[start - 1]) or data[start - 1] == 46):
        return True
    if end == text[1]:
        return False
    is_dotted = data[end] == 46 and end + 1 < text[1] and is_digit(data[end + 1])
    return is_dotted or is_word(data[end]) or data[end] == 37


@njit(**OPTIONS)
def _is_no_version(data: Bytes, text: tuple[int, int], start: int, end: int) -> bool:
    """Check that nothing beside an address may make it a version, as `_VERSION_BEFORE` does."""
    at = start - 1
    if (end < text[1] and data[end] == 45) or (at >= text[0] and data[at] in (45, 47)):  # -/
        return False
    at -= at >= text[0] and data[at] in (34, 39)
    at -= at >= text[0] and data[at] in (9, 10, 11, 12, 13, 32)
    at -= at >= text[0] and data[at] in (46, 58)  # a sign and a quote may follow a word
    at -= at >= text[0] and data[at] in (34, 39)
    if at < text[0]:
        return True
    # The last letters of words for versions, and "rfc 12".
    byte = data[at] | 32 if is_letter(data[at]) else data[at]
    if is_digit(byte):
        return _follows_numbers(data, text[0], at)
    # Or a paragraph sign, whose last byte those of other letters have, too.
    return byte not in (61, 94, 99, 100, 101, 110, 114, 115, 118, 126, 0xA7)  # =^cdenrsv~


@njit(**OPTIONS)
def _follows_numbers(data: Bytes, low: int, at: int) -> bool:
    """Check for no letter in the bytes before that the check reads."""
    has_letter = False
    for i in range(max(low, at - _BEFORE), at):
        has_letter |= data[i] > 127 or is_letter(data[i])
    return not has_letter


@njit(**OPTIONS)
def _is_named_ip(data: Bytes, low: int, start: int) -> bool:
    """Check for "ip" as a word, a blank or sign, and the address."""
    at = start - 1
    at -= at >= low and data[at] == 32
    at -= at >= low and data[at] in (58, 61)
    if at <= low or (data[at - 1] | 32) != 105 or (data[at] | 32) != 112:  # ip
        return False
    return at - 1 == low or (data[at - 2] < 128 and not is_word(data[at - 2]))


@njit(**OPTIONS)
def _is_named(data: Bytes, text: tuple[int, int], start: int, end: int) -> bool:
    """Check for what tells an address from the number of a section: a word, a port, a prefix."""
    if end < text[1] and data[end] in (47, 58):
        return True
    at = start - 1
    while at >= text[0] and data[at] != 10 and (is_gap(data[at]) or data[at] == 46):
        at -= 1
    if at < text[0] or data[at] == 10:
        return False
    # The digit of another number, or that of "ipv4".
    is_number = is_digit(data[at]) and (
        at == text[0] or is_digit(data[at - 1]) or is_gap(data[at - 1]) or data[at - 1] == 46
    )
    return not is_number


@njit(**OPTIONS)
def _is_resolver(data: Bytes, start: int, end: int) -> bool:
    """Check for an address that everybody knows: 1.1.1.1, 8.8.8.8, 9.9.9.9, 8.8.4.4, 1.0.0.1."""
    if end - start != 7:
        return False
    one, two, three, four = data[start], data[start + 2], data[start + 4], data[start + 6]
    is_same = one == two == three == four and one in (49, 56, 57)
    is_eights = one == 56 and two == 56 and three == 52 and four == 52
    return is_same or is_eights or (one == 49 and two == 48 and three == 48 and four == 49)


@njit(**OPTIONS)
def decide_ip4(data: Bytes, offsets: Integers, places: Integers, public: Bytes) -> Integers:
    """Decide on IPv4 addresses; public: uint8 [65536], 1 or 0 by the first two bytes, else 2."""
    ends = np.zeros(len(places), np.int64)
    for i in range(len(places)):
        row, start, end = places[i]
        part, digits, number, count, is_small = 0, 0, 0, 0, True
        for at in range(start, end + 1):
            if at < end and is_digit(data[at]):
                # More than a byte, or a zero that leads.
                longer = part * 10 + np.int64(data[at]) - 48
                is_wrong = digits > 0 and (part == 0 or longer > 255)
                part = 256 if is_wrong or part == 256 else longer
                digits += 1
                continue
            if part == 256:
                number = -1
                break
            number, count = (number * 256 + part, count + 1) if count < 2 else (number, count + 1)
            is_small &= part < 50
            part, digits = 0, 0
        verdict = public[number] if number >= 0 else 0
        text = offsets[row], offsets[row + 1]
        is_likely = not is_small or _is_resolver(data, start, end)
        is_section = not is_likely and not _is_named(data, text, start, end)
        if verdict == 0 or is_section or _is_part_of_more(data, text, start, end):
            ends[i] = REFUSED
        elif verdict == 1 and (is_likely or _is_named_ip(data, text[0], start)):
            ends[i] = end if _is_no_version(data, text, start, end) else UNSURE
    return ends


@njit(**OPTIONS)
def _is_ip6(data: Bytes, start: int, end: int) -> bool:
    """Check for eight groups of one to four hex digits, or fewer around two colons in a row."""
    groups, size, gaps = 0, 0, 0
    for at in range(start, end + 1):
        if at < end and data[at] != 58:
            size += 1
            if size > 4:
                return False
            continue
        if size == 0 and at < end:  # the second of two colons; a third has another gap
            gaps += 1
        elif size == 0 and data[end - 2] != 58:
            return False
        groups, size = groups + (size > 0), 0
    return groups == 8 if gaps == 0 else gaps == 1 and groups < 8


@njit(**OPTIONS)
def decide_ip6(data: Bytes, offsets: Integers, places: Integers, public: Bytes) -> Integers:
    """Decide on IPv6 addresses; public: uint8 [65536], 1 or 0 by the first two bytes, else 2."""
    ends = np.full(len(places), REFUSED, np.int64)
    for i in range(len(places)):
        row, start, end = places[i]
        while data[end - 1] == 58 and data[end - 2] != 58:
            end -= 1
        before = data[start - 1] if start > offsets[row] else 32
        after = data[end] if end < offsets[row + 1] else 32
        if is_word(before) or before in (46, 58) or is_word(after) or after == 58:
            continue
        if not _is_ip6(data, start, end):
            continue
        head = np.int64(0)
        for byte in data[start : start + 4]:
            value = byte - 48 if is_digit(byte) else (byte | 32) - 87
            head = head * 16 + value
        verdict = public[head]
        ends[i] = end if verdict == 1 else UNSURE if verdict == 2 else REFUSED
    return ends


@njit(**OPTIONS)
def _may_be_key(data: Bytes, start: int, sign: int) -> bool:
    """Check that what is before "=" may name an address: `email_addresses._KEY`."""
    if sign - start < 2:
        return False
    first, last = data[sign - 2], data[sign - 1]
    is_constant = not (97 <= first <= 122 or 97 <= last <= 122)
    return is_constant or is_among(pair_at(data, sign - 2), _ENDS_OF_KEYS)


@njit(**OPTIONS)
def _is_wide(data: Bytes, at: int, stop: int, wide: Bytes) -> bool:
    """Check for a letter of two bytes; wide: see `decide_email`."""
    if not 0xC3 <= data[at] <= 0xD4 or at + 1 >= stop:
        return False
    return wide[np.int64(data[at] & 31) * 64 + np.int64(data[at + 1] & 63)] > 0


@njit(**OPTIONS)
def _end_of_local(data: Bytes, start: int, stop: int, wide: Bytes) -> int:
    """Return the place of the "@" after a plain local part, or -1."""
    at = start
    if at == stop:
        return -1
    if not (is_letter(data[at]) or is_digit(data[at]) or _is_wide(data, at, stop, wide)):
        return -1
    while at < stop and data[at] != 64:
        byte = data[at]
        if byte > 127 and _is_wide(data, at, stop, wide):
            at += 2
            continue
        is_sign = byte in (43, 45, 46, 61, 95)  # +-.=_
        if not (is_letter(byte) or is_digit(byte) or is_sign):
            return -1
        if (byte == 46 and data[at + 1] in (46, 64)) or (
            byte == 61 and _may_be_key(data, start, at)
        ):
            return -1
        at += 1
    is_git = at - start == 3 and data[start] == 103 and data[start + 1] == 105
    return at if at < stop and at - start <= _MAX_LOCAL and not is_git else -1


@njit(**OPTIONS)
def _first_of_local(data: Bytes, start: int, end: int, closing: int) -> int:
    """Return where a local part begins after what is cut off: `email_addresses._first_of_local`."""
    at, opening = start, closing
    if closing in (123, 125):  # { closes nothing, } closes {
        opening = 123 if closing == 125 else 0
    if opening in (36, 39, 42, 47, 96, 123, 124, 126):  # $'*/`{|~
        while data[at] == opening:
            at += 1
        if at == start:
            for i in range(start, end):
                at = i + 1 if data[i] == opening else at
    while at < end and data[at] in (39, 42, 43, 45, 46, 61, 96, 124):  # '*+-.=`|
        at += 1
    return at


@njit(**OPTIONS)
def _start_of_latin(data: Bytes, start: int, end: int, wide: Bytes) -> int:
    """Return where a local part begins after letters of CJK: `email_addresses._LATIN_END`.

    The start if there are none, or -1 if unsure.
    """
    at = end
    while at > start and end - at < _MAX_RUN:
        if data[at - 1] < 128:
            at -= 1
        elif at - 2 >= start and _is_wide(data, at - 2, end, wide):
            at -= 2
        else:
            return at if at - 3 >= start and is_cjk(triple_at(data, at - 3)) else -1
    return start


@njit(**OPTIONS)
def _may_go_on(data: Bytes, start: int, stop: int) -> bool:
    """Check that a label with letters of three bytes from a place on may be part of a domain."""
    at = start
    for _ in range(_MAX_LABEL + 1):
        byte = data[at] if at < stop else 32
        if byte == 46:
            return at + 1 < stop and not is_gap(data[at + 1])
        if byte > 127 and (byte & 0xF0 != 0xE0 or at + 2 >= stop):
            return True
        is_part = is_word(byte) or byte == 45
        if byte < 128 and not is_part:
            return False
        if byte > 127 and is_mark_of_cjk(triple_at(data, at)):
            return False
        at += 1 if is_part else 3
    return False


@njit(**OPTIONS)
def _read_domain(data: Bytes, start: int, stop: int, wide: Bytes) -> tuple[int, int, int]:
    """Return the end of a plain domain or -1, the start of its last label, and how many dots."""
    at, label, dots = start, start, 0
    while at < stop:
        byte = data[at]
        if byte == 46 and (at + 1 == stop or is_gap(data[at + 1])):
            break  # the end of a sentence
        if byte == 46:
            if at == label or at - label > _MAX_LABEL or data[at - 1] == 45:
                return -1, 0, 0
            label, dots = at + 1, dots + 1
        elif byte > 127 and _is_wide(data, at, stop, wide):
            at += 1
        elif not (is_letter(byte) or is_digit(byte) or (byte == 45 and at > label)):
            break
        at += 1
    return at, label, dots


@njit(**OPTIONS)
def _has_hyphen(data: Bytes, start: int, end: int) -> bool:
    found = False
    for byte in data[start:end]:
        found |= byte == 45
    return found


@njit(**OPTIONS)
def _verdict_on_top(data: Bytes, label: int, end: int, tops: Bytes) -> int:
    """Return the end of a top-level domain of 2 to 24 ASCII letters, REFUSED, or UNSURE."""
    top = np.int64(0)
    for byte in data[label : min(end, label + 3)]:
        top = top * 27 + np.int64(byte | 32) - 96
    if end - label > 3:
        return end if tops[top] & 2 else UNSURE
    return end if tops[top] & 1 else REFUSED


@njit(**OPTIONS)
def _end_of_wide_domain(
    data: Bytes, start: int, found: tuple[int, int, int], after: int, tops: Bytes
) -> int:
    """Return what `_end_of_domain` does for a domain with letters that are not in ASCII.

    found: as of `_read_domain`. A top-level domain in ASCII ends before the first of them, and one
    of them before a letter, digit, or sign of ASCII that may not follow it goes without its last.
    """
    at, label, dots = found
    end = label
    while end < at and is_letter(data[end]):
        end += 1
    after_label = data[end] if end < at else after
    if 2 <= end - label <= 24 and (after_label > 127 or (end == at and after not in (40, 64))):
        return _verdict_on_top(data, label, end, tops)
    if end == label:
        while end < at and data[end] > 127 and end - label < 48:
            end += 2
        byte = data[end] if end < at else after
        end -= 2 * (is_word(byte) or byte in (40, 64))  # (@
        if end - label >= 4:
            return end
    return REFUSED if dots == 1 and not _has_hyphen(data, start, at) else UNSURE


@njit(**OPTIONS)
def _end_of_domain(data: Bytes, start: int, stop: int, tops: Bytes, wide: Bytes) -> int:
    """Return the end of a plain domain, REFUSED if it is none, or UNSURE.

    tops, wide: see `decide_email`.
    """
    at, label, dots = _read_domain(data, start, stop, wide)
    after = data[at] if 0 <= at < stop else 10
    if at < 0 or not dots or at - start > _MAX_ADDRESS or after in (91, 95):  # [_
        return UNSURE
    letters, hyphens, is_wide = 0, 0, False
    for byte in data[start:at]:
        is_wide |= byte > 127
    if after > 127 and (is_wide or at == label or _may_go_on(data, at, stop)):
        return UNSURE
    if is_wide:
        return _end_of_wide_domain(data, start, (at, label, dots), after, tops)
    for byte in data[label:at]:
        letters += is_letter(byte)
        hyphens += byte == 45  # of a domain in Punycode: xn--p1ai
    # A call or another "@" forbids the last label, and the one before it, as top-level domains.
    if after in (40, 64) and dots <= 2 and 0 < at - label <= _MAX_LABEL:  # (@
        return UNSURE if _has_hyphen(data, start, at) else REFUSED
    if letters < at - label or not 2 <= letters <= 24 or after in (40, 64):
        return REFUSED if dots == 1 and not hyphens else UNSURE
    return _verdict_on_top(data, label, at, tops)


@njit(**OPTIONS)
def _verdict_in_url(data: Bytes, first: int, start: int, end: int) -> int:
    """Return REFUSED for the user of a URL, UNSURE, or the end: `email_addresses._USER_OF_URL`."""
    at = start - 1
    while at >= first and data[at] != 47:
        if data[at] in (32, 10, 9, 13, 64):
            return end
        at -= 1
    if at < first:
        return end
    if not is_printable(data, at, start):
        return UNSURE
    is_url = at > first and data[at - 1] == 47 and at - 1 >= start - _MAX_USER
    return REFUSED if is_url else end


@njit(**OPTIONS)
def _plain_start(data: Bytes, local: tuple[int, int], after: tuple[int, int], wide: Bytes) -> int:
    """Return where a local part begins after all that is cut off; -1 if unsure.

    after: the end of the domain, and that of the text.
    """
    start, sign = local
    last, stop = after
    closing = data[last] if last < stop else 0
    cut = _start_of_latin(data, start, sign, wide)
    if cut == start and sign - start < _MAX_RUN:
        return _first_of_local(data, start, sign, closing)
    # What is before letters of CJK is cut off with them, unless a closing sign has a say.
    is_plain = cut > start and closing not in _CLOSING and is_printable(data, sign + 1, last)
    return _first_of_local(data, cut, sign, 0) if is_plain else -1


@njit(**OPTIONS)
def decide_email(
    data: Bytes, offsets: Integers, places: Integers, tops: Bytes, wide: Bytes
) -> Integers:
    """Decide on addresses; the place of one after signs that are cut off is moved.

    tops: uint8 [27**3], by letters as digits to base 27: 1 for a domain of two or three letters,
    plus 2 where longer names that begin so are domains. wide: uint8 [2048], 1 for letters, by code
    point.
    """
    ends = np.zeros(len(places), np.int64)
    for i in range(len(places)):
        row, start, end = places[i]
        text, stop, sign = offsets[row], offsets[row + 1], start
        while data[sign] != 64:
            sign += 1
        last = _end_of_domain(data, sign + 1, stop, tops, wide)
        if last <= 0:
            ends[i] = last
            continue
        first = _plain_start(data, (start, sign), (last, stop), wide)
        if first >= 0 and _end_of_local(data, first, end, wide) == sign:
            ends[i] = _verdict_in_url(data, max(text, first - 400), first, last)
            places[i, 1] = first if ends[i] > 0 else start
    return ends
