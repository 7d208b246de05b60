"""What `corpus report` says: tables, pictures and excerpts, from the newest states of a store.

Nothing depends on a clock. All that is shown of documents is redacted, whatever `filters.pii` says.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import msgspec
import polars as pl

from assets.bucketed.bucketed_records import BUCKETED
from assets.deduped.deduped_records import DEDUPED
from assets.filtered.filtered_records import FILTERED
from assets.filtered.passages import sample_keys
from assets.filtered.pii.find_pii import find_pii
from assets.filtered.rules.rules import Rule, rules_for
from assets.mixed.complete_state_files import incomplete
from assets.raw.raw_records import RAW
from assets.raw.readers.documents import NO_QUARANTINE
from assets.stages import BY_NAME
from assets.tokenized.tokenized_records import TOKENIZED
from assets.tokenized.tokenizer_fit import totals
from pipeline_defs.commands.life.quarantine import count_kinds, read_quarantine
from pipeline_defs.commands.look.duplicates import (
    cluster_members,
    cluster_places,
    read_copies,
    scan_clusters,
    segments_of,
)
from pipeline_defs.commands.marked_texts import Segment, ShownDocument
from pipeline_defs.commands.published_documents import path_of
from pipeline_defs.commands.rules.filtered_files import filter_data, rules_config
from pipeline_defs.commands.rules.sample import Marker, lines_of, read_documents
from pipeline_defs.commands.states.diff import number_changes
from pipeline_defs.commands.states.history import entry_of
from pipeline_defs.commands.states.history import lines_of as change_lines
from pipeline_defs.commands.states.state_chain import chain_of
from pipeline_defs.commands.terminal import one_line
from pipeline_defs.corpus_tables import Manifests
from resources.charts import MOST_SHARES, Areas, Bars, Chart
from resources.corpus import Corpus
from resources.drawn_charts import IMAGE, as_address
from resources.settings.filtering.filter_steps import PiiConfig
from resources.store.kept_manifests import KeptManifests
from resources.store.records import Manifest
from resources.store.store import StoreError, typed
from resources.tasks import GLOBAL

EXCERPTS = 10  # of a reason
EXCERPT_CHARS, SEARCHED_CHARS = 600, 50_000
CLUSTERS, COPIES, CLUSTER_CHARS, CONTEXT = 3, 3, 1500, 8
CLUSTER_TITLE = 80  # characters of the first line of a cluster
NO_EARLIER = "no earlier state is kept"
OF_DOCUMENTS = pl.col("stage").is_in(
    [s.name for s in (RAW, FILTERED, DEDUPED, TOKENIZED, BUCKETED)]
)
WITHHELD = "(not shown: too much personal data)"
ALT = re.compile(rf"!\[([^]]*)\]{IMAGE.pattern}")


class Picture(NamedTuple):
    """A drawn chart: what it shows, and an address that holds it."""

    title: str
    address: str


@cache
def redacted(text: str) -> str:
    """Return the beginning of a text without personal data and secrets."""
    return redacted_all([text])[0]


def redacted_all(texts: Sequence[str]) -> list[str]:
    """Return the beginnings of texts as `redacted` does: one by one they take 9 ms each."""
    begin = pl.Series([text[:SEARCHED_CHARS] for text in texts], dtype=pl.String)
    clean = find_pii(begin, PiiConfig())[0]
    return [out or (WITHHELD if text else "") for out, text in zip(clean, texts, strict=True)]


def pictures(corpus: Corpus, stage: str, partition: str, *names: str) -> list[Picture]:
    """Return pictures of the newest state of a partition, by their names in the metadata."""
    described = ask(corpus, stage, partition, lambda each, given: each.describe(corpus, given))
    found = (ALT.finditer(str((described or {}).get(name, ""))) for name in names)
    images = [image for each in found for image in each]
    order = corpus.settings.source_names()
    return [
        Picture(f"{partition}: {i[1]}", as_address(coloured(b64decode(i[2]), order)))
        for i in images
    ]


def coloured(chart: bytes, sources: Sequence[str]) -> bytes:
    """Return a chart, as JSON, in which each source has the colour that it has in all charts."""
    areas = msgspec.json.decode(chart, type=Chart)
    if not isinstance(areas, Areas):
        return chart
    places = {name: place % MOST_SHARES for place, name in enumerate(sources)}
    colours = tuple(places.get(name, MOST_SHARES) for name in areas.names)
    return msgspec.json.encode(msgspec.structs.replace(areas, colours=colours))


def ask(corpus: Corpus, stage: str, partition: str, question: Callable[[Any, Any], Any]) -> Any:
    """Ask a stage about its newest state; None where there is none, or one of another version."""
    manifest = corpus.store.newest_or_none(stage, partition)
    if manifest is None or manifest.code_version != BY_NAME[stage].code_version:
        return None
    try:
        return question(BY_NAME[stage], typed(manifest, BY_NAME[stage]))
    except StoreError:
        return None


def funnel(stages: pl.DataFrame) -> Picture:
    """Draw how many documents are left after each stage."""
    of_stage = stages.filter(OF_DOCUMENTS).group_by("stage", maintain_order=True)
    sums = dict(of_stage.agg(pl.col("rows_kept").sum()).iter_rows())
    read = int(stages.filter(stage=RAW.name)["rows_in"].sum())
    bars = (
        (name, n, f"{n:,}, {n / max(1, read):.1%}")
        for name, n in ({"records": read} | sums).items()
    )
    chart = Bars("records, and documents left after each stage", tuple(bars))
    return Picture("funnel", as_address(msgspec.json.encode(chart)))


def funnel_table(stages: pl.DataFrame) -> pl.DataFrame:
    """Return what each stage took from each source, in documents and in tokens.

    Tokens of what was removed before `tokenized` follow from its bytes.
    """
    stage, tokens, removed = (
        pl.col("stage"),
        pl.col("tokens"),
        pl.col("rows_in") - pl.col("rows_kept"),
    )
    per_byte = (
        (tokens / pl.col("text_bytes").clip(1))
        .filter(stage == TOKENIZED.name)
        .first()
        .over("source")
    )
    estimated = (pl.col("text_bytes") - pl.col("bytes")).clip(0) * per_byte
    counted = (tokens.shift(1, fill_value=0).over("source") - tokens).clip(0)
    is_early = stage.is_in([FILTERED.name, DEDUPED.name])
    lost = pl.when(is_early).then(estimated.round().cast(pl.Int64)).when(tokens > 0).then(counted)
    rows = stages.filter(OF_DOCUMENTS).select(
        "source",
        "stage",
        documents_in="rows_in",
        removed=removed,
        share=removed / pl.col("rows_in").clip(1),
        of_these_copies="duplicates",
        tokens_removed=lost,
    )
    return rows.filter((pl.col("removed") > 0) | (pl.col("tokens_removed") > 0))


def fate_table(fates: pl.DataFrame) -> pl.DataFrame:
    """Return the fate of every record, by source, with the reasons; shares are of its records."""
    fate, reason, records = pl.col("fate"), pl.col("reason"), pl.col("documents")
    other = pl.when(reason != fate).then(reason)
    share = records / records.sum().over("source")
    return fates.select("source", "fate", reason=other, records=records, share=share)


def excerpts(
    corpus: Corpus, sources: Sequence[str]
) -> Iterator[tuple[str, int, list[ShownDocument]]]:
    """Yield each rule, how many documents it removed, and some of them, of all sources in turn."""
    counts, found = Counter[str](), dict[tuple[str, str], ShownDocument]()
    tables: list[pl.DataFrame] = []
    for source in sources:
        if manifest := corpus.store.newest_or_none(FILTERED.name, source):
            counts.update(manifest.stats.rejected)
            with suppress(StoreError):  # of another version
                tables += chosen_of(corpus, manifest)
    shown: dict[str, list[ShownDocument]] = {}
    if tables:
        table = pl.concat(tables, how="diagonal_relaxed").sort("turn", maintain_order=True)
        table = table.group_by("first", maintain_order=True).head(EXCERPTS)
        for (source,), rows in table.partition_by("source", as_dict=True).items():
            with suppress(StoreError):  # of raw documents that are gone
                found |= excerpts_of(corpus, corpus.store.newest(FILTERED.name, source), rows)
        for rule, source, doc_id in table.select("first", "source", "doc_id").iter_rows():
            if (source, doc_id) in found:
                shown.setdefault(rule, []).append(found[source, doc_id])
    for reason, count in counts.most_common():
        yield reason, count, shown.get(reason, [])


def rules_of(corpus: Corpus, manifest: Manifest) -> dict[str, Rule]:
    """Return the rules that removed documents of a source, by name."""
    custom, has_pii = filter_data(corpus, manifest).custom, manifest.config.get("pii") is not None
    every = rules_for(rules_config(manifest), custom, pii=has_pii)
    return {rule.name: rule for rule in every if rule.name in manifest.stats.rejected}


def chosen_of(corpus: Corpus, manifest: Manifest) -> Iterator[pl.DataFrame]:
    """Choose decisions: for each rule, of the part in which it removed most, some at random.

    `turn` is the place of a document among those of its rule.
    """
    if not (rules := rules_of(corpus, manifest)):
        return
    parts = {
        part.name: part
        for name in rules
        for part in [max(manifest.parts, key=lambda part: part.stats.rejected.get(name, 0))]
    }
    paths = [path_of(corpus, manifest, part, "decisions") for part in parts.values()]
    rows = pl.scan_parquet(paths, include_file_paths="path")
    rows = rows.with_columns(pl.col("reasons").list.first().alias("first"))
    columns = ("doc_id", "path", "reasons", "first", *sorted({r.score for r in rules.values()}))
    removed = rows.filter(pl.col("first").is_in([*rules])).select(columns)
    table = removed.collect(engine="streaming")
    table = table.with_columns(sample_keys(table["doc_id"], 0)).sort("key", "doc_id")
    table = table.group_by("first", maintain_order=True).head(EXCERPTS)
    source, turn = pl.lit(manifest.partition), pl.int_range(pl.len()).over("first")
    yield table.with_columns(source.alias("source"), turn.alias("turn"))


def excerpts_of(
    corpus: Corpus, manifest: Manifest, chosen: pl.DataFrame
) -> dict[tuple[str, str], ShownDocument]:
    """Return the chosen documents of a source, by source and id, with what removed them marked."""
    rules, marker = rules_of(corpus, manifest), Marker(corpus, manifest)
    documents = read_documents(corpus, manifest, chosen)
    rows = [(row, documents[row["doc_id"]], rules[row["first"]]) for row in chosen.to_dicts()]
    texts = redacted_all([marker.seen(each["text"][:SEARCHED_CHARS], r) for _, each, r in rows])
    found: dict[tuple[str, str], ShownDocument] = {}
    for (row, document, rule), text in zip(rows, texts, strict=True):
        lines = lines_of(row | {"score": row[rule.score]}, document, rule)
        lines = redacted_lines({"source": manifest.partition} | lines)
        marked = marker.mark(text, rule, EXCERPT_CHARS)
        found[row["source"], row["doc_id"]] = ShownDocument(row["doc_id"], lines, marked)
    return found


def redacted_lines(lines: dict[str, str]) -> dict[str, str]:
    """Return lines about a document without personal data in names and addresses."""
    return dict(zip(lines, redacted_all([*lines.values()]), strict=True))


def clusters(corpus: Corpus) -> list[tuple[str, list[ShownDocument]]]:
    """Return the largest clusters: their documents, and how copies differ from what stayed."""
    try:
        if not (places := cluster_places(corpus)):
            return []
    except StoreError:  # not built yet, or lost
        return []
    columns = scan_clusters(places).select("cluster_id", "cluster_size").unique("cluster_id")
    order = columns.sort("cluster_size", "cluster_id", descending=[True, False])
    found = []
    for cluster_id, size in order.head(CLUSTERS).collect(engine="streaming").iter_rows():
        read = read_copies(corpus, cluster_members(places, cluster_id, COPIES))
        copies = [replace(each, text=each.text and redacted(each.text)) for each in read]
        documents = [
            ShownDocument(
                f"{copy.doc_id}: {'removed' if copy.method else 'stays'}",
                redacted_lines(copy.lines()),
                cut([*segments_of(copies, copy, CONTEXT)], CLUSTER_CHARS),
            )
            for copy in copies
        ]
        texts = (each.text.strip() for each in copies if each.text)
        first = one_line(next(texts, "").partition("\n")[0])[:CLUSTER_TITLE]
        found.append((f"{first}: {size:,} documents, {len(copies)} of them here", documents))
    return found


def cut(segments: Sequence[Segment], chars: int) -> list[Segment]:
    """Return the first characters of segments."""
    left: list[Segment] = []
    for kind, text in segments:
        if chars <= 0:
            return [*left, ("omitted", "more")]
        left.append((kind, text[:chars]))
        chars -= len(text)
    return left


def unreadable(corpus: Corpus, sources: Sequence[str]) -> pl.DataFrame:
    """Return the records that could not be read, by kind of error, with the bytes of the first."""
    tables = [NO_QUARANTINE, *(read_quarantine(corpus, name) for name in sources)]
    records = pl.concat(tables)
    first = records.unique(["source", "error"], keep="last").select("source", "error", begins="raw")
    kinds = count_kinds(records).join(first, on=["source", "error"], maintain_order="left")
    shown = kinds.group_by("source", maintain_order=True).head(EXCERPTS)
    begins = [each[:EXCERPT_CHARS].decode("utf-8", "replace") for each in shown["begins"]]
    return shown.with_columns(
        pl.Series("begins", [one_line(each)[:200] for each in redacted_all(begins)], pl.String),
        pl.Series("error", redacted_all([*shown["error"].str.head(EXCERPT_CHARS)]), pl.String),
    )


def topic_table(topics: pl.DataFrame) -> pl.DataFrame:
    """Return the documents of each topic, a column a source."""
    index, sources = ["annotator", "topic"], topics["source"].unique(maintain_order=True)
    return topics.pivot("source", on_columns=sources, index=index, values="documents").sort(index)


def fit_table(corpus: Corpus, sources: Sequence[str]) -> pl.DataFrame:
    """Return bytes and characters per token of each source."""
    found = {
        source: ask(corpus, TOKENIZED.name, source, lambda _, given: totals(given.stats.numbers))
        for source in sources
    }
    rows = [(source, *fit) for source, fit in found.items() if fit]
    schema = ("source", "bytes_per_token", "characters_per_token", "tokens")
    return pl.DataFrame(rows, schema, orient="row")


def warnings(corpus: Corpus, sources: Sequence[str]) -> list[str]:
    """Return the warnings of all stages on their newest states."""
    of = {"source": sources, "phase": corpus.settings.phase_names(), "none": [GLOBAL]}
    corpus = replace(corpus, shared={})
    lines = [line] if (line := incomplete(corpus)) else []
    for stage in BY_NAME.values():
        for name in of[stage.partitions] if stage.conclude else ():
            found = ask(corpus, stage.name, name, lambda each, given: each.conclude(corpus, given))
            lines += (f"{stage.name}, {name}: {line}" for line in (found.warnings if found else ()))
    return lines


def changes(corpus: Corpus, sources: Sequence[str]) -> pl.DataFrame:
    """Return what differs from the state before, of each source: inputs, settings, numbers."""
    rows: list[tuple[Any, ...]] = []
    of_documents = {RAW.name, FILTERED.name, DEDUPED.name}
    for source in sources:
        kept = KeptManifests(corpus.store, source)
        stage = kept.last_stage()
        numbers = kept.folder(stage).manifest_numbers()
        if len(numbers) < 2:
            rows.append((source, NO_EARLIER, None, None))
            continue
        before, after = (chain_of(kept, stage, number) for number in numbers[-2:])
        rows += (
            (source, line, None, None) for line in change_lines(entry_of(corpus, after, before, ()))
        )
        for stage, name, then, now, _ in number_changes(before, after).iter_rows():
            is_count = name not in ("bytes", "rows_in") and stage in of_documents
            if is_count or (stage, name) == (TOKENIZED.name, "tokens"):
                rows.append((source, f"{stage}: {name.replace('rows_', '')}", then, now))
    if all(what == NO_EARLIER for _, what, *_ in rows):
        rows = []  # once for all sources: it is the first build
    schema = {"source": pl.String, "what": pl.String, "before": pl.Int64, "now": pl.Int64}
    table = pl.DataFrame(rows, schema, orient="row")
    return table.with_columns(change=pl.col("now") - pl.col("before"))


def versions(manifests: Manifests) -> pl.DataFrame:
    """Return code version and fingerprint of each manifest."""
    rows = [(*key, each.code_version, each.fingerprint) for key, each in manifests.items()]
    return pl.DataFrame(rows, ("stage", "partition", "code", "fingerprint"), orient="row")
