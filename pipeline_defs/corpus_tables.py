"""The numbers of a corpus as named frames with declared columns, made of manifests.

Summary, report, disclosure and notebooks take theirs from here, so that they cannot differ. No
document is read, but for `documents`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec
import polars as pl
from msgspec.structs import astuple

from assets.annotated.annotated_records import ANNOTATED, DROPPED
from assets.bucketed.bucketed_records import BUCKETED, LEAKAGE
from assets.bucketed.report import held_out as held_out_of
from assets.deduped.deduped_records import DEDUPED
from assets.filtered.filtered_records import FILTERED
from assets.mixed.mixed_records import MIXED
from assets.sharded.sharded_records import SHARDED
from assets.stages import BY_NAME, used_stages
from pipeline_defs.record_fates import bucketed_numbers, complete_chain, source_cuts, source_fates
from pipeline_defs.trained_documents import documents_table, windows_of
from resources.corpus import Corpus
from resources.run_reports import all_reused, read_report
from resources.runs.run_notes import read_notes
from resources.store.records import Manifest, StageRecords, as_json_object
from resources.store.store import typed
from resources.tasks import GLOBAL

Manifests = Mapping[tuple[str, str], Manifest[Any, Any]]  # by stage and partition
Rows = Callable[[Corpus, Manifests], Iterable[tuple[Any, ...] | dict[str, Any]] | pl.DataFrame]
OWN: dict[str, StageRecords[Any, Any]] = {s.name: s for s in (FILTERED, BUCKETED, MIXED)}
COUNTS = ("rows_in", "rows_kept", "duplicates", "quarantined", "tokens", "bytes", "text_bytes")
NUMBERS = (
    "seconds",
    "cpu_seconds",
    "docs_per_second",
    "mb_per_second",
    "weight",
    "epochs",
    "worst",
)
TEXTS = (
    *("source", "stage", "fingerprint", "phase", "fate", "reason", "cut", "evaluation_set"),
    *("language", "outcome", "domain", "license", "annotator", "topic"),
    *("ratios", "metrics"),
)
TYPES: dict[str, Any] = {  # of columns by name; all others are Int64
    **dict.fromkeys(TEXTS, pl.String),
    **dict.fromkeys(NUMBERS, pl.Float64),
    "weights_at": pl.List(pl.Float64),
    "rejected": pl.List(pl.Struct({"reason": pl.String, "rows": pl.Int64})),
}
REJECTED = pl.col("rejected").list.agg(pl.element().struct["rows"].sum())


TABLES: dict[str, tuple[tuple[str, ...], Rows]] = {}


def table(*columns: str) -> Callable[[Rows], Rows]:
    """Make a function the table of its name; its documentation says what the table has."""

    def add(rows: Rows) -> Rows:
        TABLES[rows.__name__] = columns, rows
        return rows

    return add


class CorpusTables(dict[str, pl.DataFrame]):
    """The tables of TABLES over some manifests, each made when it is asked for by its name."""

    def __init__(self, corpus: Corpus, manifests: Manifests) -> None:
        self.corpus, self.manifests = corpus, manifests

    def __missing__(self, name: str) -> pl.DataFrame:
        columns, read = TABLES[name]
        rows = read(self.corpus, self.manifests)
        if not isinstance(rows, pl.DataFrame):
            schema = {column: TYPES.get(column, pl.Int64) for column in columns}
            rows = pl.DataFrame([*rows], schema, orient="row")
        self[name] = rows
        return rows


def newest_tables(corpus: Corpus) -> CorpusTables:
    """Return the tables over the newest manifests: of sources, of all together, of phases.

    Raises StoreError if another version of the code wrote one whose own numbers are read.
    """
    settings, stages = corpus.settings, used_stages(corpus.settings).values()
    names = {"source": settings.source_names(), "none": [GLOBAL], "phase": settings.phase_names()}
    keys = ((s.name, n) for of in names for n in names[of] for s in stages if s.partitions == of)
    newest = ((key, corpus.store.newest_or_none(*key)) for key in keys)
    found = {key: each for key, each in newest if each}
    own = {key: typed(found[key], OWN[key[0]]) for key in found if key[0] in OWN}
    return CorpusTables(corpus, found | own)


def by_source(manifests: Manifests) -> dict[str, dict[str, Manifest[Any, Any]]]:
    """Return the manifests of each source by stage."""
    found: dict[str, dict[str, Manifest[Any, Any]]] = {}
    for (stage, name), manifest in manifests.items():
        if BY_NAME[stage].partitions == "source":
            found.setdefault(name, {})[stage] = manifest
    return found


def counts_in(manifests: Manifests, of_stage: str, numbers: str) -> Iterator[tuple[Any, ...]]:
    """Yield source, name and number of counts that a stage has made."""
    for (stage, source), manifest in manifests.items():
        if stage == of_stage:
            counts = as_json_object(manifest.stats.numbers).get(numbers) or {}
            yield from ((source, *count) for count in counts.items())


@table(
    *("source", "stage", "rows_in", "rows_kept", "rejected", "duplicates", "quarantined", "tokens"),
    *("bytes", "text_bytes", "shards", "parts_computed", "parts_reused", "seconds", "cpu_seconds"),
    *("docs_per_second", "mb_per_second", "fingerprint"),
)
def stages(corpus: Corpus, manifests: Manifests) -> Iterator[dict[str, Any]]:
    """Rows, tokens and bytes of each stage but `mixed`, and the work of the last build on it.

    The stages of all sources together have no source.
    """
    is_unchanged = any(note.unchanged_at for note in read_notes(corpus.store.root)[:1])
    for (stage, name), manifest in manifests.items():
        if stage != MIXED.name:
            stats, of_run = manifest.stats, read_report(corpus.store.root, stage, name)
            of_run = all_reused(of_run) if is_unchanged else of_run
            shards = as_json_object(stats.numbers).get("shards", {})
            yield {
                "source": name if BY_NAME[stage].partitions == "source" else None,
                "stage": stage,
                "rejected": [{"reason": r, "rows": n} for r, n in stats.rejected.items()],
                "shards": sum(shards.values()) if stage == SHARDED.name else None,
                "fingerprint": manifest.fingerprint,
                **{name: getattr(stats, name) for name in COUNTS},
                **msgspec.to_builtins(of_run),
            }


@table("source", "fate", "stage", "reason", "documents", "tokens")
def fates(_: Corpus, manifests: Manifests) -> Iterator[tuple[Any, ...]]:
    """What became of the records of a source, by the counts in its manifests; each is in a row."""
    for each in by_source(manifests).items():
        yield from source_fates(*each)


@table("source", "cut", "amount")
def cuts(_: Corpus, manifests: Manifests) -> Iterator[tuple[Any, ...]]:
    """What was cut out of documents, by these counts."""
    for source, of_source in by_source(manifests).items():
        yield from ((source, *cut) for cut in source_cuts(of_source).items())


@table("source", "evaluation_set", "documents", "partly")
def contaminated(_: Corpus, manifests: Manifests) -> Iterator[tuple[Any, ...]]:
    """Documents with items of evaluation sets, and those partly like an item, which stay."""
    columns = ("contaminated", "partly")
    found = [
        {each[:2]: each[2] for each in counts_in(manifests, DEDUPED.name, name)} for name in columns
    ]
    for key in sorted(found[0] | found[1]):
        yield *key, *(counts.get(key, 0) for counts in found)


@table("source", "annotator", "documents", "matched", "far", "dropped")
def annotated(_: Corpus, manifests: Manifests) -> Iterator[tuple[Any, ...]]:
    """Documents of annotators: those they say something of, those beyond topics, the dropped."""
    dropped = {
        (source, reason.removeprefix(DROPPED)): count
        for (stage, source), manifest in manifests.items()
        for reason, count in (manifest.stats.rejected if stage == BUCKETED.name else {}).items()
    }
    matched, far = (
        {each[:2]: each[2] for each in counts_in(manifests, ANNOTATED.name, name)}
        for name in ("matched", "far")
    )
    for *key, documents in counts_in(manifests, ANNOTATED.name, "documents"):
        of = key[0], key[1]
        yield *of, documents, *(each.get(of, 0) for each in (matched, far, dropped))


@table("source", "annotator", "topic", "documents")
def topics(_: Corpus, manifests: Manifests) -> Iterator[tuple[Any, ...]]:
    """Documents of each source and topic."""
    for source, key, documents in counts_in(manifests, ANNOTATED.name, "topics"):
        annotator, _, topic = key.partition(": ")
        yield source, annotator, topic, documents


@table("source", "language", "documents")
def other_languages(_: Corpus, manifests: Manifests) -> Iterator[tuple[Any, ...]]:
    """Documents in other languages than the `language` of their source."""
    return counts_in(manifests, FILTERED.name, "other_languages")


@table("source", "outcome", "documents")
def long_conversations(_: Corpus, manifests: Manifests) -> Iterator[tuple[Any, ...]]:
    """Conversations that are longer than a sequence, by what became of them."""
    return counts_in(manifests, BUCKETED.name, "long_conversations")


@table("source", "documents", "tokens", "sequences")
def held_out(_: Corpus, manifests: Manifests) -> Iterator[tuple[Any, ...]]:
    """What is held out of each source for validation."""
    for (stage, source), manifest in manifests.items():
        if stage == BUCKETED.name and (held := held_out_of(bucketed_numbers(manifest))):
            yield source, *astuple(held)


@table("source", "documents", "left_out", "worst")
def leakage(_: Corpus, manifests: Manifests) -> Iterator[tuple[Any, ...]]:
    """Documents for training that were compared with held-out ones, and those left out for it.

    worst: largest share of a document's 13-grams that one held-out document has, of the others.
    """
    for (stage, _all), manifest in manifests.items():
        of = as_json_object(manifest.stats.numbers) if stage == LEAKAGE.name else {}
        for source, num in of.get("documents", {}).items():
            left_out, worst = (of.get(name, {}).get(source, 0) for name in ("left_out", "worst"))
            yield source, num, left_out, worst / 1e6


@table("phase", "source", "weight", "planned_tokens", "realised_tokens", "epochs", "weights_at")
def mix(_: Corpus, manifests: Manifests) -> Iterator[dict[str, Any]]:
    """Tokens that a phase draws from a source: `parts[0].stats.extra.mix` of mixed."""
    for (stage, phase), manifest in manifests.items():
        if stage == MIXED.name:
            shares = as_json_object(manifest.parts[0].stats.numbers)["mix"]
            yield from ({"phase": phase, "source": name} | of for name, of in shares.items())


@table("phase", "ratios", "metrics")
def fitted(_: Corpus, manifests: Manifests) -> Iterator[dict[str, Any]]:
    """SHA-256 of the files of proxy runs to which the weights of a phase were fitted."""
    for (stage, phase), manifest in manifests.items():
        if stage == MIXED.name and (files := manifest.config.get("fitted")):
            yield {"phase": phase} | files


@table("source", "domain", "license", "language", "is_code", "documents", "bytes", "tokens")
def documents(corpus: Corpus, manifests: Manifests) -> pl.DataFrame:
    """Documents in training shards: those in the sequences of bucketed that are not held out.

    domain: registrable domain of `url` (publicsuffixlist), of crawled sources only; is_code: the
    source's `domain` is code.
    """
    chains = ((source, complete_chain(of)) for source, of in by_source(manifests).items())
    return documents_table(corpus, [w for each in chains for w in windows_of(corpus, *each)])
