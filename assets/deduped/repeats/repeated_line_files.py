"""Passes of the stage `repeated` over one part, or over the hashes with one prefix.

`repeated_asset.py` plans them. A pass over a prefix takes at most `dedup.memory_bytes` over
SIMULTANEOUS.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import numpy as np
import polars as pl
import xxhash
from numpy.typing import NDArray

from assets.deduped.clusters.removal_files import Removals, remaining
from assets.deduped.deduped_records import RepeatedNumbers
from assets.deduped.repeats.repeated_lines import (
    Unit,
    add_counts,
    collect_lines,
    count_lines,
    in_order,
)
from assets.deduped.repeats.table_files import tables_with_prefix
from assets.text.table_rows import count_bytes
from resources.passes import PassFiles
from resources.settings.repeats import RepeatedLinesConfig
from resources.store.mapped_files import map_arrow, read_arrow
from resources.store.published import PublishedFile
from resources.store.records import PartRecord, Stats
from resources.tasks import SIMULTANEOUS, Task

LIST_SCHEMA = {"unit": pl.String, "text": pl.String}


@dataclass(frozen=True)
class PartInputs:
    """Inputs of the first pass over a filtered part: its documents, and the units to count."""

    part: str
    documents: PublishedFile
    removals: Removals
    configs: dict[Unit, RepeatedLinesConfig]


@dataclass(frozen=True)
class HashInputs:
    """Inputs of a pass over the hashes with a prefix: the tables of all parts, by unit.

    `place` is the prefix and its number of bits; a threshold is a number of documents.
    """

    place: tuple[int, int]
    files: dict[Unit, PassFiles]
    thresholds: dict[Unit, int]
    memory_bytes: int


@dataclass(frozen=True)
class CollectInputs:
    """Inputs of the third pass over a part: its counted hashes, and the selected ones."""

    of_part: PartInputs
    own: dict[Unit, PublishedFile]
    selected: dict[Unit, PassFiles]


@dataclass(frozen=True)
class ListInputs:
    """Inputs of the last pass over a part: its collected texts, and the totals of all parts."""

    own: dict[Unit, PublishedFile]
    totals: dict[Unit, PassFiles]


class SelectNumbers(msgspec.Struct, frozen=True):
    """Digest of the selected hashes of each part."""

    digests: list[str]


def count_part(task: Task[PartInputs]) -> list[PartRecord]:
    """First pass: count the hashes of one part."""
    texts = texts_of(task.payload)
    writer = task.writer()
    for unit, config in task.payload.configs.items():
        writer.write_arrow(unit, count_lines(texts, config, unit))
    rows, num_bytes = len(texts), count_bytes(texts)
    return [writer.publish(Stats(rows, rows, bytes=num_bytes, text_bytes=num_bytes))]


def texts_of(inputs: PartInputs) -> pl.Series:
    """Read the texts of a part without duplicates and contaminated documents."""
    return remaining(inputs.documents, inputs.removals, ["doc_id", "text"])["text"]


def select_hashes(task: Task[HashInputs]) -> list[PartRecord]:
    """Second pass: select the hashes of a prefix that enough documents have; digest each part's."""
    writer, inputs = task.writer(), task.payload
    num_parts = len(next(iter(inputs.files.values())).read())
    digests = [xxhash.xxh3_128() for _ in range(num_parts)]
    for unit, files in inputs.files.items():
        selected = frequent(inputs, unit).select("hash")
        writer.write_arrow(unit, selected)
        for digest, own in zip(digests, selected_hashes(inputs, files, selected), strict=True):
            digest.update(len(own).to_bytes(8, "little") + own.to_numpy().tobytes())
    numbers = SelectNumbers([digest.hexdigest() for digest in digests])
    return [writer.publish(Stats(numbers=numbers))]


def selected_hashes(
    inputs: HashInputs, files: PassFiles, selected: pl.DataFrame
) -> Iterator[pl.Series]:
    """Yield the selected hashes with the prefix of each part, sorted."""
    if selected.is_empty():
        yield from (selected["hash"] for _ in files.read())
        return
    for table in tables_with_prefix(files, inputs.place):
        own = table.join(selected, on="hash", how="semi", maintain_order="left")
        yield own["hash"]


