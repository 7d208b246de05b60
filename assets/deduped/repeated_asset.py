"""repeated: the lines and paragraphs that a source repeats, and those that each part has.

Parts exchange counts in two rounds: those of hashes of all lines, of which those with enough
documents are selected; those of the texts behind these hashes, which are added up. Then those that
are in a part are listed for it, which is all that `deduped` reads.
A new file costs its own counting, and a second reading of the parts with lines that it brought to
the threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
import xxhash

from assets.deduped.deduped_records import DUPLICATES, REPEATED, RepeatedNumbers, RepeatedProvenance
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
from assets.deduped.signed_files import RemainingPart, clustered_documents, remaining_parts
from assets.text.table_rows import count_bytes
from corpus_loader.places import stage_names
from resources.corpus import Corpus
from resources.exchange import Made, OfPart, OfPrefix, PartDigests, Round, exchange
from resources.materialize.excerpts import DocumentText
from resources.settings.repeats import RepeatedLinesConfig
from resources.source_states import state_of_all
from resources.stage import MainTable, Metadata, Outlook, Stage
from resources.store.mapped_files import map_arrow
from resources.store.records import Manifest, PartRecord, Stats
from resources.tasks import Outcome, Plan, Task, tasks_of

COUNT, TOTAL = "count-", "total-"  # what names of parts begin with


@dataclass(frozen=True)
class PartInputs:
    """Inputs of a filtered part: its documents, and the units to count."""

    part: RemainingPart
    configs: dict[Unit, RepeatedLinesConfig]


Thresholds = dict[str, int]  # documents that must have a line, by unit


def count_part(part: OfPart[PartInputs]) -> Made:
    """First round: count the hashes of one part."""
    texts = part.inputs.part.read()["text"]
    rows, num_bytes = len(texts), count_bytes(texts)
    return Made(
        {unit: count_lines(texts, config, unit) for unit, config in part.inputs.configs.items()},
        Stats(rows, rows, bytes=num_bytes, text_bytes=num_bytes),
    )


def select_hashes(hashes: OfPrefix[Thresholds]) -> Made:
    """First round: select the hashes that enough documents have; digest those of each part."""
    selected = {unit: frequent(hashes, unit).select("hash") for unit in hashes.shared}
    digests = []
    for tables in zip(*(hashes.tables(unit) for unit in selected), strict=True):
        digest = xxhash.xxh3_128()
        for table, found in zip(tables, selected.values(), strict=True):
            own = table.join(found, on="hash", how="semi", maintain_order="left")["hash"]
            digest.update(len(own).to_bytes(8, "little") + own.to_numpy().tobytes())
        digests.append(digest.hexdigest())
    return Made(selected, Stats(numbers=PartDigests(digests)))


def frequent(hashes: OfPrefix[Thresholds], unit: str) -> pl.DataFrame:
    """Add up the tables of a unit, and return the rows that enough documents have."""
    # Adding up takes about four times the memory of the tables that are held.
    total = add_counts(hashes.tables(unit), hashes.memory_bytes // 4)
    return total.filter(pl.col("count") >= hashes.shared[unit])


def collect_part(part: OfPart[PartInputs]) -> Made:
    """Second round: count the texts of one part's lines whose hash was selected.

    A part without any is not read.
    """
    configs = part.inputs.configs
    hashes = {unit: part.look_up(unit)["hash"] for unit in configs}
    is_read = any(len(of_unit) for of_unit in hashes.values())
    texts = part.inputs.part.read()["text"] if is_read else pl.Series(dtype=pl.String)
    return Made(
        {
            unit: in_order(collect_lines(texts, hashes[unit], config, unit))
            for unit, config in configs.items()
        }
    )


def add_texts(hashes: OfPrefix[Thresholds]) -> Made:
    """Second round: list the texts that enough documents have, whatever their hashes."""
    tables = {unit: in_order(frequent(hashes, unit)) for unit in hashes.shared}
    counts: dict[str, int] = {}
    for unit, texts in tables.items():
        num_chars = texts["text"].str.len_chars().cast(pl.Int64) * texts["count"]
        counts |= {f"repeated_{unit}": texts.height, f"repeated_{unit}_chars": int(num_chars.sum())}
    return Made(tables, Stats(numbers=RepeatedNumbers(**counts)))


def list_part(task: Task[OfPart[PartInputs]]) -> list[PartRecord]:
    """Last pass: list (unit, text) of the repeated texts that are in this part, sorted.

    Equal lists are equal files: counts, which change with documents of other parts, are left out.
    """
    part, listed = task.payload, [pl.DataFrame(schema=LIST_SCHEMA)]
    for unit in part.inputs.configs:
        if len(found := part.look_up(unit)):
            repeated = part.read(unit).join(found, on=["hash", "text"], how="semi")
            listed.append(repeated.select(pl.lit(unit).alias("unit"), "text"))
    writer = task.writer()
    writer.write_parquet("repeated", pl.concat(listed).sort("unit", "text"))
    return [writer.publish(Stats())]


RepeatedManifest = Manifest[RepeatedProvenance, RepeatedNumbers]


def plan_repeated(corpus: Corpus, source: str) -> Plan:
    """Plan the tasks of the first pass, one per filtered part."""
    configs = units_of(corpus.settings.dedup)
    manifest = clustered_documents(corpus, source)
    clusters = state_of_all(corpus, DUPLICATES)
    comparisons = {unit: config.comparison() for unit, config in configs.items()}
    make, tasks = tasks_of(corpus, REPEATED, source), []
    for part in remaining_parts(corpus, manifest):
        made_of = (comparisons, part.fingerprint, part.removals.identity)
        inputs, num_bytes = PartInputs(part, configs), part.documents.bytes
        tasks.append(make.task(COUNT + part.name, made_of, inputs, work_bytes=num_bytes))
    provenance = RepeatedProvenance(manifest.fingerprint, clusters.fingerprint)
    return Plan(tasks, configs_of(corpus.settings.dedup), provenance)


def thresholds_of(corpus: Corpus, counted: Sequence[Outcome]) -> Thresholds:
    """Return the documents that must have a line, by unit, of those that were counted."""
    num_documents = sum(outcome.records[0].stats.rows_kept for outcome in counted)
    configs = units_of(corpus.settings.dedup)
    return {unit: config.threshold(num_documents) for unit, config in configs.items()}


def made_of_selection(shared: Thresholds, place: tuple[int, int], parts: list[str]) -> object:
    """Return what selected hashes are made of, in the order in which the store has it."""
    return shared, place[1], parts


def describe_repeated(corpus: Corpus, manifest: RepeatedManifest) -> Metadata:
    """Show the most frequent lines and paragraphs; their number is in the stats."""
    shown = {}
    for unit in manifest.config:
        totals = [part for part in manifest.parts if part.name.startswith(TOTAL)]
        files = corpus.store.checked_files(manifest, totals, unit)
        tables = [most_frequent(map_arrow(path)) for path in files]
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
    work=list_part,
    is_used=lambda settings: bool(units_of(settings.dedup)),
    main_table=MainTable(
        "repeated", {"unit": "lines or paragraphs", "text": "the line or paragraph"}
    ),
    run=exchange(
        REPEATED,
        Round(COUNT, count_part, "select-", select_hashes, made_of_selection),
        Round("collect-", collect_part, TOTAL, add_texts),
        last=("", list_part),
        shared=thresholds_of,
        is_kept=True,
    ),
    describe=describe_repeated,
)
