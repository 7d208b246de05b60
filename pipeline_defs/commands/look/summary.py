"""`corpus summary`: sum up the corpus in numbers, from manifests and run reports.

`corpus build` ends with the same table: one row per source, 80 columns wide.

While nothing is built the exit code is 1, a message names the command to run, and --json gives
the usual object without stages.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import Annotated

import msgspec
from cyclopts import Parameter
from msgspec import UNSET, UnsetType

from assets.bucketed.bucketed_records import BUCKETED
from assets.bucketed.document_chunks import CUT, LEFT_OUT
from assets.bucketed.report import HeldOut, held_out, long_counts
from assets.deduped.deduped_records import BAND_INDEX, DEDUPED
from assets.filtered.filtered_records import FILTERED
from assets.mixed.complete_state_files import incomplete
from assets.mixed.mixed_records import MIXED
from assets.raw.raw_records import RAW
from assets.raw.unread_files import unread_lines
from assets.sharded.sharded_records import SHARDED
from assets.stages import STAGES, used_stages
from assets.tokenized.tokenized_records import TOKENIZED
from pipeline_defs.commands.terminal import (
    Json,
    Row,
    as_typed,
    percentages,
    print_json,
    print_table,
    say,
)
from pipeline_defs.load_corpus import load_corpus
from pipeline_defs.record_fates import Fate, FateCount, source_cuts, source_fates
from resources.corpus import Corpus
from resources.run_reports import read_report
from resources.settings.buckets import VALIDATION
from resources.store.records import Manifest
from resources.tasks import GLOBAL

SOURCE_STAGES = tuple(stage.name for stage in STAGES if stage.partitions == "source")
GLOBAL_STAGES = tuple(stage.name for stage in STAGES if stage.partitions == "none")
OF_DOCUMENTS = tuple(stage.name for stage in (RAW, FILTERED, DEDUPED, TOKENIZED, BUCKETED))
UNITS = {SHARDED.name: "sequences", BAND_INDEX.name: "bands"}  # the others count documents
REMOVED, TOKENS, DRAWN = "removed", "training\ntokens", "tokens\ndrawn"
COLUMNS = {  # of records, by fate; any other fate is `removed`, too
    Fate.NOT_A_DOCUMENT: "not\ndocuments",
    Fate.REJECTED: REMOVED,
    Fate.DUPLICATE: "duplicates",
    Fate.HELD_OUT: "held\nout",
    Fate.IN_NO_SHARD: "in no\nshard",
    Fate.IN_SHARDS: "training\nshards",
}
ALWAYS = ("records", REMOVED, "duplicates", "training\nshards", TOKENS)  # others if they count any
COUNTS = ("rows_in", "rows_kept", "rejected", "duplicates", "quarantined", "tokens", "bytes")
WORK = (
    *("parts_computed", "parts_reused", "seconds", "cpu_seconds"),
    *("docs_per_second", "mb_per_second"),
)
TOP_REASONS = 3
TOP_LANGUAGES = 5


class StageNumbers(msgspec.Struct, frozen=True):
    """Rows, tokens and bytes of a partition of a stage, and the work of the last run on it."""

    rows_in: int
    rows_kept: int
    rejected: dict[str, int]
    duplicates: int
    quarantined: int
    tokens: int
    bytes: int
    parts_computed: int
    parts_reused: int
    seconds: float
    cpu_seconds: float
    fingerprint: str
    docs_per_second: float | UnsetType = UNSET
    mb_per_second: float | UnsetType = UNSET
    shards: int | UnsetType = UNSET  # of `sharded` only


class PhaseShare(msgspec.Struct, frozen=True):
    """Planned and realised tokens of a source in a phase; its weights, if they change over it."""

    weight: float
    planned_tokens: int
    realised_tokens: int
    epochs: float
    weights_at: tuple[float, ...] | UnsetType = UNSET


Stages = dict[str, StageNumbers]


class Summary(msgspec.Struct, frozen=True, rename={"global_": "global"}):
    """Numbers of a corpus; stages and phases that are not materialized are left out."""

    store: str
    sources: dict[str, Stages]
    fates: tuple[FateCount, ...]
    cuts: dict[str, dict[str, int]]  # out of documents, by source
    global_: Stages
    phases: dict[str, dict[str, PhaseShare]]
    unread: list[str] | UnsetType = UNSET  # files that are not read, or not whole: a line a source
    other_languages: dict[str, dict[str, int]] | UnsetType = UNSET  # documents by source, language
    held_out: dict[str, HeldOut] | UnsetType = UNSET  # of training, by source
    long_conversations: dict[str, dict[str, int]] | UnsetType = UNSET  # than a sequence, by source
    incomplete: str | UnsetType = UNSET  # what the newest complete state does not have

    @property
    def is_empty(self) -> bool:
        """True if nothing is built."""
        built = [self.global_, *self.sources.values(), *self.phases.values()]
        return not any(built)


def summary(
    *,
    stages: Annotated[
        bool, Parameter(help="Show every stage, and the phases as planned and realised.")
    ] = False,
    json: Json = False,
) -> int:
    """Print the corpus in numbers; return 1 if nothing is built."""
    numbers = summarize(load_corpus())
    if json:
        print_json(numbers)
    elif not numbers.is_empty:
        show(numbers, stages=stages)
    if numbers.is_empty:
        sys.stderr.write(f"Nothing is built yet in {numbers.store}. Run: {as_typed('build')}\n")
    return int(numbers.is_empty)


def summarize(corpus: Corpus) -> Summary:
    """Sum up the newest manifests of a corpus."""
    settings, store = corpus.settings, corpus.store
    unread: list[str] = []
    others: dict[str, dict[str, int]] = {}
    held: dict[str, HeldOut] = {}
    long: dict[str, dict[str, int]] = {}
    for source in settings.source_names():
        raw = store.newest_or_none(RAW, source)
        if raw is not None and raw.code_version == RAW.code_version:
            unread += unread_lines(raw)
        if filtered := store.newest_or_none(FILTERED, source):
            others[source] = filtered.stats.numbers.other_languages or {}
        if bucketed := store.newest_or_none(BUCKETED, source):
            long[source] = long_counts(bucketed.stats.numbers)
            if of_source := held_out(bucketed.stats.numbers):
                held[source] = of_source
    used = used_stages(settings)
    of_sources = [stage for stage in SOURCE_STAGES if stage in used]
    of_all = [stage for stage in GLOBAL_STAGES if stage in used]
    manifests = {name: newest_of(corpus, name, of_sources) for name in settings.source_names()}
    found = Summary(
        store=str(store),
        sources={name: numbers_of(corpus, of_source) for name, of_source in manifests.items()},
        fates=tuple(each for of in manifests.items() for each in source_fates(*of)),
        cuts={name: cuts for name, of in manifests.items() if (cuts := source_cuts(of))},
        global_=numbers_of(corpus, newest_of(corpus, GLOBAL, of_all)),
        phases={name: mix_of(corpus, name) for name in settings.phase_names()},
        unread=unread or UNSET,
        other_languages={name: counts for name, counts in others.items() if counts} or UNSET,
        held_out=held or UNSET,
        long_conversations={name: counts for name, counts in long.items() if counts} or UNSET,
    )
    line = "" if found.is_empty else incomplete(corpus)
    return msgspec.structs.replace(found, incomplete=line or UNSET)


def newest_of(corpus: Corpus, partition: str, stages: Sequence[str]) -> dict[str, Manifest]:
    """Return the newest manifests of one partition, by stage."""
    found = {stage: corpus.store.newest_or_none(stage, partition) for stage in stages}
    return {stage: manifest for stage, manifest in found.items() if manifest is not None}


def numbers_of(corpus: Corpus, manifests: Mapping[str, Manifest]) -> Stages:
    """Return the numbers of manifests of one partition, by stage."""
    return {stage: stage_numbers(corpus, manifest) for stage, manifest in manifests.items()}


def stage_numbers(corpus: Corpus, manifest: Manifest) -> StageNumbers:
    """Return the numbers of a manifest and of the last run's report."""
    stats = manifest.stats
    report = read_report(corpus.store.root, manifest.stage, manifest.partition)
    is_sharded = manifest.stage == SHARDED.name
    of_run = {name: getattr(report, name) for name in WORK}
    of_manifest = {name: getattr(stats, name) for name in COUNTS}
    shards = sum(stats.numbers.get("shards", {}).values()) if is_sharded else UNSET
    fingerprint = manifest.fingerprint
    return StageNumbers(**of_manifest, **of_run, fingerprint=fingerprint, shards=shards)


