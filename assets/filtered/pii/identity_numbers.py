"""Patterns and validators of US social security numbers, payment cards, IBANs and IP addresses.

Sources: SSA (numbers never issued), ISO/IEC 7812 (cards), ISO 13616 and SWIFT's IBAN registry, and
IANA's special-purpose registries by way of `ipaddress`.
"""

import ipaddress
import re
from collections.abc import Iterator
from functools import lru_cache

from assets.filtered.pii.scan import FAR, Scan, Span


def _check_ssn(text: str, start: int, end: int) -> Iterator[Span]:
    start = end - len(_SSN_AT_END.search(text, start, end)[0])  # type: ignore[index]
    before, after = text[max(0, start - 24) : start], text[end : end + 2]
    is_free = not re.search(r"(?a)[\w+]\Z|\d[-.]\Z", before) and not re.match(
        r"(?a)\w|-\w|\.\d", after
    )
    area, group, serial = text[start : start + 3], text[end - 7 : end - 4], text[end - 4 : end]
    group = "".join(filter(str.isdigit, group))[-2:]
    is_issued = area[0] != "9" and area not in ("000", "666") and group != "00" and serial != "0000"
    if is_free and is_issued and not _PRODUCT_BEFORE.search(before):
        yield start, end


_PRODUCT_BEFORE = re.compile(
    r"(?i)\b(?:parts?|models?|sku|serial|items?|order|invoice|catalog(?:ue)?|lot|ref|p/n|s/n|isbn|"
    r"version|ticket|case|stock)\b(?: (?:no|nr|number|code|id))?[.:# ]{0,3}\Z"
)
_SSN_AT_END = re.compile(r"[0-9]{3}[ -]?[0-9]{2}[ -]?[0-9]{4}$")

# ISO/IEC 7812 ranges in use, and their lengths.
_CARD = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}|"
    r"3[47]\d{13}|3(?:0[0-5]|6\d|[89]\d)\d{11}|(?:6011|64[4-9]\d|65\d\d|35(?:2[89]|[3-8]\d))\d{12}|"
    r"62\d{14,17}|(?:5018|5020|5038|5893|6304|6759|676[1-3])\d{9,15}"
)
_CARD_GROUPS = ((4, 4, 4, 4, 3), (4, 4, 4, 4), (4, 6, 5), (4, 6, 4), (4, 4, 4, 1))


def _check_card(text: str, start: int, end: int) -> Iterator[Span]:
    groups = [match.span() for match in re.compile(r"\d+").finditer(text, start, end)]
    lengths = [stop - first for first, stop in groups]
    i = 0
    while i < len(groups):
        size = _card_groups_at(text, groups, lengths, i)
        if size:
            yield groups[i][0], groups[i + size - 1][1]
        i += max(1, size)


def _card_groups_at(text: str, groups: list[Span], lengths: list[int], i: int) -> int:
    """Return the number of digit groups from `i` on that make one card number, or 0."""
    sizes = [len(shape) for shape in _CARD_GROUPS if tuple(lengths[i : i + len(shape)]) == shape]
    for size in [1] * (13 <= lengths[i] <= 19) + sizes:
        first, last = groups[i][0], groups[i + size - 1][1]
        digits = re.sub(r"\D", "", text[first:last]) if size > 1 else text[first:last]
        if not _CARD.fullmatch(digits):  # most of all runs of digits
            continue
        in_table = size > 1 and (4 in lengths[i - 1 : i] or 4 in lengths[i + size : i + size + 1])
        before, after = text[max(0, first - 5) : first], text[last : last + 2]
        is_free = not re.search(
            r"(?a)[\w/+$]\Z|\w[-.]\Z|[A-Z]{2}\d\d \Z|(?:EAN|UPC|TIN):? ?\Z", before
        ) and not re.match(r"(?a)\w|[-.]\d", after)
        is_even = len({text[stop] for _, stop in groups[i : i + size - 1]}) < 2
        if is_free and is_even and not in_table and passes_luhn(digits):
            return size
    return 0


