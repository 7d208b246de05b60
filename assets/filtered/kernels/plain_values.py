"""Decide on candidates in plain surroundings: lists of personal data have millions of them.

Each kernel returns, for candidates int64 [n, 3] (row, first byte, end), the end of the span that
begins where the candidate does, REFUSED, or UNSURE where only the check of the scan can tell. One
for candidates with many spans returns these; one may move the start of an accepted candidate.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

UNSURE, REFUSED = 0, -1
_MAX_LABEL, _MAX_LOCAL, _MAX_ADDRESS = 63, 64, 250
_BEFORE = 16  # bytes that the check of an IP address reads for words such as "version"

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]

_options = {"cache": True, "nogil": True}
_inlined = {**_options, "forceinline": True}


@njit(**_inlined)
def _is_gap(byte: int) -> bool:
    """Check for a blank, a line end, a comma or a semicolon."""
    return byte in (32, 10, 9, 13, 44, 59)


@njit(**_inlined)
def _is_digit(byte: int) -> bool:
    return 48 <= byte <= 57


@njit(**_inlined)
def _is_letter(byte: int) -> bool:
    return 97 <= (byte | 32) <= 122


@njit(**_inlined)
def _is_word(byte: int) -> bool:
    return _is_letter(byte) or _is_digit(byte) or byte == 95


@njit(**_options)
def _is_part_of_more(data: Bytes, text: tuple[int, int], start: int, end: int) -> bool:
    """Check for a letter, digit or dot before or after, which no address has beside it."""
    if start > text[0] and (_is_word(data[start - 1]) or data[start - 1] == 46):
        return True
    if end == text[1]:
        return False
    is_dotted = data[end] == 46 and end + 1 < text[1] and _is_digit(data[end + 1])
    return is_dotted or _is_word(data[end]) or data[end] == 37


@njit(**_options)
def _among_numbers(data: Bytes, text: tuple[int, int], start: int, end: int) -> bool:
    """Check for a gap on both sides, and only gaps, digits and dots in the bytes before."""
    if (start > text[0] and not _is_gap(data[start - 1])) or (
        end < text[1] and not _is_gap(data[end])
    ):
        return False
    for i in range(max(text[0], start - _BEFORE), start):
        if not (_is_gap(data[i]) or _is_digit(data[i]) or data[i] == 46):
            return False
    return True


@njit(**_options)
def _is_named(data: Bytes, text: tuple[int, int], start: int, end: int) -> bool:
    """Check for what tells an address from the number of a section: a word, a port, a prefix."""
    if end < text[1] and data[end] in (47, 58):
        return True
    at = start - 1
    while at >= text[0] and data[at] != 10 and (_is_gap(data[at]) or data[at] == 46):
        at -= 1
    if at < text[0] or data[at] == 10:
        return False
    # The digit of another number, or that of "ipv4".
    is_number = _is_digit(data[at]) and (
        at == text[0] or _is_digit(data[at - 1]) or _is_gap(data[at - 1]) or data[at - 1] == 46
    )
    return not is_number


@njit(**_options)
def _is_resolver(data: Bytes, start: int, end: int) -> bool:
    """Check for an address that everybody knows: 1.1.1.1, 8.8.8.8, 9.9.9.9, 8.8.4.4, 1.0.0.1."""
    if end - start != 7:
        return False
    one, two, three, four = data[start], data[start + 2], data[start + 4], data[start + 6]
    is_same = one == two == three == four and one in (49, 56, 57)
    is_eights = one == 56 and two == 56 and three == 52 and four == 52
    return is_same or is_eights or (one == 49 and two == 48 and three == 48 and four == 49)


@njit(**_options)
def decide_ip4(data: Bytes, offsets: Integers, places: Integers, public: Bytes) -> Integers:
    """Decide on IPv4 addresses; public: uint8 [65536], 1 or 0 by the first two bytes, else 2."""
    ends = np.zeros(len(places), np.int64)
    for i in range(len(places)):
        row, start, end = places[i]
        part, digits, number, count, is_small = 0, 0, 0, 0, True
        for at in range(start, end + 1):
            if at < end and _is_digit(data[at]):
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
        is_section = is_small and not (
            _is_resolver(data, start, end) or _is_named(data, text, start, end)
        )
        if verdict == 0 or is_section or _is_part_of_more(data, text, start, end):
            ends[i] = REFUSED
        elif verdict == 1 and not is_small:
            ends[i] = end if _among_numbers(data, text, start, end) else UNSURE
    return ends


@njit(**_options)
def _end_of_local(data: Bytes, start: int, stop: int) -> int:
    """Return the place of the "@" after a plain local part, or -1."""
    at = start
    if not (_is_letter(data[at]) or _is_digit(data[at])):
        return -1
    while at < stop and data[at] != 64:
        byte = data[at]
        is_sign = byte in (43, 45, 46, 95)  # + - . _
        if not (_is_letter(byte) or _is_digit(byte) or is_sign):
            return -1
        if byte == 46 and data[at + 1] in (46, 64):
            return -1
        at += 1
    is_git = at - start == 3 and data[start] == 103 and data[start + 1] == 105
    return at if at < stop and at - start <= _MAX_LOCAL and not is_git else -1


@njit(**_options)
def _end_of_domain(data: Bytes, start: int, stop: int, tops: Bytes) -> int:
    """Return the end of a plain domain whose last label has two or three letters, or -1."""
    at, label, labels, top, letters = start, start, 0, 0, 0
    while at < stop:
        byte = np.int64(data[at])
        if byte == 46 and (at + 1 == stop or _is_gap(data[at + 1])):
            break  # the end of a sentence
        if byte == 46:
            if at == label or at - label > _MAX_LABEL or data[at - 1] == 45:
                return -1
            label, labels, top, letters = at + 1, labels + 1, 0, 0
        elif _is_letter(byte):
            top, letters = (top * 27 + (byte | 32) - 96) % 531_441, letters + 1
        elif not (_is_digit(byte) or (byte == 45 and at > label)):
            break
        at += 1
    is_whole = at == stop or _is_gap(data[at]) or data[at] in (46, 34, 41, 58, 60, 62, 93)
    is_top = letters == at - label and 2 <= letters <= 3 and tops[top] == 1
    return at if is_whole and is_top and labels and at - start <= _MAX_ADDRESS else -1


@njit(**_options)
def _is_in_url(data: Bytes, first: int, start: int) -> bool:
    """Check for a slash in what comes before without a blank: a user may be part of a URL."""
    at = start - 1
    while at >= first and data[at] != 47:
        if data[at] in (32, 10, 9, 13):
            return False
        at -= 1
    return at >= first


@njit(**_options)
def decide_email(data: Bytes, offsets: Integers, places: Integers, tops: Bytes) -> Integers:
    """Decide on addresses; tops: uint8 [27**3], 1 for a domain of letters as digits to base 27."""
    ends = np.zeros(len(places), np.int64)
    for i in range(len(places)):
        row, start, end = places[i]
        is_open = start == offsets[row] or _is_gap(data[start - 1])
        if not is_open and data[start - 1] not in (34, 40, 58, 60, 62, 91):  # "(:<>[
            continue
        sign = _end_of_local(data, start, end)
        stop = _end_of_domain(data, sign + 1, offsets[row + 1], tops) if sign > 0 else UNSURE
        if stop > 0 and not _is_in_url(data, max(offsets[row], start - 400), start):
            ends[i] = stop
    return ends


@njit(**_options)
def _end_of_card(data: Bytes, text: tuple[int, int], start: int, end: int) -> int:
    """Decide on 16 digits, whole or in fours: Visa's and Mastercard's with a fitting last digit."""
    first, total, count, signs, is_one = data[start], 0, 0, 0, True
    for at in range(start, end):
        if not _is_digit(data[at]):
            if count not in (4, 8, 12) or data[at] != data[start + 4]:
                return UNSURE
            signs += 1
            continue
        digit = data[at] - 48
        is_one &= data[at] == first
        doubled = digit * 2 - 9 * (digit > 4) if count % 2 == 0 else digit
        total, count = total + doubled, count + 1
    is_known = first == 52 or (first == 53 and 49 <= data[start + 1] <= 53)
    if count != 16 or signs not in (0, 3):
        return UNSURE
    if total % 10 or is_one:
        return REFUSED
    # The check reads more before a blank: the head of an IBAN has two digits there.
    is_open = start == text[0] or data[start - 1] in (10, 44, 59)
    is_open |= start > text[0] + 1 and data[start - 1] == 32 and not _is_digit(data[start - 2])
    is_open &= end == text[1] or _is_gap(data[end])
    return end if is_known and is_open else UNSURE


@njit(**_options)
def _fits_luhn(data: Bytes, start: int, end: int) -> bool:
    """Check that 13 to 19 digits of some groups in a row have a fitting last digit."""
    for first in range(start, end):
        if not _is_digit(data[first]) or (first > start and _is_digit(data[first - 1])):
            continue
        even, odd, count = 0, 0, 0  # sums with every second digit doubled, from the first or second
        for at in range(first, end):
            if count == 19:
                break
            if not _is_digit(data[at]):
                continue
            digit = np.int64(data[at]) - 48
            doubled = digit * 2 - 9 * (digit > 4)
            even, odd = (
                (even + doubled, odd + digit) if count % 2 == 0 else (even + digit, odd + doubled)
            )
            count += 1
            is_last = at + 1 == end or not _is_digit(data[at + 1])
            if is_last and count >= 13 and (odd if count % 2 else even) % 10 == 0:
                return True
    return False


@njit(**_options)
def decide_card(data: Bytes, offsets: Integers, places: Integers) -> Integers:
    """Accept plain card numbers; refuse digits without groups of a card's sizes and last digit."""
    ends = np.full(len(places), REFUSED, np.int64)
    for i in range(len(places)):
        row, start, end = places[i]
        verdict = _end_of_card(data, (offsets[row], offsets[row + 1]), start, end)
        if verdict != UNSURE:
            ends[i] = verdict
            continue
        sizes, size, fours = (0, 0, 0), 0, 0
        for at in range(start, end + 1):
            if at < end and _is_digit(data[at]):
                size += 1
                continue
            # Groups of four beside more of them are a table.
            is_grouped = (fours == 4 and size != 4) or (fours == 3 and size == 1)
            is_grouped |= sizes[0] != 4 and sizes[1:] == (4, 6) and size in (4, 5)
            if is_grouped or 13 <= size <= 19:
                ends[i] = UNSURE
                break
            fours = fours + 1 if size == 4 else 0
            sizes, size = (sizes[1], sizes[2], size), 0
        if fours == 4:
            ends[i] = UNSURE
        if ends[i] == UNSURE and not _fits_luhn(data, start, end):
            ends[i] = REFUSED
    return ends