def mix_of(corpus: Corpus, phase: str) -> dict[str, PhaseShare]:
    """Return the tokens of each source of a phase; none if it is not materialized."""
    manifest = corpus.store.newest_or_none(MIXED, phase)
    if manifest is None:
        return {}
    fields = PhaseShare.__struct_fields__
    return {
        source: PhaseShare(**{field: getattr(share, field) for field in fields})
        for source, share in manifest.parts[0].stats.numbers.mix.items()
    }


def show(numbers: Summary, *, stages: bool = False) -> None:
    """Print what became of each source, or of each stage, and the next command."""
    if stages:
        columns = ("read", "kept", "rejected", "duplicates", "unreadable", "tokens", "shards")
        texts = ("source and stage",)
        print_table("stages", texts, (*columns, "parts\nnew+kept"), stage_rows(numbers))
    else:
        print_table("records of each source", ("source",), *source_table(numbers))
    reasons = ("source", "fate", "main reasons")
    print_table("removed records", reasons, ("records",), reason_rows(numbers))
    if stages:
        print_mix(numbers)
    say(*(numbers.unread or ()), *source_lines(numbers))
    say(*([numbers.incomplete] if numbers.incomplete else []))
    say(f"The corpus is in {numbers.store}")
    is_mixed = all(numbers.phases.values())
    say(f"See it in the web UI: {as_typed('ui')}" if is_mixed else f"Next: {as_typed('build')}")


