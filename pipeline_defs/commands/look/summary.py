"""`corpus summary`: sum up the corpus in numbers, from manifests and run reports.

`corpus build` ends with the same table: one row per source, 80 columns wide.

While nothing is built the exit code is 1, a message names the command to run, and --json gives
the usual object without stages.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated, Any

import polars as pl
from cyclopts import Parameter

from assets.annotated.annotated_records import ANNOTATED, ANNOTATORS, ASKED
from assets.annotated.asked_files import unanswered_lines
from assets.bucketed.document_chunks import CUT, LEFT_OUT
from assets.deduped.deduped_records import BAND_INDEX
from assets.mixed.complete_state_files import incomplete
from assets.raw.raw_records import RAW
from assets.raw.unread_files import unread_lines
from assets.sharded.sharded_records import SHARDED
from pipeline_defs.commands.answers import nested, print_frame
from pipeline_defs.commands.terminal import Json, as_typed, print_json, say
from pipeline_defs.corpus_tables import REJECTED, CorpusTables, newest_tables
from pipeline_defs.load_corpus import load_corpus
from pipeline_defs.record_fates import Fate
from resources.corpus import Corpus
from resources.settings.buckets import VALIDATION
from resources.store.store import typed
from resources.tasks import GLOBAL

UNITS = {  # the others count documents
    **{SHARDED.name: "sequences", BAND_INDEX.name: "bands"},
    **{ANNOTATORS.name: "records", ANNOTATED.name: "documents by annotator"},
}
APART = {  # columns of records by fate; any other fate of a document is `removed`
    "duplicates": Fate.DUPLICATE,
    "held_out": Fate.HELD_OUT,
    "in_no_shard": Fate.IN_NO_SHARD,
    "training_shards": Fate.IN_SHARDS,
}
ALWAYS = ("source", "records", "removed", "duplicates", "training_shards", "training_tokens")
TOP_REASONS = 3
TOP_LANGUAGES = 5
MOST_PHASES = 6  # with a column of their own
IS_SOURCE = pl.col("source").is_not_null()


def summary(
    *,
    stages: Annotated[
        bool, Parameter(help="Show every stage, and the phases as planned and realised.")
    ] = False,
    json: Json = False,
) -> int:
    """Print the corpus in numbers; return 1 if nothing is built."""
    tables = newest_tables(load_corpus())
    if json:
        print_json(as_json(tables))
    elif tables.manifests:
        show(tables, stages=stages)
    if not tables.manifests:
        built_in = tables.corpus.store
        sys.stderr.write(f"Nothing is built yet in {built_in}. Run: {as_typed('build')}\n")
    return int(not tables.manifests)


def as_json(tables: CorpusTables) -> dict[str, Any]:
    """Return the numbers for programs; what is unusual is left out where there is none."""
    settings, stages = tables.corpus.settings, tables["stages"]
    unusual = {
        "unread": unread_files(tables.corpus),
        "other_languages": nested(tables["other_languages"], "source", "language"),
        "held_out": nested(tables["held_out"], "source"),
        "long_conversations": nested(tables["long_conversations"], "source", "outcome"),
        "unanswered": unanswered(tables.corpus),
        "incomplete": incomplete(tables.corpus) if tables.manifests else "",
    }
    of_sources = stages.filter(IS_SOURCE)
    return {name: told for name, told in unusual.items() if told} | {
        "store": str(tables.corpus.store),
        "sources": nested(of_sources, "source", "stage", of=settings.source_names()),
        "global": nested(stages.filter(~IS_SOURCE).drop("source"), "stage"),
        "fates": nested(tables["fates"]),
        "cuts": nested(tables["cuts"], "source", "cut"),
        "phases": nested(tables["mix"], "phase", "source", of=settings.phase_names()),
    }


def show(tables: CorpusTables, *, stages: bool = False) -> None:
    """Print what became of each source, or of each stage, and the next command."""
    if stages:
        print_frame("stages", stage_table(tables["stages"]), "source")
    else:
        print_frame("records of each source", source_table(tables))
    print_frame("removed records", reason_table(tables))
    if stages:
        print_frame("phases", mix_table(tables["mix"]))
    corpus = tables.corpus
    say(*unread_files(corpus), *source_lines(tables), *unanswered(corpus))
    say(*([line] if (line := incomplete(corpus)) else []))
    say(f"The corpus is in {corpus.store}")
    is_mixed = tables["mix"]["phase"].n_unique() == len(corpus.settings.phase_names())
    say(f"See it in the web UI: {as_typed('ui')}" if is_mixed else f"Next: {as_typed('build')}")


def unread_files(corpus: Corpus) -> list[str]:
    """Return a line for each of the sources with files that are not read, or not whole."""
    found = (corpus.store.newest_or_none(RAW.name, name) for name in corpus.settings.source_names())
    own = (typed(each, RAW) for each in found if each and each.code_version == RAW.code_version)
    return [line for manifest in own for line in unread_lines(manifest)]


def unanswered(corpus: Corpus) -> list[str]:
    """Return a line for each annotator that has texts to ask about, or that gets few answers."""
    asked = corpus.store.newest_or_none(ASKED, GLOBAL) if corpus.settings.asking else None
    return unanswered_lines(asked) if asked else []


def source_lines(tables: CorpusTables) -> Iterator[str]:
    """Yield lines on what is unusual in sources: faults, languages, held-out, long documents."""
    broken = tables["stages"].filter(IS_SOURCE).group_by("source", maintain_order=True)
    for source, number in broken.agg(pl.col("quarantined").sum()).iter_rows():
        if number:
            next_step = as_typed("quarantine", "list", "--source", source)
            yield f"{source}: {number:,} records could not be read: {next_step}"
    for source, cuts in nested(tables["cuts"], "source", "cut").items():
        amounts = ", ".join(f"{amount:,} {what}" for what, amount in cuts.items())
        yield f"{source}: cut out of documents: {amounts}"
    for source, counts in nested(tables["other_languages"], "source", "language").items():
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        languages = ", ".join(f"{lang} {count:,}" for lang, count in ordered[:TOP_LANGUAGES])
        total = sum(counts.values())
        is_kept = not tables.corpus.settings.source(source).require_language
        what = "are kept; `require_language: true` of the source rejects them"
        yield (
            f"{source}: {total:,} documents in other languages than its `language` ({languages}) "
            f"{what if is_kept else 'are rejected'}"
        )
    for source, documents, tokens, sequences in tables["held_out"].iter_rows():
        yield (
            f"{source}: {documents:,} documents are held out for validation "
            f"({tokens:,} tokens in {sequences:,} sequences)"
        )
    for source, counts in nested(tables["long_conversations"], "source", "outcome").items():
        yield (
            f"{source}: {sum(counts.values()):,} conversations are longer than a sequence "
            f"({counts.get(LEFT_OUT, 0):,} left out, {counts.get(CUT, 0):,} cut between turns)"
        )


def source_table(tables: CorpusTables) -> pl.DataFrame:
    """Return a row for each source: its records by fate, its tokens; then the sums."""
    fate, documents = pl.col("fate"), pl.col("documents")
    counted = (
        tables["fates"]
        .group_by("source")
        .agg(
            records=documents.sum(),
            not_documents=documents.filter(fate == Fate.NOT_A_DOCUMENT).sum(),
            removed=documents.filter(~fate.is_in([*APART.values(), Fate.NOT_A_DOCUMENT])).sum(),
            **{name: documents.filter(fate == of).sum() for name, of in APART.items()},
            training_tokens=pl.col("tokens").filter(fate == Fate.IN_SHARDS).sum(),
        )
    )
    rows = tables["stages"].filter(IS_SOURCE).select("source").unique(maintain_order=True)
    rows = rows.join(counted, on="source", how="left", maintain_order="left").fill_null(0)
    rows = pl.concat(
        [rows, rows.select(pl.lit(GLOBAL).alias("source"), pl.exclude("source").sum())]
    )
    rows = rows.select(each for each in rows if each.name in ALWAYS or each.sum())
    shares = phase_shares(tables["mix"])
    return rows.join(shares, on="source", how="left", maintain_order="left")


def phase_shares(mix: pl.DataFrame) -> pl.DataFrame:
    """Return the share that each source has of the tokens of each phase, a column for each.

    Of more than MOST_PHASES there are none: `corpus summary --stages` has them.
    """
    trained_on = mix_table(mix.filter(pl.col("phase") != VALIDATION))
    if trained_on["phase"].n_unique() > MOST_PHASES:
        trained_on = trained_on.clear()
    named = trained_on.with_columns(pl.format("{}_share", "phase").alias("phase"))
    return named.pivot("phase", index="source", values="realised_share")


def stage_table(stages: pl.DataFrame) -> pl.DataFrame:
    """Return the stages of each source, then of all together; units are named where they change."""
    unit = pl.col("stage").replace_strict(UNITS, default="documents")
    is_new = unit != unit.shift(1, fill_value="documents").over("source")
    return stages.select(
        pl.col("source").fill_null("all sources"),
        pl.when(is_new).then(pl.format("{}: {}", "stage", unit)).otherwise("stage").alias("stage"),
        read="rows_in",
        kept="rows_kept",
        rejected=REJECTED,
        duplicates="duplicates",
        unreadable="quarantined",
        tokens=pl.col("tokens").replace(0, None),
        shards="shards",
        parts_new="parts_computed",
        parts_kept="parts_reused",
    )


def reason_table(tables: CorpusTables) -> pl.DataFrame:
    """Return the most frequent reasons of each fate for which records of a source are out."""
    out = tables["fates"].filter(~pl.col("fate").is_in([*APART.values()]))
    group = ("source", "stage", "fate")
    place, size = pl.int_range(pl.len()).over(group), pl.len().over(group)
    is_named = (place < TOP_REASONS) | (size == TOP_REASONS + 1)
    named = out.with_columns(reason=pl.when(is_named).then("reason"))
    counted = named.group_by(*group, "reason", maintain_order=True).agg(
        records=pl.col("documents").sum(), others=pl.format("and {} others", pl.len())
    )
    return counted.select(
        "source", "fate", pl.coalesce("reason", "others").alias("main_reasons"), "records"
    )


def mix_table(mix: pl.DataFrame) -> pl.DataFrame:
    """Return planned and realised tokens, and shares, of the sources of each phase."""
    tokens = pl.col("realised_tokens")
    share = tokens / tokens.sum().clip(1).over("phase")
    return mix.with_columns(realised_share=share)