@njit(**_options)
def _follows_plus(data: Bytes, first: int, start: int) -> bool:
    """Check for digits after a plus without a word in the 28 characters that the check reads."""
    if start == first or data[start - 1] != 43 or not _is_digit(data[start]):
        return False
    for at in range(start - 1, max(first, start - 28) - 1, -1):
        if data[at] == 10:
            return True
        if not (_is_gap(data[at]) or _is_digit(data[at]) or data[at] in (40, 41, 43, 45)):
            return False
    return True


@njit(**_options)
def decide_spaced(data: Bytes, offsets: Integers, places: Integers) -> Integers:
    """Refuse groups with too many or too few digits for a phone number, or after a plus."""
    ends = np.zeros(len(places), np.int64)
    for i in range(len(places)):
        row, start, end = places[i]
        digits, brackets = 0, 0
        for byte in data[start : min(end, start + 41)]:
            digits += _is_digit(byte)
            brackets += byte == 40
        # The check cuts a time or a date off: these marks are beside it, or a bracket opens.
        is_cut = start > offsets[row] and data[start - 1] in (44, 45, 46, 47, 58)
        is_cut |= end < offsets[row + 1] and (data[end] in (44, 45, 46, 47, 58) or data[end] > 127)
        is_wrong = digits < 8 or end - start > 40 or (digits > 13 and not is_cut and not brackets)
        if is_wrong or _follows_plus(data, offsets[row], start):
            ends[i] = REFUSED
    return ends


