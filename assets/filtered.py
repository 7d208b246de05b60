"""filtered: documents that pass the rules, and a decision with every score for each document."""

from unicodedata import unidata_version

import dagster as dg
import polars as pl

from assets.raw import raw
from assets.transforms.filtered import (
    FilterConfig,
    count_first_reasons,
    count_reasons,
    filter_documents,
)
from pipeline_defs.partitions import SOURCES
from resources.corpus import Corpus, MadeBy, Plan, Task, part_task
from resources.records import PartRecord, Stats
from resources.stages import Stage, run_stage, stage_asset

FILTERED = Stage("filtered", code_version="1")


@stage_asset(FILTERED, deps=[raw], partitions=SOURCES, kinds={"polars", "parquet"})
def filtered(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    """Normalised documents that break no rule; decisions say of every document which it broke."""
    return run_stage(context, FILTERED, plan_filtered, filter_part)


def plan_filtered(corpus: Corpus, source: str) -> Plan:
    """One task per raw part, made by the source's own filter config."""
    manifest = corpus.store.newest("raw", source)
    config = source_filters(corpus, source)
    dump = config.model_dump(mode="json")
    made_by = MadeBy(
        FILTERED.name, FILTERED.code_version, dump, (unidata_version,), {"config": config}
    )
    tasks = [part_task(corpus, manifest, part, "documents", made_by) for part in manifest.parts]
    return Plan(tasks, dump, {"raw": manifest.fingerprint})


def source_filters(corpus: Corpus, source: str) -> FilterConfig:
    """The filters of a source; the language of code is not detected."""
    config = corpus.settings.filters_for(source)
    if corpus.settings.source(source).domain != "code":
        return config
    language = config.language.model_copy(update={"backend": "none"})
    return config.model_copy(update={"language": language})


def filter_part(task: Task) -> list[PartRecord]:
    """Filter one part; publish what is kept and the decisions."""
    documents = pl.read_parquet(task.spec["path"])
    kept, decisions = filter_documents(documents, task.spec["config"])
    writer = task.writer()
    writer.write_parquet("documents", kept)
    writer.write_parquet("decisions", decisions)
    stats = Stats(
        rows_in=documents.height,
        rows_kept=kept.height,
        rejected=count_first_reasons(decisions),
        bytes=int(kept["text"].str.len_bytes().sum()),
        text_bytes=int(documents["text"].str.len_bytes().sum()),
        extra={"broken_rules": count_reasons(decisions)},
    )
    return [writer.publish(stats)]