def frequent(inputs: HashInputs, unit: Unit) -> pl.DataFrame:
    """Add up the tables of a unit, and return the rows that enough documents have."""
    # Adding up takes about four times the memory of the tables that are held.
    held_bytes = inputs.memory_bytes // (4 * SIMULTANEOUS)
    total = add_counts(tables_with_prefix(inputs.files[unit], inputs.place), held_bytes)
    return total.filter(pl.col("count") >= inputs.thresholds[unit])


def collect_part(task: Task[CollectInputs]) -> list[PartRecord]:
    """Third pass: count the texts of one part's lines whose hash was selected.

    A part without any is not read.
    """
    inputs = task.payload
    hashes = {unit: own_hashes(inputs, unit) for unit in inputs.of_part.configs}
    is_read = any(len(of_unit) for of_unit in hashes.values())
    texts = texts_of(inputs.of_part) if is_read else pl.Series(dtype=pl.String)
    writer = task.writer()
    for unit, config in inputs.of_part.configs.items():
        writer.write_arrow(unit, in_order(collect_lines(texts, hashes[unit], config, unit)))
    return [writer.publish(Stats())]


def own_hashes(inputs: CollectInputs, unit: Unit) -> pl.Series:
    """Return the hashes of a part that were selected."""
    if unit not in inputs.own:
        return pl.Series(dtype=pl.UInt64)
    own = read_arrow(inputs.own[unit].checked(), ["hash"])["hash"]
    tables = (map_arrow(file.checked())["hash"] for file in inputs.selected[unit].read())
    found = [own.filter(pl.Series(is_among(own, table))) for table in tables if len(table)]
    return pl.concat([own.clear(), *found])


def is_among(hashes: pl.Series, known: pl.Series) -> NDArray[np.bool_]:
    """Mark the hashes that a sorted series has."""
    first, last = places_of(hashes, known)
    return last > first


def places_of(hashes: pl.Series, known: pl.Series) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first place of each hash in a sorted series, and the place after its last.

    Parts are many, and the known hashes of all of them are one table: only few of it are read.
    Polars searches its chunks as they are mapped; NumPy would copy them into one.
    """
    first, last = (known.search_sorted(hashes, side=side) for side in ("left", "right"))
    return first.to_numpy().astype(np.int64), last.to_numpy().astype(np.int64)


def rows_with(table: pl.DataFrame, hashes: pl.Series) -> pl.DataFrame:
    """Return the rows of a table, sorted by hash, that have any of some hashes, in order."""
    first, last = places_of(hashes, table["hash"])
    is_there = last > first
    places = np.unique(first[is_there])
    sizes = np.unique(last[is_there]) - places
    return table[np.repeat(places + sizes - sizes.cumsum(), sizes) + np.arange(sizes.sum())]


def add_texts(task: Task[HashInputs]) -> list[PartRecord]:
    """Fourth pass: list the texts of a prefix that enough documents have, whatever their hashes."""
    writer = task.writer()
    numbers = RepeatedNumbers()
    for unit in task.payload.files:
        texts = frequent(task.payload, unit)
        writer.write_arrow(unit, in_order(texts))
        num_chars = texts["text"].str.len_chars().cast(pl.Int64) * texts["count"]
        counts = {f"repeated_{unit}": texts.height, f"repeated_{unit}_chars": int(num_chars.sum())}
        numbers = msgspec.structs.replace(numbers, **counts)
    return [writer.publish(Stats(numbers=numbers))]


def list_part(task: Task[ListInputs]) -> list[PartRecord]:
    """Fifth pass: list (unit, text) of the repeated texts that are in this part, sorted.

    Equal lists are equal files: counts, which change with documents of other parts, are left out.
    """
    listed = [pl.DataFrame(schema=LIST_SCHEMA)]
    for unit, own in task.payload.own.items():
        texts = read_arrow(own.checked())
        for file in task.payload.totals[unit].read() if len(texts) else ():
            near = rows_with(map_arrow(file.checked()), texts["hash"])
            repeated = texts.join(near, on=["hash", "text"], how="semi")
            listed.append(repeated.select(pl.lit(unit).alias("unit"), "text"))
    writer = task.writer()
    writer.write_parquet("repeated", pl.concat(listed).sort("unit", "text"))
    return [writer.publish(Stats())]