@njit(**_options)
def _end_of_iban(data: Bytes, text: tuple[int, int], start: int, length: int) -> int:
    """Return the end of a valid IBAN in capitals, whole or in fours, or -1."""
    is_spaced = data[start + 4] == 32
    end = start + length + (length - 1) // 4 * is_spaced
    if end > text[1] or (start > text[0] and _is_word(data[start - 1])):
        return -1
    rest, head = np.int64(0), np.int64(0)
    for at in range(start, end):
        byte = np.int64(data[at])
        if is_spaced and (at - start) % 5 == 4:
            if byte != 32:
                return -1
            continue
        if not (_is_digit(byte) or _is_letter(byte)):
            return -1
        value, power = (byte - 48, 10) if _is_digit(byte) else ((byte | 32) - 87, 100)
        if at < start + 4:
            head = head * power + value
        else:
            rest = (rest * power + value) % 97
    is_valid = (rest * 1_000_000 + head) % 97 == 1
    return end if is_valid and (end == text[1] or not _is_word(data[end])) else -1


@njit(**_options)
def find_ibans(data: Bytes, offsets: Integers, places: Integers, lengths: Integers) -> Integers:
    """Return the IBANs in candidates, and candidates without one, int64 [n, 4].

    Columns: row, first byte, end; 1, or 0 without. lengths: int64 [26 * 26], 0 for no country.
    """
    found = np.empty((len(places), 4), np.int64)
    count = 0
    for row, start, end in places:
        before, at = count, start
        while at + 4 < end:
            first, second = np.int64(data[at]) - 65, np.int64(data[at + 1]) - 65
            is_head = 0 <= first < 26 and 0 <= second < 26 and _is_digit(data[at + 2])
            is_head &= _is_digit(data[at + 3])
            is_head &= data[at + 4] != 32 or (at + 5 < end and data[at + 5] != 32)
            length = lengths[first * 26 + second] if is_head else 0
            stop = _end_of_iban(data, (offsets[row], offsets[row + 1]), at, length) if length else 0
            if stop <= 0:
                at += 1
                continue
            if count + 1 >= len(found):
                found = np.concatenate((found, np.empty_like(found)))
            found[count] = row, at, stop, 1
            at, count = stop, count + 1
        if count == before:
            if count == len(found):
                found = np.concatenate((found, np.empty_like(found)))
            found[count] = row, start, end, 0
            count += 1
    return found[:count]


