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
from typing import Any, TypeVar

import polars as pl

from assets.deduped.clusters.removal_files import removals_by_part
from assets.deduped.deduped_records import DUPLICATES, REPEATED, RepeatedNumbers, RepeatedProvenance
from assets.deduped.index.hash_prefixes import prefix_bits_for
from assets.deduped.repeats.repeated_line_files import (
    CollectInputs,
    HashInputs,
    ListInputs,
    PartInputs,
    SelectNumbers,
    add_texts,
    collect_part,
    count_part,
    list_part,
    select_hashes,
)
from assets.deduped.repeats.repeated_lines import (
    Unit,
    configs_of,
    most_frequent,
    repeated_markdown,
    units_of,
)
from assets.deduped.signed_files import clustered_documents
from resources.corpus import Corpus
from resources.materialize.excerpts import DocumentText
from resources.passes import Earlier, Pass, PassFiles, file_of, in_passes, list_files
from resources.stage import MainTable, Metadata, Stage
from resources.store.mapped_files import map_arrow
from resources.store.published import PublishedFile
from resources.store.records import Manifest, numbers_of
from resources.tasks import GLOBAL, Outcome, Plan, Task, tasks_of

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
    bits = prefix_bits_for(num_hashes, memory_bytes)
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
    after=("filtered", "duplicates"),
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
