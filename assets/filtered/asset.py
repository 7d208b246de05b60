"""filtered: documents that pass the rules, and a decision with every score for each document."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from unicodedata import unidata_version

import dagster as dg
import msgspec
import polars as pl

from assets.filtered.classifier_asset import load_quality_model, quality
from assets.filtered.filter_documents import count_first_reasons, count_reasons, filter_documents
from assets.filtered.filter_files import digests_of, load_filter_data
from assets.filtered.report import report_markdown, summarize_decisions
from assets.filtered.rules.rules import rules_for
from assets.raw.asset import raw
from assets.report.histograms import Summary, add_summaries
from assets.text.table_rows import count_bytes
from pipeline_defs.partitions import SOURCES
from resources.corpus import Corpus
from resources.materialization import Stage, run_stage, stage_asset
from resources.settings.filters import FilterConfig
from resources.store.records import Manifest, PartRecord, Stats, required_file, to_json
from resources.tasks import MadeBy, Plan, Task, part_task

FILTERED = Stage("filtered", code_version="2")


@stage_asset(FILTERED, deps=[raw, quality], partitions=SOURCES, kinds={"polars", "parquet"})
def filtered(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    """Documents as they are kept; decisions hold every score and reason of every document."""
    return run_stage(context, FILTERED, plan_filtered, filter_part, describe=describe_filtered)


def plan_filtered(corpus: Corpus, source: str) -> Plan:
    """One task per raw part, made by the source's own filter config and the files it names."""
    manifest = corpus.store.newest("raw", source)
    config = corpus.settings.filters_for(source)
    folder = corpus.config.parent
    digests = digests_of(config, folder)
    load_filter_data(config, folder, digests)  # a wrong file is named before any work
    rules = config.rules.quality
    trained = load_quality_model(corpus) if rules and rules.min_score is not None else None
    model, fingerprint = trained or (None, "")
    dump = config.model_dump(mode="json")
    inputs = (unidata_version, *digests, fingerprint)
    spec = {"config": config, "folder": folder, "digests": digests, "model": model}
    made_by = MadeBy(FILTERED.name, FILTERED.code_version, dump, inputs, spec)
    tasks = [part_task(corpus, manifest, part, "documents", made_by) for part in manifest.parts]
    return Plan(tasks, dump, {"raw": manifest.fingerprint})


def filter_part(task: Task) -> list[PartRecord]:
    """Filter one part; publish what is kept, the decisions and a summary of them."""
    config: FilterConfig = task.spec["config"]
    data = load_filter_data(config, task.spec["folder"], task.spec["digests"])
    data = replace(data, quality=task.spec["model"])
    documents = pl.read_parquet(task.spec["path"])
    kept, decisions = filter_documents(documents, config, data)
    summary = summarize_decisions(decisions, rules_for(config.rules, data.custom))
    writer = task.writer()
    writer.write_parquet("documents", kept)
    writer.write_parquet("decisions", decisions)
    writer.write_text("summary", "json", to_json(summary).decode())
    stats = Stats(
        rows_in=documents.height,
        rows_kept=kept.height,
        rejected=count_first_reasons(decisions),
        bytes=count_bytes(kept["text"]),
        text_bytes=count_bytes(documents["text"]),
        extra={"broken_rules": count_reasons(decisions)},
    )
    return [writer.publish(stats)]


def describe_filtered(corpus: Corpus, manifest: Manifest) -> Mapping[str, Any]:
    """Plots of the funnel, the scores and the languages; documents that break each rule."""
    config = FilterConfig.model_validate(manifest.config)
    data = load_filter_data(config, corpus.config.parent)
    rules = rules_for(config.rules, data.custom)
    summary = add_summaries(summary_of(corpus, manifest, part) for part in manifest.parts)
    if not summary:
        return {}
    counts = {f"broken/{name}": count for name, count in summary["broken"].items()}
    return {**report_markdown(summary, rules), **counts}


def summary_of(corpus: Corpus, manifest: Manifest, part: PartRecord) -> Summary:
    """The summary that a part published."""
    path = corpus.store.path_of(manifest, required_file(manifest, part, "summary"))
    return msgspec.json.decode(path.read_bytes(), type=Summary)
