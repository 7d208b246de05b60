"""filtered: documents that pass the rules, and a decision with every score for each document."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unicodedata import unidata_version

import msgspec
import polars as pl
from msgspec import UNSET

from assets.filtered.classifier.classifier import Classifier, QualityScale
from assets.filtered.classifier.classifier_files import load_classifier, load_scale
from assets.filtered.filter_documents import (
    count_first_reasons,
    count_other_languages,
    count_reasons,
    filter_documents,
    filter_warm_ups,
)
from assets.filtered.filter_files import (
    OPT_OUT,
    FilterFileError,
    digests_of,
    load_filter_data,
    read_tried,
    try_custom_rules,
)
from assets.filtered.filtered_records import FILTERED, FilteredProvenance, FilterNumbers
from assets.filtered.opt_out import count_by_domain
from assets.filtered.report import (
    decisions_profile,
    report_markdown,
    rule_rows,
    summarize_decisions,
)
from assets.filtered.rules.rules import rules_for, unknown_custom_rules
from assets.raw.raw_records import DOCUMENT_COLUMNS
from assets.raw.usable_raw_files import usable_raw
from assets.report.drift import judge_drift, state_drifts
from assets.report.histograms import Summary, add_summaries
from assets.text.table_rows import count_bytes
from assets.text.takedown_files import TAKEN_DOWN, Wanted, has_wanted_text, wanted_at
from corpus_loader.places import stage_names
from resources.corpus import Corpus
from resources.profiles import Profile
from resources.settings.filtering.filters import FilterConfig
from resources.settings.pipeline import Settings, SettingsError
from resources.stage import Conclusion, DriftCheck, MainTable, Metadata, Outlook, Stage, Table
from resources.store.published import PublishedFile
from resources.store.records import Manifest, PartRecord, Stats, fingerprint_of, to_json, to_line
from resources.store.summed_files import sum_of_files
from resources.takedowns import count_takedowns
from resources.tasks import Plan, Task, tasks_of

OPTED_OUT = "opted_out"  # kind of file: opted out documents by registrable domain
SHOWN_DOMAINS = 20
PROFILED = ("kept", "reasons", "detected_lang", "num_bytes")  # columns of the decisions


@dataclass(frozen=True)
class FilterInputs:
    """A part's raw documents, the config, and the files, model and scale that the config asks for.

    `folder` is what the config's paths are relative to; `digests` are those of `digests_of`;
    `is_chat`: the texts are conversations. The first `takedowns` of the store are obeyed.
    """

    documents: PublishedFile
    config: FilterConfig
    folder: Path
    digests: tuple[str, ...]
    classifier: Classifier | None
    scale: QualityScale | None
    opt_out: tuple[str, str] | None = None
    is_chat: bool = False
    takedowns: int = 0


def plan_filtered(corpus: Corpus, source: str) -> Plan:
    """Plan a task per raw part, made by the source's own filter config and the files it names.

    Raises SettingsError if a file of the config is missing or wrong, StoreError if the raw part or
    the classifier is not materialized.
    """
    manifest = usable_raw(corpus, source)
    config = corpus.settings.filters_for(source)
    folder = corpus.config.parent
    digests = check_filter_data(corpus, source, config)
    trained = load_classifier(corpus) if needs_classifier(config) else None
    classifier, fingerprint = trained or (None, "")
    scaled = load_scale(corpus, source, config) if config.has_percentile else None
    scale, of_scale = scaled or (None, "")
    dump, made_under = config.model_dump(mode="json"), config.model_dump(mode="json")
    opt_outs = opt_outs_by_part(corpus, manifest, config, digests)
    if config.rules.opt_out:  # each part depends on what concerns its sites alone
        made_under["rules"]["opt_out"] = config.rules.opt_out.model_dump(
            mode="json", include={"inclusive", "opted_out"}
        )
    kept = (digest for digest in digests if not digest.startswith(OPT_OUT))
    inputs = (unidata_version, *kept, fingerprint, *([of_scale] if scaled else []))
    is_chat, num_takedowns = corpus.settings.is_chat(source), count_takedowns(corpus.store.root)
    maker = tasks_of(corpus, FILTERED, source)
    tasks: list[Task[FilterInputs]] = []
    for part in manifest.parts:
        documents = corpus.store.part_file(manifest, part, "documents")
        opt_out = opt_outs.get(part.name)
        payload = FilterInputs(
            documents,
            config,
            folder,
            digests,
            classifier,
            scale,
            opt_out,
            is_chat,
            num_takedowns,
        )
        made_of = (made_under, part.fingerprint, inputs, *([opt_out] if opt_out else []))
        tasks.append(maker.task(part.name, made_of, payload, work_bytes=documents.bytes))
    try_rules_on_new(corpus, source, config, tasks)
    all_opt_outs = opt_outs_fingerprint(config, digests) if config.rules.opt_out else UNSET
    return Plan(tasks, dump, FilteredProvenance(manifest.fingerprint, all_opt_outs))


def try_rules_on_new(
    corpus: Corpus, source: str, config: FilterConfig, tasks: Sequence[Task[FilterInputs]]
) -> None:
    """Try custom rules on documents of the first part to compute, if there is one.

    Raises SettingsError if their scores differ between processes.
    """
    new = (task for task in tasks if task.published() is None)
    if not (config.custom or config.plug_ins) or (task := next(new, None)) is None:
        return
    rows = read_tried(task.payload.documents.checked())
    try:
        try_custom_rules(config, corpus.config.parent, rows)
    except FilterFileError as error:
        raise SettingsError(f"{corpus.config}: source {source!r}: {error}") from error


def opt_outs_fingerprint(config: FilterConfig, digests: Sequence[str]) -> str:
    """Return the fingerprint of all opt-outs that a config names."""
    rules = config.rules.opt_out
    named = [digest for digest in digests if digest.startswith(OPT_OUT)]
    return fingerprint_of(rules.model_dump(mode="json") if rules else None, named)


def opt_outs_by_part(
    corpus: Corpus, raw: Manifest[Any, Any], config: FilterConfig, digests: tuple[str, ...]
) -> dict[str, tuple[str, str]]:
    """Return the fingerprints of each raw part and of the opt-outs that concern its sites.

    Where neither has changed since the last run they are in its manifest; of other parts the URLs
    are read.
    """
    if config.rules.opt_out is None:
        return {}
    newest = corpus.store.newest_or_none(FILTERED, raw.partition)
    known: dict[str, tuple[str, str]] = {}
    if newest and newest.provenance.opt_out == opt_outs_fingerprint(config, digests):
        known = {p.name: p.stats.numbers.opt_out for p in newest.parts if p.stats.numbers.opt_out}
    opt_out = load_filter_data(config, corpus.config.parent, digests).opt_out
    found = {part.name: known.get(part.name, ("", "")) for part in raw.parts}
    changed = [part for part in raw.parts if found[part.name][0] != part.fingerprint]
    files = corpus.store.checked_files(raw, changed, "documents")
    for part, path in zip(changed, files, strict=True):
        among = opt_out.among(pl.read_parquet(path, columns=["url"])["url"])
        tracking = among.tracking_parameters if among.listed else ()
        agents = among.agents if among.files else ()
        concerns = sorted(among.listed), among.files, agents, tracking
        found[part.name] = part.fingerprint, fingerprint_of(*concerns)
    return found


def needs_classifier(config: FilterConfig) -> bool:
    """Check that a rule looks at the classifier's score, or at its percentile."""
    rules = config.rules.quality
    has_score = rules is not None and rules.min_score is not None
    return has_score or (config.has_percentile and not config.ranks_fasttext)


