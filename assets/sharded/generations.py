"""Generations: which sequences of a source are shuffled and sharded together.

The sequences of a run that no earlier generation holds form a new generation. It absorbs the
generations before it that have at most twice as many rows as it has, as the segments of the band
index do: a sequence is rewritten a logarithmic number of times, and there are few generations. A
sequence that is gone stays in the files of its generation and is marked there; a generation of
which too much is marked is absorbed, too. Sequences are told apart by their identity alone
(assets/bucketed/sequences.py), so those that move to another part stay in their generation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from resources.absorbed_runs import absorbed_from

Ids = NDArray[np.uint64]
PartKey = tuple[str, str]  # name and fingerprint of a bucketed part

# Holders that are no part: of a row that is marked as removed, of one that was never written, and
# of one that an exported ledger has and no part was found for yet.
REMOVED, ABSENT, UNOWNED = 2**32 - 1, 2**32 - 2, 2**32 - 3


class Sequences(NamedTuple):
    """Identities of sequences, uint64 [n, 2], and their tokens without padding, uint32 [n]."""

    ids: Ids
    tokens: NDArray[np.uint32]


class OwnedSequences(NamedTuple):
    """Sequences in index order, and the number of the part that holds each now, uint32 [n]."""

    sequences: Sequences
    owners: NDArray[np.uint32]


@dataclass(frozen=True)
class PartRows:
    """A bucketed part: its key, its sequences by bucket, and how to read them."""

    key: PartKey
    counts: tuple[int, ...]
    read: Callable[[], Sequences]


@dataclass(frozen=True)
class GenerationRows:
    """A generation before a run.

    num_rows, removed, gone  its rows, those marked as removed, those removed or never written
    parts                    the parts that its owners number
    read                     read its rows
    is_lost                  True if a file of its shards is missing
    is_exported              True if it comes from an exported ledger: nothing of it is written yet
    """

    num_rows: int
    removed: int
    gone: int
    parts: tuple[PartKey, ...]
    read: Callable[[], OwnedSequences]
    is_lost: bool = False
    is_exported: bool = False


class NewGeneration(NamedTuple):
    """Sequences of a new generation, in index order: bucket after bucket, then as they are stored.

    `owners` number the parts of the run; `counts` are sequences by bucket.
    """

    sequences: Sequences
    owners: NDArray[np.uint32]
    counts: tuple[int, ...]


class Continued(NamedTuple):
    """Generations after a run.

    owners  of each generation that stays, by its place: the numbers of the run's parts; None if
             nothing changed
    new      the new generation, None if there is none
    """

    owners: dict[int, NDArray[np.uint32] | None]
    new: NewGeneration | None


def continue_generations(
    before: Sequence[GenerationRows], parts: Sequence[PartRows], rewrite_share: float
) -> Continued:
    """Find the sequences of `parts` in the generations before, and form one of those not found.

    Only parts that came and generations of which a part went are read, and what is absorbed.
    """
    numbers = {part.key: number for number, part in enumerate(parts)}
    known = {key for generation in before for key in generation.parts}
    came = [n for n, part in enumerate(parts) if part.key not in known and any(part.counts)]
    arrived = gather_rows(parts, came)
    is_new = np.ones(len(arrived.owners), np.bool_)
    owners: dict[int, NDArray[np.uint32] | None] = {}
    for place, generation in enumerate(before):
        owners[place] = None
        if generation.is_exported or any(key not in numbers for key in generation.parts):
            sequences, now = renumbered(generation, numbers)
            is_new &= ~find_again(sequences.ids, now, arrived, generation.is_exported)
            owners[place] = now
    sizes = [size_of(generation, owners[place]) for place, generation in enumerate(before)]
    absorbed = absorbed_places(sizes, int(is_new.sum()), rewrite_share)
    wanted, sources = [arrived.sequences.ids[is_new]], set(came)
    for place in absorbed:
        sequences, now = renumbered(before[place], numbers, owners.pop(place))
        wanted.append(sequences.ids[now < UNOWNED])
        sources |= set(np.unique(now[now < UNOWNED]).tolist())
    new = form_generation(parts, sorted(sources), np.concatenate(wanted))
    return Continued(owners, new if len(new.owners) else None)


def gather_rows(parts: Sequence[PartRows], numbers: Iterable[int]) -> OwnedSequences:
    """Read the sequences of some parts; each row's owner is the number of its part."""
    read = [(number, parts[number].read()) for number in numbers]
    ids = np.concatenate([np.empty((0, 2), np.uint64), *(rows.ids for _, rows in read)])
    tokens = np.concatenate([np.empty(0, np.uint32), *(rows.tokens for _, rows in read)])
    counts = [len(rows.tokens) for _, rows in read]
    owners = np.repeat(np.array([number for number, _ in read], np.uint32), counts)
    return OwnedSequences(Sequences(ids, tokens), owners)


def renumbered(
    generation: GenerationRows,
    numbers: Mapping[PartKey, int],
    known: NDArray[np.uint32] | None = None,
) -> OwnedSequences:
    """Read a generation with the parts' numbers of today; UNOWNED where the part is gone.

    `known` are its owners if they are known already.
    """
    sequences, stored = generation.read()
    if known is not None:
        return OwnedSequences(sequences, known)
    today = np.array([numbers.get(key, UNOWNED) for key in generation.parts], np.uint32)
    owners = np.array(stored)
    is_owned = owners < UNOWNED
    owners[is_owned] = today[owners[is_owned]]
    return OwnedSequences(sequences, owners)


