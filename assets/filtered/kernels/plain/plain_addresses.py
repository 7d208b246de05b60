"""Decide on IP addresses; see the folder."""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

import numpy as np
from numba import njit

from assets.filtered.kernels.plain.plain_bytes import (
    REFUSED,
    UNSURE,
    Bytes,
    Integers,
    is_digit,
    is_gap,
    is_letter,
    is_word,
)
from assets.text.kernels.compiling import ARRAY_KERNEL, KERNEL

_BEFORE = 16  # bytes that the check of an IP address reads for words such as "version"


@njit(**KERNEL)
def _is_part_of_more(data: Bytes, text: tuple[int, int], start: int, end: int) -> bool:
    """Check for a letter, digit or dot before or after, which no address has beside it."""
    if start > text[0] and (is_word(data[start - 1]) or data[start - 1] == 46):
        return True
    if end == text[1]:
        return False
    is_dotted = data[end] == 46 and end + 1 < text[1] and is_digit(data[end + 1])
    return is_dotted or is_word(data[end]) or data[end] == 37


@njit(**KERNEL)
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


@njit(**KERNEL)
def _follows_numbers(data: Bytes, low: int, at: int) -> bool:
    """Check for no letter in the bytes before that the check reads."""
    has_letter = False
    for i in range(max(low, at - _BEFORE), at):
        has_letter |= data[i] > 127 or is_letter(data[i])
    return not has_letter


@njit(**KERNEL)
def _is_named_ip(data: Bytes, low: int, start: int) -> bool:
    """Check for "ip" as a word, a blank or sign, and the address."""
    at = start - 1
    at -= at >= low and data[at] == 32
    at -= at >= low and data[at] in (58, 61)
    if at <= low or (data[at - 1] | 32) != 105 or (data[at] | 32) != 112:  # ip
        return False
    return at - 1 == low or (data[at - 2] < 128 and not is_word(data[at - 2]))


@njit(**KERNEL)
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


@njit(**KERNEL)
def _is_resolver(data: Bytes, start: int, end: int) -> bool:
    """Check for an address that everybody knows: 1.1.1.1, 8.8.8.8, 9.9.9.9, 8.8.4.4, 1.0.0.1."""
    if end - start != 7:
        return False
    one, two, three, four = data[start], data[start + 2], data[start + 4], data[start + 6]
    is_same = one == two == three == four and one in (49, 56, 57)
    is_eights = one == 56 and two == 56 and three == 52 and four == 52
    return is_same or is_eights or (one == 49 and two == 48 and three == 48 and four == 49)


@njit(**ARRAY_KERNEL)
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


@njit(**KERNEL)
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


@njit(**ARRAY_KERNEL)
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
