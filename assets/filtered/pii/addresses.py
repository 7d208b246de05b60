"""Patterns and validators of e-mail and IP addresses.

Sources: RFC 5321 and 6531 (e-mail), IANA special-purpose registries by way of `ipaddress`.
"""

import ipaddress
import re
from collections.abc import Iterator

from assets.filtered.pii.scan import Scan, Span

# File extensions and names of private hosts that look like top-level domains.
_NO_DOMAIN = re.compile(
    "(?i)png|jpe?g|gif|svg|webp|ico|bmp|avif|s?css|less|m?jsx?|tsx?|json|html?|xml|ya?ml|toml|txt|pdf|"
    "lock|php|rb|go|java|kt|exe|dll|local(?:host|domain)?|internal|lan|invalid|service|socket|target|"
    "timer|mount|device|slice|scope|path|conf|cfg|ini|log|journal|cephfs"
)
_DOMAIN = re.compile(
    r"(?:[A-Za-z0-9À-ɏ](?:[A-Za-z0-9À-ɏ-]{0,61}[A-Za-z0-9À-ɏ])?\.)+"
    r"([A-Za-z]{2,24}|xn--[A-Za-z0-9-]{2,59})(?![\w(@\[]|\.\w{1,63}[(@])",
    re.ASCII,
)
_USER_OF_URL = re.compile(r"//[^\s/@]*$")


def _check_email(text: str, start: int, end: int) -> Iterator[Span]:
    at = text.index("@", start, end)
    while start < at and text[start] in ".+'-":
        start += 1
    local = text[start:at]
    domain = _DOMAIN.match(text, at + 1, at + 255)
    if not domain or not 0 < len(local) <= 64 or ".." in local or local[-1] in ".'":
        return
    is_service = local == "git" or bool(_NO_DOMAIN.fullmatch(domain[1]))
    if not is_service and not _USER_OF_URL.search(text, max(0, start - 80), start):
        yield start, domain.end()


_VERSION_BEFORE = re.compile(
    r"(?ai)(?:[\w.]|[a-z]-|(?<!\.\d)(?<!\.\d\d)(?<!\.\d\d\d)-|[a-z]/)\Z|"
    r"(?:[=<>~]=|[~^§]|\b(?:v|ver|versions?|release|rev|revision|build|firmware|section|sec|chapter|"
    r"clause|rfc \d+)\b[\"']?[.:=]?)\s?[\"']?\Z"
)
_ADDRESS_BEFORE = re.compile(
    r"(?ai)(?:(?:\b|_|(?-i:(?<=[a-z])(?=[A-Z])))(?:ip|ipv4|ips|addr|address|addresses|host|hostname|"
    r"server|nameserver|dns|resolver|proxy|ping|gateway|client|peer|remote|from|connect|connected|"
    r"login|route|network|subnet|src|dst|listen|bind)\b[^\d\n<>\[\]{}]{0,24}|://|@)\Z"
)
_RESOLVERS = frozenset({"1.1.1.1", "8.8.8.8", "9.9.9.9", "8.8.4.4", "1.0.0.1"})
_PORT_OR_PREFIX = re.compile(r":\d{2,5}\b|/\d\d?\b")
_IP4_AFTER = re.compile(r"(?a)[\w%]|\.\d|-(?!\d+\.\d+\.\d+\.\d)\w")


def _check_ip4(text: str, start: int, end: int) -> Iterator[Span]:
    before = text[max(0, start - 60) : start]
    if _VERSION_BEFORE.search(before[-16:]):
        return
    # Numbers of sections and releases have small parts only; so has 1 address in 700.
    is_small = all(int(part) < 50 for part in text[start:end].split("."))
    is_likely = (
        not is_small
        or text[start:end] in _RESOLVERS
        or _ADDRESS_BEFORE.search(before)
        or _PORT_OR_PREFIX.match(text, end)
    )
    if is_likely and not _IP4_AFTER.match(text, end) and _is_public(text[start:end]):
        yield start, end


def _check_ip6(text: str, start: int, end: int) -> Iterator[Span]:
    while text[end - 1] == ":" and text[end - 2] != ":":
        end -= 1
    is_free = not re.search(r"(?a)[\w:.]\Z", text[max(0, start - 1) : start])
    if is_free and not re.match(r"(?a)[\w:]", text[end : end + 1]) and _is_public(text[start:end]):
        yield start, end


def _is_public(address: str) -> bool:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    return parsed.is_global and not parsed.is_multicast and not parsed.is_reserved


_RUN = "A-Za-z0-9À-ɏ"
_IP4 = r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}"

SCANS = (
    Scan("email", rf"[{_RUN}_+-]@[{_RUN}]", rf"[{_RUN}_.+'-]+@[{_RUN}.-]+\.[A-Za-z]", _check_email),
    Scan("ip", r"[0-9]\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]", _IP4, _check_ip4),
    Scan(
        "ip", "[23][0-9a-fA-F]{3}:[0-9a-fA-F:]", "[23][0-9a-fA-F]{3}:[0-9a-fA-F:]{3,44}", _check_ip6
    ),
)
