"""Patterns and validators of IP addresses.

Sources: IANA special-purpose registries by way of `ipaddress`.
"""

import ipaddress
import re
from collections.abc import Iterator
from functools import lru_cache

from assets.filtered.pii.scan import FAR, Scan, Span

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
    Scan(
        "ip",
        _IP4,
        _check_ip4,
        _IP4_CLUES,
        "[0-9.]",
        FAR,
    ),
    Scan(
        "ip",
        "[23][0-9a-fA-F]{3}:[0-9a-fA-F:]{3,44}",
        _check_ip6,
        ("[23][0-9a-fA-F]{3}:[0-9a-fA-F:]{3}",),
        "[0-9a-fA-F:]",
        FAR,
    ),
)
