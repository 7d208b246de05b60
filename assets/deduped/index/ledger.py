"""The ingest ledger: all signed parts that deduplication knows, in the order of their ingestion.

A part gets a number when it is first seen, and keeps it. A part whose content changed goes to the
end under a new number. A generation is the set of rows that one run added. When a part changes, its
old rows keep their generations, and rows beyond them, as of a file that was appended to, belong to
the newest one. Rows are told apart by position: edits inside already published rows are not
detected.
"""

from collections.abc import Mapping, Sequence

import msgspec

PartKey = tuple[str, str]  # source, name of the part
Generations = tuple[tuple[int, int], ...]  # (row that they end before, generation), both ascending
Order = Mapping[PartKey, tuple[int, Generations]]  # position and generations of each part


class LedgerEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A signed part: its number, ascending in ingest order, and the generations of its rows."""

    id: int
    generations: Generations
    source: str
    part: str
    fingerprint: str
    rows: int

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
    before = {entry.key: entry.generations for entry in ledger}
    before |= {key: generations for key, (_, generations) in order.items()}
    newest = 1 + max((g for spans in before.values() for _, g in spans), default=0)
    added = [part for part in signed if (part.source, part.part, part.fingerprint) not in known]
    places = [*order, *(entry.key for entry in ledger if entry.key not in order)]
    position = {key: number for number, key in enumerate(places)}
    added.sort(key=lambda part: position.get((part.source, part.part), len(places)))
    return kept, [
        LedgerEntry(
            next_id + number,
            extend(before.get((part.source, part.part), ()), part.rows, newest),
            part.source,
            part.part,
            part.fingerprint,
            part.rows,
        )
        for number, part in enumerate(added)
    ]


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
    generations: Generations


def read_order(name: str, content: bytes) -> dict[PartKey, tuple[int, Generations]]:
    """Return (position, generations) of each part in an exported ledger.

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
        (part.source, part.part): (position, part.generations)
        for position, part in enumerate(exported)
    }
    if len(order) < len(exported) or any(g < 1 for part in exported for _, g in part.generations):
        raise ValueError(
            f"dedup.ledger: {name} names a part twice, or a generation below 1. Export it again "
            "with `corpus duplicates ledger`."
        )
    return order
