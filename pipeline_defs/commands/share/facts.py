"""The facts that forms about training content are filled with: one table, each with its query.

A fact is a value under a name, as `sources.web.tokens`; the manifests that it was read from, and
the query that gave it. A form renders the table and computes nothing else, so that all forms agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec


class Fact(msgspec.Struct, frozen=True):
    """A value, the manifests that it is from, and the query; of a key, the file and the key.

    A table of rows is a list of lists. None is a fact that nobody has told.
    """

    name: str
    value: Any
    manifests: tuple[str, ...]
    query: str


class PushedFile(msgspec.Struct, frozen=True):
    """A file of the data set that a form describes: its path there, and what it holds."""

    path: str
    bytes: int
    sha256: str


class Facts(msgspec.Struct, frozen=True, dict=True):
    """All facts about a corpus.

    state    digest of the states of all partitions that were read
    changes  name, earlier value and value of the facts that differ from an earlier disclosure
    files    files that are published with the form
    """

    state: str
    sources: tuple[str, ...]
    phases: tuple[str, ...]
    facts: tuple[Fact, ...]
    changes: tuple[tuple[str, str, str], ...] | None = None
    files: tuple[PushedFile, ...] = ()

    @cached_property
    def values(self) -> Mapping[str, Any]:
        """The value of each fact, by name."""
        return {fact.name: fact.value for fact in self.facts}

    def told(self, name: str) -> Any:
        """Return a value, or how it is told where it is missing."""
        value = self.values[name]
        return f"UNKNOWN (set {name})" if value is None else value

    def of(self, source: str, name: str) -> Any:
        """Return a fact about a source, or how it is told where it is missing."""
        return self.told(f"sources.{source}.{name}")

    def known(self, name: str) -> Any:
        """Return a value, None where it is missing."""
        return self.values[name]

    def sources_with(self, *provenances: str | None) -> list[str]:
        """Return the sources of some provenances; None: those of which it is not told."""
        return [s for s in self.sources if self.values[f"sources.{s}.provenance"] in provenances]

    def since(self, earlier: Sequence[Fact]) -> Facts:
        """Return the facts with what differs from earlier ones."""
        before = {fact.name: fact.value for fact in earlier}
        names = sorted({*before, *self.values})
        pairs = ((name, before.get(name), self.values.get(name)) for name in names)
        changes = tuple((name, *pair) for name, *values in pairs if (pair := difference(*values)))
        return msgspec.structs.replace(self, changes=changes)


def difference(before: Any, now: Any) -> tuple[str, str] | None:
    """Return two values as text, of tables the rows that differ; None if they are equal."""
    if before == now:
        return None
    if not isinstance(before, list) or not isinstance(now, list):
        return as_text(before), as_text(now)
    gone = [row for row in before if row not in now]
    return as_text(gone), as_text([row for row in now if row not in before])


def as_text(value: Any) -> str:
    """Return a value as a text of one line."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        cells = (" ".join(map(as_text, each)) if isinstance(each, list) else each for each in value)
        return ", ".join(map(as_text, cells)) or "none"
    if isinstance(value, int):
        return f"{value:,}"
    return "none" if value is None else str(value)


def lines_of(facts: Facts) -> Iterator[str]:
    """Yield each fact with its manifests and its query, for people."""
    for fact in facts.facts:
        yield f"{fact.name}: {as_text(fact.value)}"
        yield f"  from {', '.join(fact.manifests)}"
        yield f"  by   {fact.query}"