def check_filter_data(corpus: Corpus, source: str, config: FilterConfig) -> tuple[str, ...]:
    """Read a source's filter files, before any work, and return their digests.

    Raises SettingsError for a wrong file, and for a threshold of a custom rule that no file has.
    """
    place = f"{corpus.config}: source {source!r}"
    folder = corpus.config.parent
    try:
        digests = digests_of(config, folder)
        data = load_filter_data(config, folder, digests)
    except FilterFileError as error:
        raise SettingsError(f"{place}: {error}") from error
    if unknown := unknown_custom_rules(config.rules, data.custom):
        raise SettingsError(f"{place}: {unknown[0]}")
    return digests


def filter_part(task: Task[FilterInputs]) -> list[PartRecord]:
    """Filter one part; publish the kept documents, the decisions and a summary of them."""
    inputs = task.payload
    data = load_filter_data(inputs.config, inputs.folder, inputs.digests)
    data = replace(data, classifier=inputs.classifier, scale=inputs.scale, is_chat=inputs.is_chat)
    documents = pl.read_parquet(inputs.documents.checked())
    kept, decisions = filter_documents(documents, inputs.config, data)
    judged = decisions
    if inputs.takedowns:
        wanted = wanted_at(task.root, inputs.takedowns)
        kept, decisions = without_restored(documents["text"], kept, decisions, wanted)
        judged = decisions.remove(pl.col("reasons").list.contains(TAKEN_DOWN))
    has_pii = inputs.config.pii is not None
    rules = rules_for(inputs.config.rules, data.custom, pii=has_pii)
    summary = summarize_decisions(judged, rules)
    writer = task.writer()
    writer.write_parquet("documents", kept)
    writer.write_parquet("decisions", decisions)
    writer.write_text("summary", "json", to_json(summary).decode())
    if "opted_out" in decisions.columns:
        opted_out = documents["url"].filter(decisions["opted_out"] == 1)
        writer.write_parquet(OPTED_OUT, count_by_domain(opted_out))
    stats = Stats(
        rows_in=documents.height,
        rows_kept=kept.height,
        rejected=count_first_reasons(decisions),
        bytes=count_bytes(kept["text"]),
        text_bytes=count_bytes(documents["text"]),
        numbers=FilterNumbers(
            count_reasons(decisions), count_other_languages(decisions), inputs.opt_out or UNSET
        ),
    )
    return [writer.publish(stats)]


