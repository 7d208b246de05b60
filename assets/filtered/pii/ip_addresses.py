"""Patterns and validators of IP addresses.

Sources: IANA special-purpose registries by way of `ipaddress`.
"""

import ipaddress
import re
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from assets.filtered.pii.scan import FAR, Scan, Span
from resources.made_once import made_once

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
    before = text[max(0, start - 60) : start]
    # Numbers of sections and releases have small parts only; so has 1 address in 700.
    is_small = all(int(part) < 50 for part in text[start:end].split("."))
    is_likely = (
        not is_small
        or text[start:end] in _RESOLVERS
        or _ADDRESS_BEFORE.search(before)
        or _PORT_OR_PREFIX.match(text, end)
    )
    if not is_likely or _VERSION_BEFORE.search(before[-16:]) or _IP4_AFTER.match(text, end):
        return
    if _is_public(text[start:end]):
        yield start, end


def _decide_ip4(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], places: NDArray[np.int64]
) -> NDArray[np.int64]:
    from assets.filtered.kernels.plain.plain_addresses import decide_ip4

    ends: NDArray[np.int64] = decide_ip4(data, offsets, places, public_blocks())
    return ends


# Registries of IANA divide only these /8 blocks, and of their /16 blocks only those below.
_DIVIDED = (100, 169, 172, 192, 198, 203)
_MIXED = ("192.0", "192.31", "192.52", "192.88", "192.175", "198.51", "203.0")


@made_once
def public_blocks() -> NDArray[np.uint8]:
    """Make the table of /16 blocks: 1 for public, 0 for none of it, 2 for some of it."""
    table = np.empty((256, 256), np.uint8)
    for first in range(256):
        if first not in _DIVIDED:
            table[first] = _is_public(f"{first}.1.1.1")
            continue
        for second in range(256):
            block = f"{first}.{second}"
            table[first, second] = 2 if block in _MIXED else _is_public(f"{block}.1.1")
    return table.ravel()


def _check_ip6(text: str, start: int, end: int) -> Iterator[Span]:
    while text[end - 1] == ":" and text[end - 2] != ":":
        end -= 1
    is_free = not re.search(r"(?a)[\w:.]\Z", text[max(0, start - 1) : start])
    if is_free and not re.match(r"(?a)[\w:]", text[end : end + 1]) and _is_public(text[start:end]):
        yield start, end


def _decide_ip6(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], places: NDArray[np.int64]
) -> NDArray[np.int64]:
    from assets.filtered.kernels.plain.plain_addresses import decide_ip6

    ends: NDArray[np.int64] = decide_ip6(data, offsets, places, public_heads())
    return ends


# Of the blocks of 2000::/3, registries of IANA divide these.
_DIVIDED_HEADS = (0x2001, 0x2002, 0x2620, 0x3FFF)


@made_once
def public_heads() -> NDArray[np.uint8]:
    """Make the table of first groups of IPv6: 1 for public, 0 for none of it, 2 for some of it."""
    table = np.full(1 << 16, 2, np.uint8)
    is_public = _is_public("2a00::1")
    table[0x2000:0x4000] = is_public
    table[list(_DIVIDED_HEADS)] = 2
    return table


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
        decide=_decide_ip4,
    ),
    Scan(
        "ip",
        "[23][0-9a-fA-F]{3}:[0-9a-fA-F:]{3,44}",
        _check_ip6,
        ("[23][0-9a-fA-F]{3}:[0-9a-fA-F:]{3}",),
        "[0-9a-fA-F:]",
        FAR,
        decide=_decide_ip6,
    ),
)