@njit(**_inlined)
def _number_at(data: Bytes, at: int, size: int) -> int:
    """Return the number of `size` digits at a place, or -1; the bytes are there."""
    number = np.int64(0)
    for i in range(at, at + size):
        if not _is_digit(data[i]):
            return -1
        number = number * 10 + np.int64(data[i]) - 48
    return number


@njit(**_options)
def _end_of_american(data: Bytes, at: int, stop: int) -> int:
    """Return the end of a North American number without its 1, or REFUSED."""
    at += at < stop and data[at] == 40
    if at + 10 > stop:
        return REFUSED
    area = _number_at(data, at, 3)
    at += 3 + (data[at + 3] == 41)
    for _ in range(2):
        at += at < stop and data[at] in (32, 45, 46)
    if at + 7 > stop:
        return REFUSED
    exchange = _number_at(data, at, 3)
    is_service = area % 100 == 11 or exchange % 100 == 11 or area // 10 % 10 == 9
    is_valid = area == 555 or (area >= 200 and exchange >= 200 and not is_service)
    at += 3 + (data[at + 3] in (32, 45, 46))
    is_valid &= exchange >= 0 and at + 4 <= stop
    return at + 4 if is_valid and _number_at(data, at, 4) >= 0 else REFUSED


@njit(**_options)
def _after_american(data: Bytes, end: int, stop: int) -> int:
    """Return the end if nothing after it forbids a number, REFUSED, or UNSURE."""
    if end == stop:
        return end
    byte, after = data[end], data[end + 1] if end + 1 < stop else 0
    if byte in (101, 120) or (byte == 32 and after in (101, 120)):  # "x 12", "ext. 12"
        return UNSURE
    if byte in (45, 46) and after > 127:
        return UNSURE
    is_more = _is_word(byte) or (byte in (45, 46) and _is_digit(after))
    return REFUSED if is_more else end


