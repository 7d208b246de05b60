"""Parts of URLs: the address without scheme and "www.", and the host.

The host is the text between "://" (and "user@") and the next ":", "/", "?" or "#", without a
leading "www.".
"""

from collections.abc import Iterator

import polars as pl

HOST = r"^(?:(?:[A-Za-z][A-Za-z0-9+.-]*:)?//)?(?:[^/?#@]*@)?([^/?#:@]+)"
LAST_LEVELS = r"((?:[^.]+\.){0,7}[^.]+)\.?$"
MAX_LEVELS = 8  # of a deeper host name the last eight are looked up


def host_of(url: pl.Expr) -> pl.Expr:
    """Return the last levels of the host of a URL in lower case; null if it has none."""
    return url.str.extract(HOST).str.extract(LAST_LEVELS).str.strip_prefix("www.")


def address_of(url: pl.Expr) -> pl.Expr:
    """Return a URL in lower case without scheme, "www." and slashes at the end."""
    without_scheme = url.str.replace("^[a-z][a-z0-9+.-]*://", "")
    return without_scheme.str.strip_prefix("www.").str.strip_chars_end("/")


def domains_above(host: str) -> Iterator[str]:
    """Yield a host and the domains that it is in: a.b.org, b.org, org."""
    levels = host.split(".")
    for start in range(len(levels)):
        yield ".".join(levels[start:])
