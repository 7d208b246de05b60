"""A URL with its parts, or a path: parsed once, where it is read from a config."""

from __future__ import annotations

from typing import Literal, Self

Kind = Literal["path", "file", "web", "object", "hdfs", "hub", "crawl", "redis", "kafka", "unknown"]
SCHEMES: dict[str, Kind] = {
    **{"http": "web", "https": "web", "file": "file", "hdfs": "hdfs", "hf": "hub", "cc": "crawl"},
    **{"s3": "object", "gs": "object", "az": "object"},
    **{"redis": "redis", "rediss": "redis", "kafka": "kafka"},
}
ANY_CASE = ("http", "https", "file", "hdfs")


class Url(str):
    """A text, and its parts as they are written: scheme://user@host/path?query#fragment.

    A part that is not there is "". Nothing is decoded, and no text is an error. `kind` is that of
    the place; "path" of a text that is no URL.
    """

    kind: Kind
    scheme: str
    user: str
    host: str
    path: str
    query: str

    def __new__(cls, text: str) -> Self:
        """Split a text by its delimiters alone."""
        if isinstance(text, cls):
            return text
        url = super().__new__(cls, text)
        url.scheme, is_url, rest = text.partition("://")
        before_query, _, url.query = rest.partition("#")[0].partition("?")
        netloc, slash, path = before_query.partition("/")
        url.user, _, url.host = netloc.rpartition("@")
        url.path = slash + path
        lower = url.scheme.lower()
        known = SCHEMES.get(lower if lower in ANY_CASE else url.scheme, "unknown")
        url.kind = known if is_url else "file" if text[:5].lower() == "file:" else "path"
        return url