@njit(**_options)
def decide_american(data: Bytes, offsets: Integers, places: Integers) -> Integers:
    """Decide on North American numbers; the place of one that begins before is moved."""
    ends = np.zeros(len(places), np.int64)
    for i in range(len(places)):
        row, start, end = places[i]
        begin, stop, first = offsets[row], offsets[row + 1], start
        has_bracket = data[start + 3] == 41
        first -= has_bracket and first > begin and data[first - 1] == 40
        has_one = first > begin + 1 and data[first - 2] == 49 and data[first - 1] in (32, 45, 46)
        first -= 2 * has_one
        has_plus = first > begin and data[first - 1] == 43
        first -= has_plus
        is_wrong = has_plus and not has_one
        is_wrong |= first > begin and _is_word(data[first - 1])
        if first > begin + 1 and data[first - 1] in (43, 45, 46, 58):
            is_wrong |= _is_word(data[first - 2]) or data[first - 2] == 43
        has_two = not has_bracket and _is_digit(data[start + 4])
        is_row = data[start + 3] == 32 or (has_two and data[end - 5] == 32)  # of a table
        for at in range(start + 4, end):
            is_row &= data[at] != 45
        ends[i] = REFUSED
        if not (is_wrong or is_row) and _end_of_american(data, start, stop) == end:
            ends[i] = _after_american(data, end, stop)
        if ends[i] > 0:
            places[i, 1] = first
    return ends


@njit(**_options)
def _end_of_groups(data: Bytes, start: int, stop: int, codes: Bytes) -> int:
    """Return the end of a calling code and groups of digits between single signs, or UNSURE."""
    at, digits, groups, size, first = start, 0, 0, 0, 0
    head = np.int64(0)
    while at < min(stop, start + 38):
        if _is_digit(data[at]):
            head = head * 10 + np.int64(data[at]) - 48 if digits < 3 else head
            digits, groups, size = digits + 1, groups + (size == 0), size + 1
            first += groups == 1
        elif data[at] in (32, 45) and at + 1 < stop and _is_digit(data[at + 1]):
            size = 0
        else:
            break
        if size > 12 or groups > 7:
            return UNSURE
        at += 1
    if digits < 9 or not 0 < codes[head] <= first or at == start + 38:
        return UNSURE
    if at == stop or data[at] in (9, 10, 13, 44, 59):
        return at
    is_open = data[at] == 32 and (
        at + 1 == stop or (data[at + 1] < 128 and data[at + 1] not in (40, 45, 47))
    )
    return at if is_open else UNSURE


@njit(**_options)
def _is_phone(data: Bytes, start: int, end: int) -> bool:
    """Check the digits of an international number: how many, five zeros, a decimal point."""
    digits, zeros, groups, dots = 0, 0, 0, 0
    for at in range(start, end):
        dots += data[at] == 46
        if _is_digit(data[at]):
            groups += not _is_digit(data[at - 1])
            digits, zeros = digits + 1, zeros + 1 if data[at] == 48 else 0
            if zeros == 5:
                return False
    return 9 <= digits <= 15 and not (dots == 1 and groups == 2)


@njit(**_options)
def decide_international(
    data: Bytes, offsets: Integers, places: Integers, codes: Bytes
) -> Integers:
    """Decide on numbers after a plus; codes: uint8 [1000], the length of the code they begin."""
    ends = np.zeros(len(places), np.int64)
    for i in range(len(places)):
        row, start, _ = places[i]
        stop = offsets[row + 1]
        before = data[start - 1] if start > offsets[row] else 0
        if _is_word(before) or before in (41, 43, 46):
            ends[i] = REFUSED
            continue
        if before == 40 or not _is_digit(data[start + 1]):
            continue
        if data[start + 1] == 49:
            at = start + 2
            at += at < stop and data[at] == 41
            at += at < stop and data[at] in (32, 45, 46)
            ends[i] = _end_of_american(data, at, stop)
            if ends[i] > 0:
                ends[i] = _after_american(data, ends[i], stop)
            else:
                for byte in data[start : min(stop, start + 40)]:
                    ends[i] = UNSURE if byte > 127 else ends[i]  # digits of other scripts
        else:
            ends[i] = _end_of_groups(data, start + 1, stop, codes)
        if ends[i] > 0 and not _is_phone(data, start, ends[i]):
            ends[i] = REFUSED
    return ends


@njit(**_inlined)
def _is_sign_of_key(byte: int) -> bool:
    return _is_letter(byte) or _is_digit(byte) or byte in (43, 45, 46, 47, 95, 126)  # +-./_~


