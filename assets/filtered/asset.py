"""filtered: documents that pass the rules, and a decision with every score for each document."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from unicodedata import unidata_version

import msgspec
import polars as pl

from assets.filtered.classifier_asset import CLASSIFIER, load_classifier
from assets.filtered.filter_documents import count_first_reasons, count_reasons, filter_documents
from assets.filtered.filter_files import digests_of, load_filter_data
from assets.filtered.report import report_markdown, summarize_decisions
from assets.filtered.rules.rules import rules_for
from assets.raw.asset import RAW
from assets.report.histograms import Summary, add_summaries
from assets.text.table_rows import count_bytes
from resources.corpus import Corpus
from resources.settings.filters import FilterConfig
from resources.stage import Stage
from resources.store.records import Manifest, PartRecord, Stats, required_file, to_json
from resources.tasks import MadeBy, Plan, Task, part_task


def plan_filtered(corpus: Corpus, source: str) -> Plan:
    """One task per raw part, made by the source's own filter config and the files it names."""
    manifest = corpus.store.newest("raw", source)
    config = corpus.settings.filters_for(source)
    folder = corpus.config.parent
    digests = digests_of(config, folder)
    load_filter_data(config, folder, digests)  # a wrong file is named before any work
    rules = config.rules.quality
    trained = load_classifier(corpus) if rules and rules.min_score is not None else None
    model, fingerprint = trained or (None, "")
    dump = config.model_dump(mode="json")
    inputs = (unidata_version, *digests, fingerprint)
    spec = {"config": config, "folder": folder, "digests": digests, "model": model}
    made_by = MadeBy(FILTERED.name, FILTERED.code_version, dump, inputs, spec)
    tasks = [part_task(corpus, manifest, part, "documents", made_by) for part in manifest.parts]
    return Plan(tasks, dump, {"raw": manifest.fingerprint})


def filter_part(task: Task) -> list[PartRecord]:
    """Filter one part; publish what is kept, the decisions and a summary of them."""
    config: FilterConfig = task.payload["config"]
    data = load_filter_data(config, task.payload["folder"], task.payload["digests"])
    data = replace(data, classifier=task.payload["model"])
    documents = pl.read_parquet(task.payload["path"])
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
        numbers={"broken_rules": count_reasons(decisions)},
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


FILTERED = Stage(
    name="filtered",
    code_version="2",
    description="Documents as they are kept; decisions hold every score and reason of every "
    "document.",
    partitions="source",
    after=(RAW, CLASSIFIER),
    kinds=frozenset({"parquet", "polars"}),
    provenance=dict,
    numbers=dict,
    plan=plan_filtered,
    work=filter_part,
    describe=describe_filtered,
)