def without_restored(
    texts: pl.Series, kept: pl.DataFrame, decisions: pl.DataFrame, wanted: Wanted
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return kept documents and decisions, with those rejected that a takedown means by now.

    That is what normalisation or a correction made of other texts: `raw` has checked `texts`. A
    part that was published before a takedown, with such a document, is named in it.
    """
    changed = kept.filter(kept["text"] != texts.filter(decisions["kept"]))
    taken = changed.filter(has_wanted_text(changed["text"], wanted))["doc_id"]
    is_taken = pl.col("doc_id").is_in(taken.implode())
    reasons = pl.when(is_taken).then([TAKEN_DOWN]).otherwise("reasons").alias("reasons")
    return kept.remove(is_taken), decisions.with_columns(reasons, pl.col("kept") & ~is_taken)


def describe_filtered(
    corpus: Corpus, manifest: Manifest[FilteredProvenance, FilterNumbers]
) -> Metadata:
    """Plot the funnel, the scores and the languages; tabulate the documents that break rules."""
    config = FilterConfig.model_validate(manifest.config)
    data = load_filter_data(config, corpus.config.parent)
    rules = rules_for(config.rules, data.custom, pii=config.pii is not None)
    summary = whole_summary(corpus, manifest)
    if not summary:
        return {}
    rows = rule_rows(summary)
    return {
        "rejected": Table(("rule", "breaks it", "only it", "it first"), rows) if rows else None,
        "broken_rules": None,  # they are in that table
        "opt_out": None,
        "opted_out_by_domain": opted_out_by_domain(corpus, manifest),
        **report_markdown(summary, rules),
    }


def opted_out_by_domain(corpus: Corpus, manifest: Manifest[Any, Any]) -> Table | None:
    """Count opted out documents by registrable domain, those with most of them."""
    files = corpus.store.checked_files(manifest, manifest.parts, OPTED_OUT)
    tables = [table for path in files if (table := pl.read_parquet(path)).height]
    if not tables:
        return None
    summed = pl.concat(tables).group_by("domain").agg(pl.col("documents").sum())
    most = summed.sort("documents", "domain", descending=[True, False]).head(SHOWN_DOMAINS)
    return Table(("domain", "documents"), most.rows())


def conclude_filtered(
    corpus: Corpus, manifest: Manifest[FilteredProvenance, FilterNumbers]
) -> Conclusion:
    """Warn of rules and entries of lists that do not apply, and of texts in other languages."""
    name = manifest.partition
    skipped = [f"rules.language.{rule}" for rule in corpus.settings.skipped_rules(name)]
    lines: dict[str, str] = {}
    if skipped:
        lines["skipped_rules"] = (
            f"{name}: {', '.join(skipped)} skipped: language detection is off for this source "
            "(domain code, or `language.backend: none`). Set its `filters.language.backend` to "
            "apply them."
        )
    others = manifest.stats.numbers.other_languages
    if others and not corpus.settings.source(name).require_language:
        languages = ", ".join(f"{lang} {count:,}" for lang, count in list(others.items())[:5])
        lines["other_languages"] = (
            f"{name}: {sum(others.values()):,} of {manifest.stats.rows_in:,} documents are in "
            f"other languages than its `language` ({languages}). They are tagged "
            "(`detected_language` in meta); `require_language: true` of the source rejects them."
        )
    if faults := list_faults(corpus, name):
        lines["list_faults"] = f"{name}: entries match nothing: {'; '.join(faults)}"
    return Conclusion(list(lines.values()), dict(lines))


def list_faults(corpus: Corpus, source: str) -> tuple[str, ...]:
    """Say which entries of a source's lists of domains can match nothing."""
    config = corpus.settings.filters_for(source)
    has_lists = config.rules.metadata is not None
    return load_filter_data(config, corpus.config.parent).list_faults if has_lists else ()


def whole_summary(corpus: Corpus, manifest: Manifest) -> Summary:
    """Add up the summaries that the parts published."""

    def add(files: Iterator[Path]) -> bytes:
        parts = (msgspec.json.decode(path.read_bytes(), type=Summary) for path in files)
        return to_line(add_summaries(parts))

    return msgspec.json.decode(sum_of_files(corpus.store, manifest, "summary", add), type=Summary)


def profile_of_filtered(
    corpus: Corpus,
    manifest: Manifest[FilteredProvenance, FilterNumbers],
    parts: Sequence[PartRecord[FilterNumbers]],
) -> Profile:
    """Return the profile of some parts: a few columns of their decisions are read."""
    files = corpus.store.checked_files(manifest, parts, "decisions")
    tables = [pl.read_parquet(path, columns=list(PROFILED)) for path in files]
    return decisions_profile(pl.concat(tables))


def drifts_of_filtered(
    corpus: Corpus, manifest: Manifest[Any, Any], before: Manifest[Any, Any]
) -> list[str]:
    """Compare the removed share and the languages of all documents with the state before."""
    return state_drifts(state_counts(corpus, manifest), state_counts(corpus, before))


def state_counts(corpus: Corpus, manifest: Manifest[Any, Any]) -> dict[str, int]:
    """Return the number of documents, of those that are removed, and by language."""
    summary = whole_summary(corpus, manifest)
    languages = {f"language {name}": n for name, n in summary.get("languages", {}).items()}
    stats = manifest.stats
    return {"documents": stats.rows_in, "removed": sum(stats.rejected.values()), **languages}


def warm_up_filters(corpus: Corpus) -> Iterator[Callable[[], object]]:
    """Yield the calls that the filters of all sources need, those of equal filters once."""
    configs: list[FilterConfig] = []
    for source in corpus.settings.source_names():
        config = corpus.settings.filters_for(source)
        if config not in configs:
            configs.append(config)
            digests = check_filter_data(corpus, source, config)
            data = load_filter_data(config, corpus.config.parent, digests)
            yield from filter_warm_ups(config, data)


def settings_of_filters(settings: Settings) -> Any:
    """Return the filters of every source."""
    names = settings.source_names()
    return {name: settings.filters_for(name).model_dump(mode="json") for name in names}


STAGE = Stage(
    *FILTERED.fields(),
    description="Documents as they are kept; decisions hold every score and reason of every "
    "document.",
    group="curate",
    partitions="source",
    after=(stage_names.RAW, stage_names.CLASSIFIER, stage_names.QUALITY_SCALE),
    outlook=Outlook("same", cpu_per_mb=0.017, first_seconds=2.4),
    kinds=frozenset({"parquet", "polars"}),
    settings=settings_of_filters,
    plan=plan_filtered,
    stays_rolled_back=True,
    work=filter_part,
    main_table=MainTable("documents", DOCUMENT_COLUMNS),
    preload=("assets.filtered.kernels.text_scores",),
    warm_up=warm_up_filters,
    describe=describe_filtered,
    conclude=conclude_filtered,
    drift=DriftCheck(profile_of_filtered, judge_drift, drifts_of_filtered),
)
