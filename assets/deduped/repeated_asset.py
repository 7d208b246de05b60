"""repeated: the lines and paragraphs that a source repeats, and those that each part has.

Five passes: count the hashes of each part; select those with enough documents, prefix by prefix;
count the texts behind them, part by part; add these up, prefix by prefix; list for each part those
that it has, which is all that `deduped` reads.
Every pass reads files of earlier ones. Memory is one part, or `dedup.memory_bytes` over four. A new
file costs its own counting, and a second reading of the parts with lines that it brought to the
threshold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
import numpy as np
import polars as pl
import xxhash
from numpy.typing import NDArray

from assets.deduped.deduped_records import DUPLICATES, REPEATED, RepeatedNumbers, RepeatedProvenance
from assets.deduped.index.band_index import ENTRY_BYTES, prefix_bits_for
from assets.deduped.repeats.repeated_lines import (
    LIST_SCHEMA,
    Unit,
    add_counts,
    collect_lines,
    configs_of,
    count_lines,
    in_order,
    most_frequent,
    repeated_markdown,
    units_of,
)
from assets.deduped.repeats.table_files import tables_with_prefix
from assets.deduped.signed_files import Removals, clustered_documents, remaining, removals_by_part
from assets.text.table_rows import count_bytes, numbers_between
from corpus_loader.places import stage_names
from resources.corpus import Corpus
from resources.materialize.excerpts import DocumentText
from resources.passes import Earlier, Pass, PassFiles, file_of, in_passes, list_files
from resources.settings.repeats import RepeatedLinesConfig
from resources.stage import MainTable, Metadata, Outlook, Stage
from resources.store.mapped_files import map_arrow, read_arrow
from resources.store.published import PublishedFile
from resources.store.records import Manifest, PartRecord, Stats, numbers_of
from resources.tasks import GLOBAL, SIMULTANEOUS, Outcome, Plan, Task, tasks_of


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
    selected = [own.clear()]
    for file in inputs.selected[unit].read():
        first, last = places_of(own, map_arrow(file.checked())["hash"])
        selected.append(own.filter(pl.Series(last > first)))
    return pl.concat(selected)


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
    return table[numbers_between(np.unique(first[is_there]), np.unique(last[is_there]))]


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


COUNT, SELECT, COLLECT, TOTAL = "count-", "select-", "collect-", "total-"  # what parts are named by


Inputs = TypeVar("Inputs")
RepeatedManifest = Manifest[RepeatedProvenance, RepeatedNumbers]


def plan_repeated(corpus: Corpus, source: str) -> Plan:
    """Plan the tasks of the first pass, one per filtered part."""
    dedup = corpus.settings.dedup
    configs = units_of(dedup)
    manifest = clustered_documents(corpus, source)
    clusters = corpus.store.newest(DUPLICATES, GLOBAL)
    removals = removals_by_part(corpus, source)
    comparisons = {unit: config.comparison() for unit, config in configs.items()}
    make = tasks_of(corpus, REPEATED, source)
    tasks = []
    for part in manifest.parts:
        documents = corpus.store.part_file(manifest, part, "documents")
        removed = removals[part.name]
        inputs = PartInputs(part.name, documents, removed, configs)
        made_of = (comparisons, part.fingerprint, removed.identity)
        tasks.append(make.task(COUNT + part.name, made_of, inputs, work_bytes=documents.bytes))
    provenance = RepeatedProvenance(manifest.fingerprint, clusters.fingerprint)
    return Plan(tasks, configs_of(dedup), provenance)


def files_by_unit(outcomes: Sequence[Outcome], units: Sequence[Unit]) -> dict[Unit, PassFiles]:
    """List the files of each outcome's part, by unit."""
    return {unit: list_files(outcomes, unit) for unit in units}


def file_by_unit(outcome: Outcome, units: Sequence[Unit]) -> dict[Unit, PublishedFile]:
    """Return the file of one outcome's part, by unit; units that it has nothing of are left out."""
    record = outcome.records[0]
    return {
        unit: file_of(outcome, unit)
        for unit in units
        if (file := record.file(unit)) is not None and file.rows
    }


def plan_select(
    corpus: Corpus, tasks: list[Task[PartInputs]], earlier: Earlier
) -> Iterator[Task[HashInputs]]:
    """Plan the second pass: one task per prefix of the hash."""
    (counted,) = earlier
    configs, memory_bytes = units_of(corpus.settings.dedup), corpus.settings.dedup.memory_bytes
    records = [outcome.records[0] for outcome in counted]
    num_documents = sum(record.stats.rows_kept for record in records)
    thresholds = {unit: config.threshold(num_documents) for unit, config in configs.items()}
    num_hashes = sum(file.rows for record in records for file in record.files)
    bits = prefix_bits_for(num_hashes * ENTRY_BYTES, memory_bytes)
    made_of = (thresholds, bits, [task.fingerprint for task in tasks])
    files = files_by_unit(counted, list(configs))
    for prefix in range(1 << bits):
        name = f"{SELECT}{prefix:04d}"
        inputs = HashInputs((prefix, bits), files, thresholds, memory_bytes)
        yield next_task(corpus, tasks[0], name, made_of, inputs)


