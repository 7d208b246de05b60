"""evaluation: the n-grams of all evaluation sets, which `signatures` looks for in documents."""

from dataclasses import dataclass
from functools import lru_cache
from unicodedata import unidata_version

import msgspec
import polars as pl

from assets.deduped.decontamination.evaluation_files import (
    EvaluationFile,
    find_evaluation_files,
    read_items,
)
from assets.deduped.decontamination.evaluation_index import (
    REPEATED,
    TOO_SHORT,
    EvaluationIndex,
    build_index,
)
from assets.text.table_rows import count_bytes
from resources.corpus import Corpus
from resources.made_under import check_made_under
from resources.settings.decontamination import DecontaminationConfig
from resources.stage import MainTable, Metadata, Stage
from resources.store.published import PublishedFile
from resources.store.records import Empty, Manifest, PartRecord, Stats, required_file
from resources.tasks import GLOBAL, Plan, Task, tasks_of

TABLES = ("items", "ngrams", "filter")
ITEM_COLUMNS = {
    "set": "name of the evaluation set in pipeline.yaml",
    "item": "file and position of the item",
    "units": "the item's text as it is compared: normalised words or characters",
    "num_ngrams": "distinct n-grams that belong to the item",
    "reason": "too_short or repeated for an item without n-grams, which is not looked for",
}


@dataclass(frozen=True)
class EvaluationInputs:
    """Inputs of the index: the config, and the files of every set."""

    config: DecontaminationConfig
    files: list[EvaluationFile]


class EvaluationNumbers(msgspec.Struct, frozen=True):
    """Numbers of files and of distinct n-grams."""

    files: int = 0
    ngrams: int = 0


def plan_evaluation(corpus: Corpus, partition: str) -> Plan:
    """Plan one task over the files of all sets."""
    config = corpus.settings.dedup.decontamination
    assert config is not None, "the stage is used with `dedup.decontamination` only"
    files = find_evaluation_files(config, corpus.config.parent, corpus.downloads)
    digests = [(items.name, file.name, file.digest) for items, file in files]
    task = tasks_of(corpus, EVALUATION, partition).task(
        "index",
        (config.indexing(), unidata_version, digests),
        EvaluationInputs(config, files),
        work_bytes=sum(file.bytes for _, file in files),
    )
    return Plan([task], config.indexing(), Empty())


def index_items(task: Task[EvaluationInputs]) -> list[PartRecord]:
    """Read the items of every set, and publish them with their n-grams."""
    config, files = task.payload.config, task.payload.files
    items, quarantine = read_items(files)
    index = build_index(items, config.ngram, config.min_item_words)
    writer = task.writer()
    for name, table in zip(TABLES, (index.items, index.ngrams, index.filter), strict=True):
        writer.write_parquet(name, table)
    if quarantine.height:
        writer.write_parquet("quarantine", quarantine)
    reasons = index.items["reason"].drop_nulls().value_counts().sort("reason")
    num_bytes = count_bytes(items["text"])
    stats = Stats(
        rows_in=items.height + quarantine.height,
        rows_kept=index.items["reason"].null_count(),
        rejected=dict(reasons.iter_rows()),
        quarantined=quarantine.height,
        bytes=num_bytes,
        text_bytes=num_bytes,
        numbers=EvaluationNumbers(len(files), index.ngrams.height),
    )
    return [writer.publish(stats)]


EvaluationManifest = Manifest[Empty, EvaluationNumbers]


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


@dataclass(frozen=True)
class IndexFiles:
    """Files of a published index: small, for tasks that cross a process border."""

    items: PublishedFile
    ngrams: PublishedFile
    filter: PublishedFile


def index_files(corpus: Corpus, manifest: EvaluationManifest) -> IndexFiles:
    """Return the files of a manifest's index."""
    files = [required_file(manifest, manifest.parts[0], name) for name in TABLES]
    return IndexFiles(*(corpus.store.file_of(manifest, file) for file in files))


def find_evaluation_index(corpus: Corpus) -> tuple[IndexFiles, str] | None:
    """Return the files and the fingerprint of the index, None without `dedup.decontamination`.

    Raises StoreError if the index is missing, or was made under another config.
    """
    config = corpus.settings.dedup.decontamination
    if config is None:
        return None
    manifest = corpus.store.newest(EVALUATION, GLOBAL)
    check_made_under(manifest, config=config.indexing())
    return index_files(corpus, manifest), manifest.parts[0].fingerprint


@lru_cache(maxsize=1)
def load_index(files: IndexFiles) -> EvaluationIndex:
    """Read a published index, once per process: its file names carry its fingerprint."""
    return EvaluationIndex(
        pl.read_parquet(files.items.checked()),
        pl.read_parquet(files.ngrams.checked()),
        pl.read_parquet(files.filter.checked()),
    )


EVALUATION = Stage(
    name="evaluation",
    code_version="1",
    description="The n-grams of the evaluation sets that the corpus must not hold.",
    group="deduplicate",
    partitions="none",
    after=(),
    kinds=frozenset({"numba", "parquet"}),
    provenance=Empty,
    numbers=EvaluationNumbers,
    settings=lambda settings: (
        settings.dedup.decontamination and settings.dedup.decontamination.indexing()
    ),
    plan=plan_evaluation,
    work=index_items,
    is_used=lambda settings: settings.dedup.decontamination is not None,
    main_table=MainTable("items", ITEM_COLUMNS),
    describe=describe_evaluation,
)