def source_table(numbers: Summary) -> tuple[list[str], list[Row]]:
    """Return the columns and a row for each source: its records by fate, its tokens."""
    counts = {source: Counter[str]() for source, stages in numbers.sources.items() if stages}
    for each in numbers.fates:
        column, tokens = (
            COLUMNS.get(each.fate, REMOVED),
            each.fate is Fate.IN_SHARDS and each.tokens,
        )
        counts[each.source].update({"records": each.documents, column: each.documents})
        counts[each.source][TOKENS] += tokens or 0
    for phase, shares in numbers.phases.items():
        for source in counts.keys() & shares.keys() if phase != VALIDATION else ():
            counts[source][DRAWN] += shares[source].realised_tokens
    total = sum(counts.values(), Counter[str]())
    order = ("records", *COLUMNS.values(), TOKENS, DRAWN)
    columns = [column for column in order if column in ALWAYS or total[column]]
    rows: list[Row] = [(name, *(of[each] for each in columns)) for name, of in counts.items()]
    return columns, [*rows, None, ("all", *(total[each] for each in columns))]


def source_lines(numbers: Summary) -> Iterator[str]:
    """Yield lines on what is unusual in sources: faults, languages, held-out, long documents."""
    for source, stages in numbers.sources.items():
        if number := sum(of_stage.quarantined for of_stage in stages.values()):
            next_step = as_typed("quarantine", "list", "--source", source)
            yield f"{source}: {number:,} records could not be read: {next_step}"
    for source, cuts in numbers.cuts.items():
        amounts = ", ".join(f"{amount:,} {what}" for what, amount in cuts.items())
        yield f"{source}: cut out of documents: {amounts}"
    for source, counts in (numbers.other_languages or {}).items():
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        languages = ", ".join(f"{lang} {count:,}" for lang, count in ordered[:TOP_LANGUAGES])
        total = sum(counts.values())
        yield f"{source}: {total:,} documents in other languages than its `language` ({languages})"
    for source, held in (numbers.held_out or {}).items():
        yield (
            f"{source}: {held.documents:,} documents are held out for validation "
            f"({held.tokens:,} tokens in {held.sequences:,} sequences)"
        )
    for source, counts in (numbers.long_conversations or {}).items():
        yield (
            f"{source}: {sum(counts.values()):,} conversations are longer than a sequence "
            f"({counts.get(LEFT_OUT, 0):,} left out, {counts.get(CUT, 0):,} cut between turns)"
        )


def stage_rows(numbers: Summary) -> Iterator[Row]:
    """Yield the stages of each source below its name, then those of all sources together."""
    for source, stages in [*numbers.sources.items(), ("all sources", numbers.global_)]:
        unit = "documents"
        if stages:
            yield source
        for stage, of_stage in stages.items():
            before, unit = unit, UNITS.get(stage, "documents")
            yield (
                f"  {stage}" + (f": {unit}" if unit != before else ""),
                of_stage.rows_in,
                of_stage.rows_kept,
                sum(of_stage.rejected.values()),
                of_stage.duplicates,
                of_stage.quarantined,
                of_stage.tokens or None,
                None if isinstance(of_stage.shards, UnsetType) else of_stage.shards,
                f"{of_stage.parts_computed:,} + {of_stage.parts_reused:,}",
            )
        yield None


def reason_rows(numbers: Summary) -> Iterator[Row]:
    """Yield the most frequent reasons of each stage for which records of a source are out."""
    apart = {*COLUMNS} - {Fate.NOT_A_DOCUMENT, Fate.REJECTED}
    out = (each for each in numbers.fates if each.fate not in apart)
    for source, of_source in groupby(out, lambda each: each.source):
        for _, rows in groupby(of_source, lambda each: each.stage):
            for each in islice(rows, TOP_REASONS):
                yield source, each.fate, each.reason, each.documents
        yield None


def print_mix(numbers: Summary) -> None:
    """Compare planned and realised tokens per source of each phase."""
    columns = ("weight", "planned tokens", "realised tokens", "realised share", "epochs")
    rows = mix_rows(numbers)
    more = ("from start to end",) if any(row and len(row) > 7 for row in rows) else ()
    print_table("phases", ("phase", "source"), (*columns, *more), rows)


def mix_rows(numbers: Summary) -> list[Row]:
    """Return planned and realised tokens per source of each phase."""
    is_changing = any(share.weights_at for mix in numbers.phases.values() for share in mix.values())
    rows: list[Row] = []
    for phase, mix in numbers.phases.items():
        total = max(1, sum(of_source.realised_tokens for of_source in mix.values()))
        for source, each in mix.items():
            tokens = (each.planned_tokens, each.realised_tokens)
            shares = (f"{each.realised_tokens / total:.1%}", f"{each.epochs:.2f}")
            weights = (percentages(each.weights_at),) if is_changing else ()
            rows.append((phase, source, f"{each.weight:.1%}", *tokens, *shares, *weights))
        rows.append(None)
    return rows
