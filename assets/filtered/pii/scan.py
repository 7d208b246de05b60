"""Scan of a text column for one kind of personal data."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from resources.settings.filtering.filter_steps import PiiKind

Span = tuple[int, int]
FAR = 1 << 40  # the reach of a candidate that only `held` bounds


class Scan(NamedTuple):
    """Patterns and validator of one kind of personal data.

    The regex `candidate` finds candidates; `check(text, start, end)` yields the spans of one that
    count. A candidate that can count holds the first byte of one of `clues` (see `pii.clues`), has
    only bytes of the class `held`, and reaches at most `reach` bytes before and after that byte: no
    more of a text is searched. A check reads at most 120 characters before a candidate, and `sight`
    after it. `mark` is a sign that every candidate has, and that the pattern never goes beyond a
    second time.
    """

    kind: PiiKind
    candidate: str
    check: Callable[[str, int, int], Iterator[Span]]
    clues: tuple[str, ...]
    held: str = "."
    reach: int = 64
    sight: int = 640
    mark: str = ""