def plan_collect(
    corpus: Corpus, tasks: list[Task[PartInputs]], earlier: Earlier
) -> Iterator[Task[CollectInputs]]:
    """Plan the third pass: one task per part, made of those of its hashes that were selected."""
    counted, selected = earlier
    digests = [numbers_of(outcome.records[0], SelectNumbers).digests for outcome in selected]
    units = list(tasks[0].payload.configs)
    files = files_by_unit(selected, units)
    for number, (task, outcome) in enumerate(zip(tasks, counted, strict=True)):
        inputs = CollectInputs(task.payload, file_by_unit(outcome, units), files)
        made_of = (task.fingerprint, [of_prefix[number] for of_prefix in digests])
        yield next_task(corpus, task, COLLECT + task.payload.part, made_of, inputs)


def plan_total(
    corpus: Corpus, tasks: list[Task[PartInputs]], earlier: Earlier
) -> Iterator[Task[HashInputs]]:
    """Plan the fourth pass: one task per prefix of the hash."""
    _, selected, collected = earlier
    fingerprints = [outcome.task.fingerprint for outcome in collected]
    files = files_by_unit(collected, list(tasks[0].payload.configs))
    for outcome in selected:
        hashes: HashInputs = outcome.task.payload
        inputs = HashInputs(hashes.place, files, hashes.thresholds, hashes.memory_bytes)
        name = outcome.task.name.replace(SELECT, TOTAL)
        made_of = (fingerprints, hashes.thresholds, hashes.place)
        yield next_task(corpus, outcome.task, name, made_of, inputs)


def plan_list(
    corpus: Corpus, tasks: list[Task[PartInputs]], earlier: Earlier
) -> Iterator[Task[ListInputs]]:
    """Plan the fifth pass: one task per part, under the name of the filtered part."""
    _, _, collected, totalled = earlier
    totals = [outcome.task.fingerprint for outcome in totalled]
    units = list(tasks[0].payload.configs)
    files = files_by_unit(totalled, units)
    for task, outcome in zip(tasks, collected, strict=True):
        inputs = ListInputs(file_by_unit(outcome, units), files)
        made_of = (outcome.task.fingerprint, totals)
        yield next_task(corpus, outcome.task, task.payload.part, made_of, inputs)


def next_task(
    corpus: Corpus, task: Task, name: str, made_of: Sequence[Any], inputs: Inputs
) -> Task[Inputs]:
    """Make a task of a later pass, of as much work as one of an earlier pass."""
    make = tasks_of(corpus, REPEATED, task.partition)
    return make.task(name, (name, made_of), inputs, work_bytes=task.work_bytes)


def describe_repeated(corpus: Corpus, manifest: RepeatedManifest) -> Metadata:
    """Show the most frequent lines and paragraphs; their number is in the stats."""
    shown = {}
    for unit in manifest.config:
        tables = [
            most_frequent(map_arrow(corpus.store.part_file(manifest, part, unit).checked()))
            for part in manifest.parts
            if part.name.startswith(TOTAL)
        ]
        if tables:
            shown[f"most_repeated_{unit}"] = DocumentText(
                repeated_markdown(most_frequent(pl.concat(tables)))
            )
    return shown


STAGE = Stage(
    *REPEATED.fields(),
    description="Lines and paragraphs that many documents of the source share: boilerplate to be "
    "cut.",
    group="deduplicate",
    partitions="source",
    after=(stage_names.FILTERED, stage_names.DUPLICATES),
    outlook=Outlook("same"),
    kinds=frozenset({"numba"}),
    settings=lambda settings: configs_of(settings.dedup),
    plan=plan_repeated,
    work=count_part,
    is_used=lambda settings: bool(units_of(settings.dedup)),
    main_table=MainTable(
        "repeated", {"unit": "lines or paragraphs", "text": "the line or paragraph"}
    ),
    run=in_passes(
        Pass(count_part),
        Pass(select_hashes, plan_select, shares_memory=True),
        Pass(collect_part, plan_collect),
        Pass(add_texts, plan_total, shares_memory=True),
        Pass(list_part, plan_list),
    ),
    describe=describe_repeated,
)
