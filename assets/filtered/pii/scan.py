"""What a kind of personal data is looked for with: the two steps of a scan."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from resources.settings.filter_steps import PiiKind

Span = tuple[int, int]


class Scan(NamedTuple):
    """One way to find one kind: rows with `core` are searched for `candidate`, then checked."""

    kind: PiiKind
    core: str
    candidate: str
    check: Callable[[str, int, int], Iterator[Span]]
