"""Scan of a text column for one kind of personal data."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from resources.settings.filter_steps import PiiKind

Span = tuple[int, int]
FAR = 1 << 40  # the reach of a candidate that only `held` bounds


class Scan(NamedTuple):
    """Patterns and validator of one kind of personal data.

    Texts that match the regex `core` are searched for the regex `candidate`; `check(text, start,
    end)` yields the spans of a candidate that count. Every candidate that can count begins or holds
    one of `clues` (see `pii.clues`), has only bytes of the class `held`, and ends at most `reach`
    bytes before and after the begin of the clue: no more of a text needs to be searched. A check
    reads at most 120 characters before a candidate, and `sight` after it.
    """

    kind: PiiKind
    core: str
    candidate: str
    check: Callable[[str, int, int], Iterator[Span]]
    clues: tuple[str, ...]
    held: str = "."
    reach: int = 64
    sight: int = 640
