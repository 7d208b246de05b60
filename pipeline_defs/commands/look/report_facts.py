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
from itertools import groupby
from typing import Any, NamedTuple

import msgspec
import polars as pl

from assets.deduped.deduped_records import DEDUPED
from assets.filtered.filtered_records import FILTERED
from assets.filtered.passages import sample_keys
from assets.filtered.pii.find_pii import find_pii
from assets.filtered.rules.rules import Rule, rules_for
from assets.mixed.complete_state_files import incomplete
from assets.raw.raw_records import RAW
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
from pipeline_defs.commands.look.summary import OF_DOCUMENTS, Summary
from pipeline_defs.commands.marked_texts import Segment, ShownDocument
from pipeline_defs.commands.published_documents import path_of
from pipeline_defs.commands.rules.filtered_files import filter_data, rules_config
from pipeline_defs.commands.rules.sample import Marker, lines_of, read_documents
from pipeline_defs.commands.states.diff import stage_differences
from pipeline_defs.commands.states.history import entry_of
from pipeline_defs.commands.states.history import lines_of as change_lines
from pipeline_defs.commands.states.state_chain import chain_of
from pipeline_defs.commands.terminal import Row, one_line
from resources.charts import Bars
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
    return [Picture(f"{partition}: {i[1]}", as_address(b64decode(i[2]))) for i in images]


def ask(corpus: Corpus, stage: str, partition: str, question: Callable[[Any, Any], Any]) -> Any:
    """Ask a stage about its newest state; None where there is none, or one of another version."""
    manifest = corpus.store.newest_or_none(stage, partition)
    if manifest is None or manifest.code_version != BY_NAME[stage].code_version:
        return None
    try:
        return question(BY_NAME[stage], typed(manifest, BY_NAME[stage]))
    except StoreError:
        return None


def funnel(numbers: Summary) -> Picture:
    """Draw how many documents are left after each stage."""
    sums = Counter[str]()
    for stages in numbers.sources.values():
        if RAW.name in stages:
            sums["records"] += stages[RAW.name].rows_in
        sums.update({name: stages[name].rows_kept for name in OF_DOCUMENTS if name in stages})
    read = sums["records"] or 1
    bars = ((name, n, f"{n:,}, {n / read:.1%}") for name, n in sums.items())
    chart = Bars("records, and documents left after each stage", tuple(bars))
    return Picture("funnel", as_address(msgspec.json.encode(chart)))


def funnel_rows(corpus: Corpus, numbers: Summary) -> Iterator[Row]:
    """Yield what each stage took from each source, in documents and in tokens.

    Tokens of what was removed before `tokenized` follow from its bytes.
    """
    for source, stages in numbers.sources.items():
        of_source = {name: corpus.store.newest_or_none(name, source) for name in OF_DOCUMENTS}
        encoded = of_source[TOKENIZED.name]
        per_byte = encoded.stats.tokens / max(1, encoded.stats.text_bytes) if encoded else 0.0
        tokens = 0
        yield source
        for name, manifest in of_source.items():
            if manifest is None or name not in stages:
                continue
            stats, lost = manifest.stats, "unknown"
            if name in (FILTERED.name, DEDUPED.name):
                lost = f"about {max(0, stats.text_bytes - stats.bytes) * per_byte:,.0f}"
            elif stats.tokens:
                lost = f"{max(0, tokens - stats.tokens):,}"
                tokens = stats.tokens
            removed = stats.rows_in - stats.rows_kept
            if not removed and lost in ("unknown", "0"):
                continue
            share = f"{removed / max(1, stats.rows_in):.1%}"
            yield name, stats.rows_in, removed, share, stats.duplicates, lost


def reason_rows(numbers: Summary) -> Iterator[Row]:
    """Yield the fate of every record, by source, with the reasons; shares are of its records."""
    for source, of_source in groupby(numbers.fates, lambda each: each.source):
        rows = [*of_source]
        yield source
        for each in rows:
            share = f"{each.documents / sum(row.documents for row in rows):.2%}"
            yield each.fate, "" if each.reason == each.fate else each.reason, each.documents, share


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
        found.append((f"{size:,} documents, {len(copies)} of them here", documents))
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


def unreadable(corpus: Corpus, sources: Sequence[str]) -> Iterator[Row]:
    """Yield the records that could not be read, by kind of error, with the bytes of the first."""
    for source in sources:
        if corpus.store.newest_or_none(RAW.name, source) is None:
            continue
        records = read_quarantine(corpus, source)
        begin = dict(zip(records["error"], records["raw"], strict=True))
        for row in count_kinds(records).head(EXCERPTS).iter_rows(named=True):
            text = redacted(begin[row["error"]][:EXCERPT_CHARS].decode("utf-8", "replace"))
            error = redacted(row["error"][:EXCERPT_CHARS])
            yield source, row["file"], error, row["next_step"], one_line(text)[:200], row["records"]


def evaluation_rows(corpus: Corpus, sources: Sequence[str]) -> Iterator[Row]:
    """Yield the documents with items of each evaluation set, by source."""
    for source in sources:
        if manifest := corpus.store.newest_or_none(DEDUPED, source):
            for name, documents in (manifest.stats.numbers.contaminated or {}).items():
                yield source, name, documents


def fit_rows(corpus: Corpus, sources: Sequence[str]) -> Iterator[Row]:
    """Yield bytes and characters per token of each source."""
    for source in sources:
        fit = ask(corpus, TOKENIZED.name, source, lambda _, given: totals(given.stats.numbers))
        if fit:
            yield source, f"{fit[0]:.2f}", f"{fit[1]:.2f}", fit[2]


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


def changes(corpus: Corpus, sources: Sequence[str]) -> Iterator[Row]:
    """Yield what differs from the state before, of each source: inputs, settings, numbers."""
    of_documents = {RAW.name, FILTERED.name, DEDUPED.name}
    for source in sources:
        yield source
        kept = KeptManifests(corpus.store, source)
        stage = kept.last_stage()
        numbers = kept.folder(stage).manifest_numbers()
        if len(numbers) < 2:
            yield "no earlier state is kept", None, None, None
            continue
        before, after = (chain_of(kept, stage, number) for number in numbers[-2:])
        for line in change_lines(entry_of(corpus, after, before, ())):
            yield line, None, None, None
        for each in stage_differences(before, after):
            for name, (then, now) in each.numbers.items():
                is_count = name not in ("bytes", "rows_in") and each.stage in of_documents
                if is_count or (each.stage, name) == (TOKENIZED.name, "tokens"):
                    what = f"{each.stage}: {name.replace('rows_', '')}"
                    yield what, then, now, f"{now - then:+,}"


def versions(corpus: Corpus) -> Iterator[Row]:
    """Yield code version and fingerprint of the newest state of each partition."""
    for stage in BY_NAME.values():
        for partition in sorted(corpus.store.partitions(), key=lambda each: each.name):
            if partition.stage == stage.name and (newest := partition.newest_manifest()):
                yield stage.name, partition.name, newest.code_version, newest.fingerprint
