"""evaluation: the n-grams of all evaluation sets, which `signatures` looks for in documents."""

from dataclasses import dataclass, replace
from unicodedata import unidata_version

import polars as pl

from assets.deduped.decontamination.evaluation_files import (
    EvaluationFile,
    find_evaluation_files,
    read_items,
)
from assets.deduped.decontamination.evaluation_index import REPEATED, TOO_SHORT, build_index
from assets.deduped.deduped_records import EVALUATION, EvaluationNumbers
from assets.deduped.evaluation_index_files import TABLES, EvaluationManifest, index_files
from assets.raw.readers.formats import foreign_code
from assets.raw.taken_down_files import is_record_wanted
from assets.text.table_rows import count_bytes
from assets.text.takedown_files import TAKEN_DOWN, among, obeying, owners_of_quotes, wanted_at
from resources.corpus import Corpus
from resources.settings.decontamination import DecontaminationConfig
from resources.stage import MainTable, Metadata, Outlook, Stage
from resources.store.records import Empty, PartRecord, Stats
from resources.takedowns import read_takedowns, takedowns_by_part
from resources.tasks import GLOBAL, Plan, Task, tasks_of

INDEX = "index"  # the task, and the part that it makes
ITEM_COLUMNS = {
    "set": "name of the evaluation set in pipeline.yaml",
    "item": "file and position of the item",
    "units": "the item's text as it is compared: normalised words or characters",
    "num_units": "words or characters of it",
    "num_ngrams": "distinct n-grams that belong to the item",
    "num_covered": "words or characters in one of these",
    "reason": "too_short or repeated for an item without n-grams, which is not looked for",
}


@dataclass(frozen=True)
class EvaluationInputs:
    """Inputs of the index: the config, and the files of every set.

    The first `takedowns` of the store are obeyed.
    """

    config: DecontaminationConfig
    files: list[EvaluationFile]
    takedowns: int


def plan_evaluation(corpus: Corpus, partition: str) -> Plan:
    """Plan one task over the files of all sets."""
    config = corpus.settings.dedup.decontamination
    assert config is not None, "the stage is used with `dedup.decontamination` only"
    files = find_evaluation_files(config, corpus.config.parent, corpus.downloads)
    digests = [(items.name, file.name, file.digest, *foreign_code(file)) for items, file in files]
    takedowns = read_takedowns(corpus.store.root)
    task = tasks_of(corpus, EVALUATION, partition).task(
        INDEX,
        (config.indexing(), unidata_version, digests),
        EvaluationInputs(config, files, len(takedowns)),
        work_bytes=sum(file.bytes for _, file in files),
    )
    named = takedowns_by_part(takedowns, GLOBAL).get(INDEX, ())
    task = replace(task, fingerprint=obeying(task.fingerprint, named))
    return Plan([task], config.indexing(), Empty())


def index_items(task: Task[EvaluationInputs]) -> list[PartRecord]:
    """Read the items of every set, and publish them with their n-grams."""
    config, files = task.payload.config, task.payload.files
    items, quarantine = read_items(files)
    rows_in = items.height + quarantine.height
    if task.payload.takedowns:
        wanted = wanted_at(task.root, task.payload.takedowns)
        items = items.remove(among(owners_of_quotes(items["text"], wanted), items.height))
        quarantine = quarantine.remove(is_record_wanted(quarantine, wanted))
    num_taken = rows_in - items.height - quarantine.height
    index = build_index(items, config.ngram, config.min_item_words)
    writer = task.writer()
    for name, table in zip(TABLES, (index.items, index.ngrams, index.filter), strict=True):
        writer.write_parquet(name, table)
    if quarantine.height:
        writer.write_parquet("quarantine", quarantine)
    reasons = index.items["reason"].drop_nulls().value_counts().sort("reason")
    num_bytes = count_bytes(items["text"])
    stats = Stats(
        rows_in=rows_in,
        rows_kept=index.items["reason"].null_count(),
        rejected=dict(reasons.iter_rows()) | ({TAKEN_DOWN: num_taken} if num_taken else {}),
        quarantined=quarantine.height,
        bytes=num_bytes,
        text_bytes=num_bytes,
        numbers=EvaluationNumbers(len(files), index.ngrams.height),
    )
    return [writer.publish(stats)]


def describe_evaluation(corpus: Corpus, manifest: EvaluationManifest) -> Metadata:
    """Describe the items of each set, and count those that are not looked for by reason."""
    files = index_files(corpus, manifest)
    by_set = (
        pl.scan_parquet(files.items.checked())
        .group_by("set", maintain_order=True)
        .agg(
            pl.len(),
            pl.col("num_ngrams").sum(),
            too_short=(pl.col("reason") == TOO_SHORT).sum(),
            repeated=(pl.col("reason") == REPEATED).sum(),
        )
        .collect()
    )
    rows = "".join(
        f"| {name} | {items:,} | {ngrams:,} | {short:,} | {repeated:,} |\n"
        for name, items, ngrams, short, repeated in by_set.iter_rows()
    )
    quarantined = manifest.stats.quarantined
    return {
        "report": "| set | items | n-grams | too short | repeated |\n|---|---|---|---|---|\n"
        f"{rows}\n{quarantined:,} records could not be read."
    }


STAGE = Stage(
    *EVALUATION.fields(),
    description="The n-grams of the evaluation sets that the corpus must not hold.",
    group="deduplicate",
    partitions="none",
    after=(),
    outlook=Outlook(reaches_all=True),
    kinds=frozenset({"numba", "parquet"}),
    settings=lambda settings: (
        settings.dedup.decontamination and settings.dedup.decontamination.indexing()
    ),
    plan=plan_evaluation,
    work=index_items,
    is_used=lambda settings: settings.dedup.decontamination is not None,
    main_table=MainTable("items", ITEM_COLUMNS),
    describe=describe_evaluation,
)