def find_again(
    ids: Ids, owners: NDArray[np.uint32], arrived: OwnedSequences, is_exported: bool
) -> NDArray[np.bool_]:
    """Give rows without a owner the arrived part that holds them now; mark the others as gone.

    Changes `owners`; returns the arrived rows that were found, bool [m].
    """
    unowned = np.flatnonzero(owners == UNOWNED)
    places = positions_of(arrived.sequences.ids, ids[unowned])
    is_found = places >= 0
    owners[unowned] = ABSENT if is_exported else REMOVED
    owners[unowned[places[is_found]]] = arrived.owners[is_found]
    return is_found


def positions_of(wanted: Ids, ids: Ids) -> NDArray[np.int64]:
    """Return the position of each wanted identity in `ids`, int64 [m]; -1 if it is not there."""
    if not len(wanted) or not len(ids):
        return np.full(len(wanted), -1, np.int64)
    left, right = (pl.DataFrame({"low": of[:, 0], "high": of[:, 1]}) for of in (wanted, ids))
    joined = left.join(
        right.with_row_index("place"), on=["low", "high"], how="left", maintain_order="left"
    )
    return joined["place"].cast(pl.Int64).fill_null(-1).to_numpy()


class Size(NamedTuple):
    """Rows of a generation, those marked as removed, and those removed or never written."""

    rows: int
    removed: int
    gone: int
    is_lost: bool

    @property
    def live(self) -> int:
        """Rows that are still sequences of the source."""
        return self.rows - self.gone

    def is_spent(self, rewrite_share: float) -> bool:
        """Return whether too much is marked, or a file is lost that cannot be made again."""
        return self.gone > rewrite_share * self.rows or (self.is_lost and self.removed > 0)


def size_of(generation: GenerationRows, owners: NDArray[np.uint32] | None) -> Size:
    """Count the rows of a generation, with its owners of today if any changed."""
    removed, gone = generation.removed, generation.gone
    if owners is not None:
        removed, gone = int((owners == REMOVED).sum()), int((owners >= UNOWNED).sum())
    return Size(generation.num_rows, removed, gone, generation.is_lost)


def absorbed_places(sizes: Sequence[Size], num_new: int, rewrite_share: float) -> list[int]:
    """Return the places of the generations that a new one of `num_new` sequences absorbs."""
    spent = [place for place, size in enumerate(sizes) if size.is_spent(rewrite_share)]
    others = [place for place in range(len(sizes)) if place not in spent]
    num_rows = num_new + sum(sizes[place].live for place in spent)
    if not num_rows:
        return spent
    staying = absorbed_from([sizes[place].live for place in others], num_rows)
    return sorted(spent + others[staying:])


def form_generation(
    parts: Sequence[PartRows], numbers: Sequence[int], wanted: Ids
) -> NewGeneration:
    """Take the wanted sequences of some parts: bucket after bucket, in the order of the parts."""
    sequences, owners = gather_rows(parts, numbers)
    num_buckets = max((len(part.counts) for part in parts), default=0)
    of_parts = [np.repeat(np.arange(num_buckets), parts[number].counts) for number in numbers]
    buckets = np.concatenate([np.empty(0, np.int64), *of_parts])
    rows = np.flatnonzero(positions_of(sequences.ids, wanted) >= 0)
    rows = rows[np.argsort(buckets[rows], kind="stable")]
    counts = np.bincount(buckets[rows], minlength=num_buckets)
    taken = Sequences(sequences.ids[rows], sequences.tokens[rows])
    return NewGeneration(taken, owners[rows], tuple(counts.tolist()))


def spans_of(owners: NDArray[np.uint32], counts: Sequence[int]) -> dict[int, list[range]]:
    """Return for each owner of a generation the ranges of indices, by bucket, that it is within.

    A part that was new with the generation fills its ranges; other parts may be spread over them.
    """
    owned = np.flatnonzero(owners < UNOWNED)
    buckets = np.repeat(np.arange(len(counts)), counts)[owned]
    table = pl.DataFrame({"owner": owners[owned], "bucket": buckets, "index": owned})
    ends = table.group_by("owner", "bucket").agg(
        first=pl.col("index").min(), last=pl.col("index").max()
    )
    spans: dict[int, list[range]] = {}
    for owner, _, first, last in ends.sort("owner", "bucket").iter_rows():
        spans.setdefault(owner, []).append(range(first, last + 1))
    return spans


def indices_of(ids: Ids, owned: OwnedSequences, spans: Iterable[range]) -> NDArray[np.int64]:
    """Return the index of each identity of a part in a generation, int64 [n]; -1 if not of it.

    Only the rows of the generation within `spans` are looked at.
    """
    ranges = [np.arange(span.start, span.stop) for span in spans]
    within = np.concatenate([np.empty(0, np.int64), *ranges])
    within = within[owned.owners[within] < UNOWNED]
    places = positions_of(ids, owned.sequences.ids[within])
    return np.where(places >= 0, within[places] if len(within) else -1, -1)