def passes_luhn(digits: str) -> bool:
    """Check the last digit against the others by Luhn's rule (ISO/IEC 7812-1, annex B).

    Numbers of one repeated digit are rejected.
    """
    doubled = sum(sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (doubled + sum(map(int, digits[::-2]))) % 10 == 0 and len(set(digits)) > 1


# SWIFT IBAN registry: country codes by the length of their IBAN.
_IBAN_LENGTHS = {
    country: length
    for length, countries in {
        15: "NO", 16: "BE", 18: "DK FK FO FI GL NL SD", 19: "MK SI", 20: "AT BA EE KZ LT LU MN XK",
        21: "HR LV CH LI", 22: "BG BH CR DE GB GE IE ME RS VA", 23: "AE GI IL IQ OM SO TL",
        24: "AD CZ ES MD PK RO SA SE SK TN VG", 25: "LY PT ST", 26: "IS TR",
        27: "BI DJ FR GR IT MC MR SM", 28: "AL AZ BY CY DO GT HU LB NI PL SV", 29: "BR EG PS QA UA",
        30: "JO KW MU YE", 31: "MT SC", 32: "LC", 33: "RU",
    }.items()
    for country in countries.split()
}  # fmt: skip


_IBAN_HEAD = re.compile(r"[A-Z]{2}\d\d(?=[A-Z0-9]| [A-Z0-9])")


def _check_iban(text: str, start: int, end: int) -> Iterator[Span]:
    done = start
    for head in _IBAN_HEAD.finditer(text, start, end):
        length = _IBAN_LENGTHS.get(head[0][:2])
        if head.start() < done or not length:
            continue
        is_spaced = text[head.end()] == " "
        stop = head.start() + length + (length - 1) // 4 * is_spaced
        number = text[head.start() : stop]
        parts = number.split(" ")
        is_grouped = not is_spaced or all(len(part) == 4 for part in parts[:-1])
        edges = text[max(0, head.start() - 1) : head.start()] + text[stop : stop + 1]
        compact = "".join(parts)
        is_whole = is_grouped and len(compact) == length and not re.search(r"(?a)\w", edges)
        if is_whole and passes_mod97(compact):
            done = stop
            yield head.start(), stop


def passes_mod97(iban: str) -> bool:
    """Check an IBAN's check digits: with letters as numbers, 1 modulo 97 (ISO 7064, MOD 97-10)."""
    turned = iban[4:] + iban[:4]
    return (
        turned.isascii()
        and turned.isalnum()
        and int("".join(str(int(sign, 36)) for sign in turned)) % 97 == 1
    )


_SSN = r"[0-9]{3}-[0-9]{2}-[0-9]{4}"
_SSN_NAMED = (
    r"(?:SSN|ssn|[Ss]ocial [Ss]ecurity)[^0-9\n<>\[\]{}]{0,24}[0-9]{3}[ -]?[0-9]{2}[ -]?[0-9]{4}"
)
_IBAN_CORE = r"[0-9]{2} ?[A-Z0-9]{4} ?[0-9][A-Z0-9]{2}[0-9] ?[A-Z0-9]{3}"


_VERSION_BEFORE = re.compile(
    r"(?ai)(?:[\w.]|[a-z]-|(?<!\.\d)(?<!\.\d\d)(?<!\.\d\d\d)-|[a-z]/)\Z|"
    r"(?:[=<>~]=|[~^§]|\b(?:v|ver|versions?|release|rev|revision|build|firmware|section|sec|"
    r"chapter|"
    r"clause|rfc \d+)\b[\"']?[.:=]?)\s?[\"']?\Z"
)
_ADDRESS_BEFORE = re.compile(
    r"(?ai)(?:(?:\b|_|(?-i:(?<=[a-z])(?=[A-Z])))(?:ip|ipv4|ips|addr|address|addresses|host|"
    r"hostname|"
    r"server|nameserver|dns|resolver|proxy|ping|gateway|client|peer|remote|from|connect|connected|"
    r"login|route|network|subnet|src|dst|listen|bind|deny|allow|block(?:ed)?|ban(?:ned)?)\b[^\d\n<>\[\]{}]{0,24}|://|@)\Z"
)
_RESOLVERS = frozenset({"1.1.1.1", "8.8.8.8", "9.9.9.9", "8.8.4.4", "1.0.0.1"})
_PORT_OR_PREFIX = re.compile(r":\d{2,5}\b|/\d\d?\b")
_IP4_AFTER = re.compile(r"(?a)[\w%]|\.\d|-(?!\d+\.\d+\.\d+\.\d)\w")


def _check_ip4(text: str, start: int, end: int) -> Iterator[Span]:
    if not _is_public(text[start:end]) or _IP4_AFTER.match(text, end):  # most of all
        return
    before = text[max(0, start - 60) : start]
    # Numbers of sections and releases have small parts only; so has 1 address in 700.
    is_small = all(int(part) < 50 for part in text[start:end].split("."))
    is_likely = (
        not is_small
        or text[start:end] in _RESOLVERS
        or _ADDRESS_BEFORE.search(before)
        or _PORT_OR_PREFIX.match(text, end)
    )
    if is_likely and not _VERSION_BEFORE.search(before[-16:]):
        yield start, end


def _check_ip6(text: str, start: int, end: int) -> Iterator[Span]:
    while text[end - 1] == ":" and text[end - 2] != ":":
        end -= 1
    is_free = not re.search(r"(?a)[\w:.]\Z", text[max(0, start - 1) : start])
    if is_free and not re.match(r"(?a)[\w:]", text[end : end + 1]) and _is_public(text[start:end]):
        yield start, end


@lru_cache(maxsize=10_000)  # 12 µs each, and a log names the same hosts again and again
def _is_public(address: str) -> bool:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    return parsed.is_global and not parsed.is_multicast and not parsed.is_reserved


_IP4 = r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}"
# Three of the parts: clues of all four would be nine, of which a list has several at each byte.
_IP4_CLUES = tuple(rf"\d\.\d{{{second}}}\.\d" for second in (1, 2, 3))


SCANS = (
    Scan("ssn", _SSN, _check_ssn, (r"\d{3}-\d{2}-\d{4}",)),
    Scan(
        "ssn",
        _SSN_NAMED,
        _check_ssn,
        (r"[sS][sS][nN][^\n<>\[\]{}]", r"[oO]cial [sS]ecurity"),
        r"[^\n<>\[\]{}]",
        144,
    ),
    Scan(
        "credit_card",
        "[0-9]{4}(?:[ -]?[0-9]){9,}",
        _check_card,
        (r"[2-6]\d{3}[- \d]\d{3}[- \d]{2}",),
        "[0-9 -]",
        FAR,
    ),
    Scan(
        "iban",
        f"[A-Z]{{2}}{_IBAN_CORE}[A-Z0-9 ]*",
        _check_iban,
        (r"[A-Z]{2}\d\d[ A-Z0-9]{4}",),
        "[A-Z0-9 ]",
        FAR,
    ),
    Scan("ip", _IP4, _check_ip4, _IP4_CLUES, "[0-9.]", FAR),
    Scan(
        "ip",
        "[23][0-9a-fA-F]{3}:[0-9a-fA-F:]{3,44}",
        _check_ip6,
        ("[23][0-9a-fA-F]{3}:[0-9a-fA-F:]{3}",),
        "[0-9a-fA-F:]",
        FAR,
    ),
)
