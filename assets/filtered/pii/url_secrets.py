"""Patterns and validators of secrets in the user part of URLs (RFC 3986, section 3.2.1).

The secret of `scheme://user:secret@host` counts, and a user that is a token. The user stays.
"""

import re
from collections.abc import Iterator

from assets.filtered.pii.scan import FAR, Scan, Span
from assets.filtered.pii.secret_keys import entropy
from assets.filtered.pii.secret_words import is_placeholder

# A password with a raw "@" ends at the last one before the path.
_MORE = re.compile(r"[^\s/<>\"'`?#@,]{0,100}@(?=[\w\[$({%<])")
_HOST = re.compile(r"[\w\[$({%<]")
_PORT = re.compile(r"\d{1,5}(?:[?#].*)?")
_USER_AS_SECRET = ("", "x-oauth-basic", "x")


def _check_url(text: str, start: int, end: int) -> Iterator[Span]:
    first = start + len("://")
    if not re.match(r"[A-Za-z0-9]", text[start - 1 : start]) or not _HOST.match(text, end):
        return
    while end - first < 400 and (more := _MORE.match(text, end)):
        end = more.end()
    user, colon, secret = text[first : end - 1].partition(":")
    if colon and secret not in _USER_AS_SECRET:
        is_known = user == secret or is_placeholder(secret) or len(secret) < 3
        if not is_known and not (_PORT.fullmatch(secret) and re.search(r"[.?#]", user + secret)):
            yield end - 1 - len(secret), end - 1
    elif _is_token(user):
        yield first, first + len(user)


def _is_token(user: str) -> bool:
    num_digits = sum(sign.isdigit() for sign in user)
    is_word = is_placeholder(user) or not re.fullmatch(r"[\w+/=~%-]{16,300}", user, re.ASCII)
    is_mixed = bool(re.search(r"[A-Z].*[a-z].*[A-Z]|[a-z].*[A-Z].*[a-z]", user))
    return not is_word and entropy(user) >= 3 and (num_digits >= 2 or (is_mixed and len(user) > 19))


def _check_dsn(text: str, start: int, end: int) -> Iterator[Span]:
    secret = re.search(r":([^\s:\"'`/]{3,100})@", text[start:end])
    if secret and not is_placeholder(secret[1]):
        yield start + secret.start(1), start + secret.end(1)


_USER = r"://[^\s/<>\"@]+@"
_DSN = r"[A-Za-z0-9_.-]{1,32}:[^\s:\"'`/@]{1,100}@(?:tcp|unix)\("

SCANS = (
    Scan(
        "url_secret",
        _USER,
        _check_url,
        (r"[^\s/<>\"@]@",),
        r"[^\s<>\"]",
        FAR,
        mark="@",
    ),
    Scan(
        "url_secret",
        _DSN,
        _check_dsn,
        ("@tcp(", "@unix("),
        r"[^\s\"'`/]",
        FAR,
        mark="@",
    ),
)
