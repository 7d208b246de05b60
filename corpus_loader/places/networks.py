"""Kinds of networks that an address belongs to."""

from __future__ import annotations

import ipaddress
import socket
from typing import Literal

Reach = Literal["loopback", "link-local", "private", "public"]
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # RFC 6052: an IPv4 address in the last 32 bits
COMPATIBLE = ipaddress.IPv6Network("::/96")  # RFC 4291 2.5.5.1, the same, obsolete
SITE_LOCAL = ipaddress.IPv6Network("fec0::/10")


def reach_of(host: str) -> Reach:
    """Return the kind of network of an address; a name counts as public, "localhost" excepted."""
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return "loopback"
    address = address_of(name)
    if address is None:
        return "public"
    if address.is_loopback or address.is_unspecified:
        return "loopback"
    if address.is_link_local:
        return "link-local"
    is_site_local = address in SITE_LOCAL
    return (
        "public" if address.is_global and not (is_site_local or address.is_multicast) else "private"
    )


def address_of(host: str) -> Address | None:
    """Return the address that a host is, also one inside another or written as 0x7f.1; or None."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        try:
            return ipaddress.IPv4Address(socket.inet_aton(host))
        except (OSError, UnicodeEncodeError, ValueError):
            return None
    if isinstance(address, ipaddress.IPv4Address) or address.is_loopback or address.is_unspecified:
        return address
    if address in NAT64 or address in COMPATIBLE:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address
