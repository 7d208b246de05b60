"""The ingest ledger: all signed parts that deduplication knows, in the order of their ingestion.

A part gets a number when it is first seen, and keeps it. A part whose content changed goes to the
end under a new number. A generation is the set of rows that one run added. When a part changes, its
old rows keep their generations, and rows beyond them, as of a file that was appended to, belong to
the newest one. Rows are told apart by their position in the part or, in a part of several files, in
their file: files come and go beside each other there. Edits inside already published rows are not
detected.
"""

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from typing import Annotated, NamedTuple, Self

import msgspec
from msgspec import Meta

PartKey = tuple[str, str]  # source, name of the part
Generations = tuple[tuple[int, int], ...]  # (row that they end before, generation), by row
FileRows = tuple[tuple[str, int], ...]  # (file, row that its rows end before), by row


class Ingested(NamedTuple):
    """A part in the ingest order: its position there, and what its ledger entry says.

    `held_out`: its documents that are held out of training, None if nothing was decided on them.
    `holdout_tokens`: a number of tokens and the share that it became, of a source that has one.
    """

    position: int
    generations: Generations
    files: FileRows = ()
    held_out: tuple[str, ...] | None = None
    holdout_tokens: tuple[int, float] | None = None


Order = Mapping[PartKey, Ingested]


class LedgerEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A signed part: its number, ascending in ingest order, and the generations of its rows."""

    id: int
    generations: Generations
    source: str
    part: str
    fingerprint: str
    rows: int
    files: FileRows = ()

    @property
    def key(self) -> PartKey:
        """Source and name: the same when the part's content changes."""
        return self.source, self.part


class SignedPart(msgspec.Struct, frozen=True):
    """A part of the newest signatures."""

    source: str
    part: str
    fingerprint: str
    rows: int
    files: FileRows = ()


def continue_ledger(
    ledger: Sequence[LedgerEntry], signed: Sequence[SignedPart], order: Order, next_id: int
) -> tuple[list[LedgerEntry], list[LedgerEntry]]:
    """Return the kept ledger entries, and those of new and changed parts, numbered from `next_id`.

    `signed` is in the order of pipeline.yaml. `order` is that of another build's ledger: its parts
    come first, in that order, then changed parts, then new ones.
    """
    now = {(part.source, part.part, part.fingerprint) for part in signed}
    kept = [entry for entry in ledger if (*entry.key, entry.fingerprint) in now]
    known = {(*entry.key, entry.fingerprint) for entry in kept}
    before = {entry.key: Ingested(0, entry.generations, entry.files) for entry in ledger}
    before |= order
    newest = 1 + max((g for each in before.values() for _, g in each.generations), default=0)
    history = History.of(before, signed)
    added = [part for part in signed if (part.source, part.part, part.fingerprint) not in known]
    places = [*order, *(entry.key for entry in ledger if entry.key not in order)]
    position = {key: number for number, key in enumerate(places)}
    added.sort(key=lambda part: position.get((part.source, part.part), len(places)))
    return kept, [
        LedgerEntry(
            next_id + number,
            history.generations_of(part, newest),
            part.source,
            part.part,
            part.fingerprint,
            part.rows,
            part.files,
        )
        for number, part in enumerate(added)
    ]


class History(NamedTuple):
    """Generations of the rows of parts, and of files that are whole in one part."""

    parts: Mapping[PartKey, Generations]
    files: Mapping[tuple[str, str], Generations]  # by source and file
    split: Set[tuple[str, str]]  # files that have several parts, or had

    @classmethod
    def of(cls, parts: Mapping[PartKey, Ingested], signed: Sequence[SignedPart]) -> Self:
        """Collect the generations of all parts and their files."""
        now = Counter((part.source, name) for part in signed for name, _ in part.files)
        then = Counter((key[0], name) for key, part in parts.items() for name, _ in part.files)
        split = {file for counts in (now, then) for file, number in counts.items() if number > 1}
        files: dict[tuple[str, str], Generations] = {}
        for (source, _), part in parts.items():
            start = 0
            for name, stop in part.files:
                files[source, name] = between(part.generations, start, stop)
                start = stop
        return cls({key: part.generations for key, part in parts.items()}, files, split)

    def generations_of(self, part: SignedPart, newest: int) -> Generations:
        """Return the generations of a part; rows that are new in their file are of the `newest`."""
        names = [(part.source, name) for name, _ in part.files]
        if not names or not self.split.isdisjoint(names):
            return extend(self.parts.get((part.source, part.part), ()), part.rows, newest)
        spans: list[tuple[int, int]] = []
        start = 0
        for name, stop in part.files:
            known = self.files.get((part.source, name))
            if known is None and len(names) == 1:  # of a ledger that did not name files
                known = self.parts.get((part.source, part.part))
            for end, generation in extend(known or (), stop - start, newest):
                if spans and spans[-1][1] == generation:
                    spans.pop()
                spans.append((start + end, generation))
            start = stop
        return tuple(spans)


def between(generations: Generations, start: int, stop: int) -> Generations:
    """Return the generations of some rows of a part, counted from the first of them."""
    ends = ((min(end, stop) - start, generation) for end, generation in generations)
    return tuple((end, generation) for end, generation in ends if end > 0)


def extend(generations: Generations, rows: int, newest: int) -> Generations:
    """Return the generations of a part that has `rows` rows now; new rows are of the `newest`."""
    spans: list[tuple[int, int]] = []
    for stop, generation in (*generations, (rows, newest)):
        start = spans[-1][0] if spans else 0
        if min(stop, rows) > start:
            spans.append((min(stop, rows), generation))
    return tuple(spans)


class _Exported(msgspec.Struct):
    """An entry of an exported ledger, as far as it is read."""

    source: str
    part: str
    generations: Generations = ()  # of a part without rows
    files: FileRows = ()
    held_out: tuple[str, ...] | None = None
    holdout_tokens: tuple[int, Annotated[float, Meta(ge=0, le=1)]] | None = None


def read_order(name: str, content: bytes) -> dict[PartKey, Ingested]:
    """Return the parts of an exported ledger.

    Raises ValueError if the file is not a ledger, or names a part twice.
    """
    try:
        exported = msgspec.json.decode(content, type=list[_Exported])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(
            f"dedup.ledger: {name} is no ledger ({error}). Export one with "
            "`corpus duplicates ledger`."
        ) from error
    order = {
        (part.source, part.part): Ingested(
            position, part.generations, part.files, part.held_out, part.holdout_tokens
        )
        for position, part in enumerate(exported)
    }
    if len(order) < len(exported) or any(g < 1 for part in exported for _, g in part.generations):
        raise ValueError(
            f"dedup.ledger: {name} names a part twice, or a generation below 1. Export it again "
            "with `corpus duplicates ledger`."
        )
    return order
