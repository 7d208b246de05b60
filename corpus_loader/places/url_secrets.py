"""Secrets in URLs: left out of what is recorded or shown, and sent with requests only.

The secrets of a URL are its user, its password, and the values of its query. Its identity is the
URL without them (and without the fragment, which is never sent).
"""

from __future__ import annotations

import base64
import netrc
import os
import re
import urllib.parse
from collections.abc import Collection

from corpus_loader.places.urls import Url

HIDDEN = "***"
NETRC_VARIABLE = "NETRC"
URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")
USERINFO = re.compile(r"(?<=://)[^/?#\s]*@")
# Keys of a query whose values let others in, in the URLs of pages that documents are from.
SECRET_PAIR = re.compile(
    r"([?&;](?:[\w.-]*(?:token|secret|passw(?:or)?d|signature|credential|api[_-]?key|access[_-]?key)"
    r"[\w.-]*|auth|authorization|key|jwt|pass|pwd|sas|sid|sig|code|(?:php|j)?sess(?:ion)?[_-]?id)=)"
    r"[^&;?#\s\"'<>]+",
    re.IGNORECASE,
)
AFTER_URL = ".,:;)]}>\"'`"  # punctuation of a text that follows a URL in it


class NetrcError(ValueError):
    """A netrc file that cannot be read."""


def identity(url: str, keys: Collection[str] = ()) -> str:
    """Return a URL without its secrets; pairs of the query whose key is in `keys` stay."""
    parts = Url(url)
    kept = "&".join(pair for pair in parts.query.split("&") if pair and key_of(pair) in keys)
    return f"{parts.scheme}://{parts.host}{parts.path}{'?' if kept else ''}{kept}"


def key_of(pair: str) -> str:
    """Return the key of one pair of a query."""
    return urllib.parse.unquote_plus(pair.partition("=")[0])


def shown(url: str, keys: Collection[str] = ()) -> str:
    """Return a URL, or an entry of `where`, for a message.

    Values of the query are hidden, except those of `keys`; user and password are left out.
    """
    if "://" not in url:
        scheme = url.partition(":")[0]
        return f"{scheme}:{HIDDEN}" if scheme.lower() in ("http", "https") and ":" in url else url
    if is_torn(url):
        return f"{url.partition('://')[0]}://{HIDDEN}"
    parts = Url(url)
    query = "&".join(shown_pair(pair, keys) for pair in parts.query.split("&") if pair)
    return f"{parts.scheme}://{parts.host}{parts.path}{'?' if query else ''}{query}"


def shown_pair(pair: str, keys: Collection[str]) -> str:
    """Return a pair of a query with its value hidden; all of it if it is no pair."""
    if "=" not in pair:
        return HIDDEN
    return pair if key_of(pair) in keys else f"{pair.partition('=')[0]}={HIDDEN}"


def is_torn(url: str) -> bool:
    """Check for a user or password with a plain "/", "?" or "#", which ends the host too early."""
    parts = Url(url)
    has_port = re.fullmatch(r"(\[.*\]|[^:]*)(:\d*)?", parts.host)
    return not has_port and "@" in url[len(parts.scheme) + 3 + len(parts.host) :]


def redacted(text: str, keys: Collection[str] = ()) -> str:
    """Return a text in which no URL has a secret; every error and report passes through here."""

    def replace(match: re.Match[str]) -> str:
        url = match[0].rstrip(AFTER_URL)
        return shown(url, keys) + match[0][len(url) :]

    return URL.sub(replace, USERINFO.sub("", text)) if "://" in text else text


def masked(text: str) -> str:
    """Return a text of a document, or its URL, without what lets others in: for showing it.

    User and password of URLs, and the values of known keys of a query, are hidden.
    """
    if "://" in text:
        text = USERINFO.sub(f"{HIDDEN}@", text)
    return SECRET_PAIR.sub(rf"\1{HIDDEN}", text) if "=" in text else text


def authorization(url: str) -> str | None:
    """Return the Authorization header for a URL: by its own user and password, or by netrc.

    Raises NetrcError if the file that NETRC names is missing or broken. A broken ~/.netrc counts as
    none: it may be meant for other programs.
    """
    parts = Url(url)
    if parts.user:
        return basic(urllib.parse.unquote(parts.user))
    host = urllib.parse.urlsplit(f"//{parts.host}").hostname or ""
    path = os.environ.get(NETRC_VARIABLE)
    try:
        known = netrc.netrc(path).authenticators(host)
    except (OSError, UnicodeDecodeError, netrc.NetrcParseError) as error:
        if path is None:
            return None
        place = f", line {error.lineno}" if isinstance(error, netrc.NetrcParseError) else ""
        raise NetrcError(
            f"{path}{place}: no readable netrc file ({type(error).__name__}). Correct it, or the "
            f"variable {NETRC_VARIABLE}."
        ) from None  # the parser's own message quotes passwords
    return None if known is None else basic(f"{known[0]}:{known[2] or ''}")


def basic(user: str) -> str:
    """Return the header for "user:password" (RFC 7617)."""
    pair = user if ":" in user else f"{user}:"
    return "Basic " + base64.b64encode(pair.encode()).decode("ascii")
