"""Scan of a text column for one kind of personal data."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from resources.settings.filter_steps import PiiKind

Span = tuple[int, int]


class Scan(NamedTuple):
    """Patterns and validator of one kind of personal data.

    Rows that match the regex `core` are searched for the regex `candidate`; `check(text, start,
    end)` yields the spans of a candidate that count. One of `clues` is in every text that has a
    core and a candidate; see `pii.clues`.
    """

    kind: PiiKind
    core: str
    candidate: str
    check: Callable[[str, int, int], Iterator[Span]]
    clues: tuple[str, ...]
