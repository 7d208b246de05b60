"""Errors of wrong use that several layers raise."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Sequence

from corpus_loader.places.url_secrets import redacted

MOST_NAMED = 20  # in a message; a corpus may have 10,000 sources


class UsageError(ValueError):
    """A request that cannot be met; the message gives the alternatives."""


def and_more(names: Sequence[str], most: int = MOST_NAMED, separator: str = ", ") -> str:
    """Return the first names in a line, and how many others there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return separator.join(names[:most]) + more


def unknown_name(what: str, name: str, known: Iterable[str]) -> str:
    """Return a sentence with the nearest names, or with all of them if none is near."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {and_more(names)}"
    return f"unknown {what} {name!r}; {hint}"


def check_name(what: str, name: str, known: Iterable[str]) -> None:
    """Raise UsageError unless a name is known."""
    if name not in (names := list(known)):
        raise UsageError(unknown_name(what, name, names))


class InputError(ValueError):
    """A source's `where` that cannot be turned into files; the message says what was searched.

    Secrets of URLs are taken out of the message; values of the query stay for keys in `keys`.
    """

    def __init__(self, message: str, keys: Collection[str] = ()) -> None:
        super().__init__(redacted(message, keys))
