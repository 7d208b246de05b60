"""The facts that forms about training content are filled with: one table, each with its query.

A fact is a value under a name, as `sources.web.tokens`; the manifests that it was read from, and
the query that gave it. A form renders the table and computes nothing else, so that all forms agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec

HUB = "https://huggingface.co/datasets/"


class Fact(msgspec.Struct, frozen=True):
    """A value, the manifests that it is from, and the query; of a key, the file and the key.

    A table is a list of rows. None is what nobody has told.
    """

    name: str
    value: Any
    manifests: tuple[str, ...]
    query: str


class PushedFile(msgspec.Struct, frozen=True):
    """A file of the data set that a form describes."""

    path: str
    bytes: int
    sha256: str


class Facts(msgspec.Struct, frozen=True, dict=True):
    """All facts about a corpus.

    state    digest of the states that were read
    changes  name, earlier value and value of the facts that differ from an earlier disclosure
    files    files that are published beside the form
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

    @property
    def title(self) -> str:
        """The name of the data set, or one that its state gives it: formats ask for a name."""
        return self.known("disclosure.title") or f"tokenmill-{self.state}"

    def known(self, name: str) -> Any:
        """Return a value, None if nobody has told it."""
        return self.values[name]

    def told(self, name: str) -> Any:
        """Return a value, or which key to set."""
        value = self.values[name]
        return f"UNKNOWN (set {name})" if value is None else value

    def stated(self, source: str, keys: Sequence[str]) -> dict[str, str]:
        """Return what is told of a source under some keys, as text."""
        found = {key: self.known(f"sources.{source}.{key}") for key in keys}
        return {key: as_text(value) for key, value in found.items() if value is not None}

    def of(self, source: str, name: str) -> Any:
        """Return a fact about a source, or which key to set."""
        return self.told(f"sources.{source}.{name}")

    def you(self, key: str) -> Any:
        """Return a fact about the provider or the model, or which key to set."""
        return self.told(f"disclosure.{key}")

    def first(self, source: str, name: str) -> list[str]:
        """Return the first column of a table of a source."""
        return ["not stated" if row[0] is None else row[0] for row in self.of(source, name)]

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        """Return the rows of a table of every source, behind the source's name."""
        tables = ((source, self.of(source, name)) for source in self.sources)
        found = ((source, *row) for source, rows in tables for row in rows)
        return [(s, "not stated" if value is None else value, *rest) for s, value, *rest in found]

    def removed_by(self, *rules: str) -> list[tuple[Any, ...]]:
        """Return source, rule and documents of the rules that begin so."""
        return [row for row in self.rows("removed") if row[1].startswith(rules)]

    def sources_of(self, *provenances: str | None) -> list[str]:
        """Return the sources of some provenances; None: those of which it is not told."""
        return [s for s in self.sources if self.values[f"sources.{s}.provenance"] in provenances]

    def has(self, *provenances: str) -> str:
        """Return whether there are sources of some provenances: Yes, No, or which key to set."""
        if self.sources_of(*provenances):
            return "Yes"
        untold = [f"sources.{source}.provenance" for source in self.sources_of(None)]
        return f"UNKNOWN (set {', '.join(untold)})" if untold else "No"

    def since(self, earlier: Sequence[Fact]) -> Facts:
        """Return the facts with what differs from earlier ones."""
        before = {fact.name: fact.value for fact in earlier}
        names = sorted({*before, *self.values})
        pairs = ((name, before.get(name), self.values.get(name)) for name in names)
        changes = tuple((name, *differing(*pair)) for name, *pair in pairs if pair[0] != pair[1])
        return msgspec.structs.replace(self, changes=changes)


def differing(before: Any, now: Any) -> tuple[str, str]:
    """Return two values as text; of tables the rows that the other has not."""
    if isinstance(before, list) and isinstance(now, list):
        gone = [row for row in before if row not in now]
        before, now = gone, [row for row in now if row not in before]
    return as_text(before), as_text(now)


def as_text(value: Any) -> str:
    """Return a value as text: numbers with commas, cells of rows with blanks between them."""
    if isinstance(value, list | tuple):
        rows = (" ".join(map(as_text, row)) if isinstance(row, list) else row for row in value)
        return ", ".join(map(as_text, rows)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else "none" if value is None else str(value)


def explained(facts: Facts) -> Iterator[str]:
    """Yield each fact with its manifests and its query, for people."""
    for fact in facts.facts:
        yield f"{fact.name}: {as_text(fact.value)}"
        yield f"  from {', '.join(fact.manifests)}"
        yield f"  by   {fact.query}"