@njit(**_options)
def _end_of_value(data: Bytes, start: int, stop: int) -> int:
    """Return the end of 32 to 512 signs of a key and up to two equals signs, or REFUSED."""
    end = start
    while end < stop and end - start <= 512 and _is_sign_of_key(data[end]):
        end += 1
    if not 32 <= end - start <= 512:
        return REFUSED
    last = end
    while end < stop and end - last < 2 and data[end] == 61:
        end += 1
    # No sign of a key and no call follows: with an equals sign less, that sign does.
    if end < stop and (_is_sign_of_key(data[end]) or data[end] == 40):
        return end - 1 if end > last else REFUSED
    return end


@njit(**_options)
def _is_like_words(data: Bytes, start: int, end: int) -> bool:
    """Check for fewer than two digits, 12 small letters, 14 capitals, or a path of words."""
    digits, small, capitals, marks = 0, 0, 0, 0
    for at in range(start, end):
        byte = data[at]
        digits += _is_digit(byte)
        small = small + 1 if 97 <= byte <= 122 else 0
        capitals = capitals + 1 if 65 <= byte <= 90 else 0
        if byte in (45, 46, 47, 95):  # -./_
            marks += 1
        elif not _is_letter(byte):
            marks = 0
        if small == 12 or capitals == 14 or marks == 3:
            return True
    return digits < 2


@njit(**_options)
def _entropy(data: Bytes, start: int, end: int, counts: Integers) -> float:
    """Return the entropy in bits per byte; counts: int64 [256], zeros before and after."""
    total, size = 0.0, end - start
    for at in range(start, end):
        counts[data[at]] += 1
    for at in range(start, end):
        count = counts[data[at]]
        counts[data[at]] = 0
        if count > 1:
            total += count * math.log2(count)
    return math.log2(size) - total / size


@njit(**_options)
def decide_assigned_key(
    data: Bytes, offsets: Integers, places: Integers, min_entropy: float
) -> Integers:
    """Decide on keys that are assigned; the place of one that is accepted is that of the value."""
    ends = np.full(len(places), REFUSED, np.int64)
    counts = np.zeros(256, np.int64)
    for i in range(len(places)):
        row, start, first = places[i]
        while first > start and data[first - 1] not in (9, 10, 32, 34, 39, 58, 59, 61):
            first -= 1
        end = _end_of_value(data, first, offsets[row + 1])
        if end == REFUSED or _is_like_words(data, first, end):
            continue
        hexes, hyphens = 0, 0
        for byte in data[first:end]:
            hexes += _is_digit(byte) or 97 <= (byte | 32) <= 102
            hyphens += byte == 45
        if hexes == end - first:
            continue
        is_sha = data[first] == 115 and data[first + 1] == 104 and data[first + 2] == 97
        entropy = _entropy(data, first, end, counts)
        if is_sha or hexes + hyphens == end - first or abs(entropy - min_entropy) < 1e-9:
            ends[i] = UNSURE
        elif entropy > min_entropy:
            places[i, 1], ends[i] = first, end
    return ends


@njit(**_options)
def _follows_as(data: Bytes, first: int, start: int) -> bool:
    """Check for " as " in the 70 characters before, after which a value may be the password."""
    for at in range(max(first, start - 280), start - 3):
        if data[at] == 32 and data[at + 1] == 97 and data[at + 2] == 115 and data[at + 3] == 32:
            return True
    return False


@njit(**_options)
def decide_password(data: Bytes, offsets: Integers, places: Integers) -> Integers:
    """Refuse words for a password that are a placeholder, or are set to one: `<PASSWORD>`."""
    ends = np.zeros(len(places), np.int64)
    for i in range(len(places)):
        row, start, end = places[i]
        stop = offsets[row + 1]
        if end == stop or not _is_letter(data[end - 1]):
            continue
        if data[end] == 62 and start > offsets[row] and data[start - 1] == 60:
            ends[i] = REFUSED
            for byte in data[start:end]:
                ends[i] = ends[i] if 65 <= byte <= 90 else UNSURE
            continue
        at = end + 1
        at += at < stop and data[at] == 32
        is_set = data[end] in (58, 61) and at + 1 < stop and data[at] == 60
        if is_set and 65 <= data[at + 1] <= 90 and not _follows_as(data, offsets[row], start):
            ends[i] = REFUSED
    return ends
