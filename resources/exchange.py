"""Run a stage whose parts exchange records by their hash: by part, by prefix, and back.

    run=exchange(
        SUBSTRINGS,
        Round("picks-", find_picks, "twice-", find_twice),
        Round("runs-", find_runs, "elsewhere-", find_elsewhere),
        last=("spans-", find_spans),
    )

A round is two passes. Of each part it makes tables with a column `hash`, UInt64, that they are
sorted by; of the rows of all parts whose hashes have the same first bits it makes tables of the
same kinds, sorted so too. In the next round, or in the last pass, a part looks up what became of
the hashes that it had. Memory is one part, or `dedup.memory_bytes` over four.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np
import polars as pl

from resources.corpus import Corpus
from resources.numbers_between import numbers_between
from resources.passes import Earlier, Pass, PassFiles, in_passes, list_files
from resources.store.mapped_files import map_arrow, read_arrow
from resources.store.published import PublishedFile
from resources.store.records import PartRecord, StageRecords, Stats, numbers_of
from resources.store.store import published_file
from resources.tasks import SIMULTANEOUS, Outcome, RunStage, Task, Work, tasks_of

Inputs = TypeVar("Inputs")
Shared = TypeVar("Shared")

ENTRY_BYTES = 224  # of a task, twice the measured peak: arrays below 32 MB stay in the heap
MAX_PREFIX_BITS = 12


def prefix_bits_for(num_bytes: int, memory_bytes: int, most: int = MAX_PREFIX_BITS) -> int:
    """Return the bits of a hash that cut what takes so many bytes, so that four cuts fit memory."""
    cuts = max(1, -(-num_bytes * SIMULTANEOUS // memory_bytes))
    return min(most, (cuts - 1).bit_length())


def keys_with_prefix(prefix: int, prefix_bits: int) -> tuple[int, int]:
    """Return the first and the last key, 64 bits, that begin with a prefix."""
    width = 64 - prefix_bits
    return prefix << width, (prefix + 1 << width) - 1


@dataclass(frozen=True)
class Made:
    """Tables that a pass makes, by kind, and the stats of their part."""

    tables: Mapping[Any, pl.DataFrame]
    stats: Stats[Any] = field(default_factory=Stats)


@dataclass(frozen=True)
class OfPart(Generic[Inputs]):
    """What a pass over parts is given: the inputs that the stage planned for one, and its number.

    own    files that the round before made of the part, and their rows, by kind
    found  files that it made of all parts, in the order of prefixes
    """

    number: int
    inputs: Inputs
    own: Mapping[str, tuple[PublishedFile, int]]
    found: Mapping[str, PassFiles]

    def read(self, kind: str) -> pl.DataFrame:
        """Read the table that the round before made of the part."""
        return read_arrow(self.own[kind][0].checked())

    def look_up(self, kind: str) -> pl.DataFrame:
        """Return what was made of all parts for the hashes in the part's own table, in order.

        Tables of all parts are mapped, and only the pages of the wanted rows are read.
        """
        (file, rows), found = self.own[kind], self.found[kind].read()
        if not rows:
            return map_arrow(found[0].checked()).clear()
        own, bits = read_arrow(file.checked(), ["hash"]), (len(found) - 1).bit_length()
        hashes = (with_prefix(own, (prefix, bits))["hash"] for prefix in range(len(found)))
        tables = (map_arrow(each.checked()) for each in found)
        return pl.concat([rows_with(*each) for each in zip(tables, hashes, strict=True)])


@dataclass(frozen=True)
class OfPrefix(Generic[Shared]):
    """What a pass over prefixes is given: files of all parts by kind, and what is for all prefixes.

    `place` is the prefix and its number of bits; `memory_bytes` what the task may take.
    """

    place: tuple[int, int]
    files: Mapping[str, PassFiles]
    shared: Shared
    memory_bytes: int

    def tables(self, kind: str) -> Iterator[pl.DataFrame]:
        """Yield the rows with the prefix of each part: only they are read.

        They are copied into memory, since Linux maps 65,530 files a process.
        """
        for file in self.files[kind].read():
            if self.place[1]:
                yield _copied(with_prefix(map_arrow(file.checked()), self.place))
            else:
                yield read_arrow(file.checked())


def with_prefix(table: pl.DataFrame, place: tuple[int, int]) -> pl.DataFrame:
    """Return the rows of a table, sorted by hash, with a prefix of so many bits."""
    first, last = keys_with_prefix(*place)
    start = table["hash"].search_sorted(first, side="left")
    return table.slice(start, table["hash"].search_sorted(last, side="right") - start)


def rows_with(table: pl.DataFrame, hashes: pl.Series) -> pl.DataFrame:
    """Return the rows of a table, sorted by hash, that have any of some hashes, in order.

    Its chunks are searched as they are mapped: only a few pages of each are read.
    """
    wanted, rows, start = hashes.to_numpy(), [np.empty(0, np.int64)], 0
    for chunk in table["hash"].get_chunks():
        known = chunk.to_numpy()
        first = known.searchsorted(wanted)
        is_inside = first < len(known)
        first = first[is_inside]
        first = np.unique(first[known[first] == wanted[is_inside]])
        rows.append(start + numbers_between(first, known.searchsorted(known[first], "right")))
        start += len(known)
    return table[np.concatenate(rows)]


def _copied(rows: pl.DataFrame) -> pl.DataFrame:
    """Copy rows of a mapped table, whose file is mapped no longer."""
    table = rows.to_arrow(compat_level=pl.CompatLevel.oldest())
    copied = pl.from_arrow(table.take(np.arange(rows.height)))
    assert isinstance(copied, pl.DataFrame)
    return copied


MadeOf = Callable[[Any, tuple[int, int], list[str]], object]


@dataclass(frozen=True)
class Round:
    """Two passes, over parts and over prefixes: what names of their tasks begin with, their work.

    `made_of` gives JSON that tells the tasks over prefixes apart, of what is for all prefixes, the
    prefix and its bits, and the fingerprints of the parts.
    """

    part_name: str
    emit: Callable[[OfPart[Any]], Made]
    prefix_name: str
    combine: Callable[[OfPrefix[Any]], Made]
    made_of: MadeOf = lambda shared, place, parts: (parts, shared, place)


class PartDigests(msgspec.Struct, frozen=True):
    """Digests of what a part finds under a prefix, by the part's number.

    With these numbers of its tables, a round makes tables anew of those parts only for which
    something else is found; without them, of all parts if anything changes.
    """

    digests: list[str] = []


def exchange(
    records: StageRecords[Any, Any],
    *rounds: Round,
    last: tuple[str, Work],
    shared: Callable[[Corpus, Sequence[Outcome]], Any] = lambda _corpus, _parts: None,
    is_kept: bool = False,
) -> RunStage:
    """Return the `run` of a stage that exchanges records in rounds and then works part by part.

    Its plan has the tasks of one pass over parts, by their names, and those of others are made of
    them. `shared` gives JSON for all prefixes, from the outcomes of the first pass. `is_kept`: the
    manifest names the parts of all passes; else of the last only, whose tasks are then planned.
    """
    passes = []
    for each in rounds:
        parts = partial(plan_parts, records, each.part_name)
        prefixes = partial(plan_prefixes, records, each, shared)
        passes += [
            Pass(Publish(each.emit), parts, is_kept=is_kept),
            Pass(Publish(each.combine), prefixes, shares_memory=True, is_kept=is_kept),
        ]
    return in_passes(*passes, Pass(last[1], partial(plan_parts, records, last[0])))


@dataclass(frozen=True)
class Publish:
    """Work of a task: make tables, and publish them so that they can be mapped."""

    make: Callable[[Any], Made]

    def __call__(self, task: Task[Any]) -> list[PartRecord]:
        """Do the work."""
        made, writer = self.make(task.payload), task.writer()
        for kind, table in made.tables.items():
            writer.write_arrow(kind, table)
        return [writer.publish(made.stats)]


def plan_parts(
    records: StageRecords[Any, Any], name: str, corpus: Corpus, tasks: list[Task], earlier: Earlier
) -> Iterator[Task]:
    """Plan a pass over parts: a task is made of that of the round before, and of what it found."""
    parts, prefixes = earlier[-2:] or ([], [])
    if earlier and not prefixes:  # all that was planned is published
        yield from tasks
        return
    found = files_by_kind(prefixes)
    digests = [numbers_of(each.records[0], PartDigests).digests for each in prefixes]
    make = tasks_of(corpus, records, tasks[0].partition)
    for number, task in enumerate(tasks):
        before = parts[number : number + 1]
        own = {
            file.kind: (published_file(task.folder.folder / file.path, file), file.rows)
            for each in before
            for file in each.records[0].files
        }
        inputs = OfPart(number, task.payload, own, found)
        planned, of_part = task.name.split("-", 1)
        if name == f"{planned}-":
            yield replace(task, payload=inputs)
            continue
        finds = [
            by_part[number] if by_part else each.task.fingerprint
            for by_part, each in zip(digests, prefixes, strict=True)
        ]
        fingerprint = before[0].task.fingerprint if before else task.fingerprint
        made_of = (name + of_part, (fingerprint, finds))
        yield make.task(name + of_part, made_of, inputs, work_bytes=task.work_bytes)


def plan_prefixes(
    records: StageRecords[Any, Any],
    one: Round,
    shared: Callable[[Corpus, Sequence[Outcome]], Any],
    corpus: Corpus,
    tasks: list[Task],
    earlier: Earlier,
) -> Iterator[Task[OfPrefix[Any]]]:
    """Plan a pass over prefixes, which are no fewer than in the rounds before."""
    files, memory_bytes = files_by_kind(earlier[-1]), corpus.settings.dedup.memory_bytes
    bits = prefix_bits_for(max(map(count_rows, earlier[::2])) * ENTRY_BYTES, memory_bytes)
    for_all, parts = shared(corpus, earlier[0]), [each.task.fingerprint for each in earlier[-1]]
    make = tasks_of(corpus, records, tasks[0].partition)
    for prefix in range(1 << bits):
        name, place = f"{one.prefix_name}{prefix:04d}", (prefix, bits)
        inputs = OfPrefix(place, files, for_all, memory_bytes // SIMULTANEOUS)
        made_of = (name, one.made_of(for_all, place, parts))
        yield make.task(name, made_of, inputs, work_bytes=tasks[0].work_bytes)


def files_by_kind(outcomes: Sequence[Outcome]) -> dict[str, PassFiles]:
    """List the files of each outcome's part, by kind."""
    kinds = [file.kind for each in outcomes[:1] for file in each.records[0].files]
    return {kind: list_files(outcomes, kind) for kind in kinds}


def count_rows(outcomes: Sequence[Outcome]) -> int:
    """Count the rows in all tables of a pass."""
    return sum(file.rows for outcome in outcomes for file in outcome.records[0].files)
