"""`corpus summary`: sum up the corpus in numbers, from manifests and run reports.

While nothing is built the exit code is 1, a message names the command to run, and --json gives
the usual object without stages.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import chain

import msgspec
from msgspec import UNSET, UnsetType
from rich import box
from rich.console import Console
from rich.table import Table

from assets.bucketed.bucketed_records import BUCKETED
from assets.bucketed.conversations import CUT, LEFT_OUT
from assets.bucketed.report import HeldOut, held_out, long_counts
from assets.filtered.filtered_records import FILTERED
from assets.mixed.mixed_records import MIXED
from assets.raw.raw_records import RAW
from assets.raw.unread_files import unread_lines
from assets.sharded.sharded_records import SHARDED
from assets.stages import STAGES, used_stages
from pipeline_defs.commands.terminal.options import Json
from pipeline_defs.commands.terminal.output import new_table, percentages, print_json, table_console
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.run_reports import read_report
from resources.store.records import Manifest
from resources.tasks import GLOBAL

SOURCE_STAGES = tuple(stage.name for stage in STAGES if stage.partitions == "source")
GLOBAL_STAGES = tuple(stage.name for stage in STAGES if stage.partitions == "none")
TOP_REASONS = 3
TOP_LANGUAGES = 5
WIDTH = 100  # columns, where the output is no terminal


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
    global_: Stages
    phases: dict[str, dict[str, PhaseShare]]
    unread: list[str] | UnsetType = UNSET  # files that are not read, or not whole: a line a source
    other_languages: dict[str, dict[str, int]] | UnsetType = UNSET  # documents by source, language
    held_out: dict[str, HeldOut] | UnsetType = UNSET  # of training, by source
    long_conversations: dict[str, dict[str, int]] | UnsetType = UNSET  # than a sequence, by source

    @property
    def is_empty(self) -> bool:
        """True if nothing is built."""
        built = [self.global_, *self.sources.values(), *self.phases.values()]
        return not any(built)


def summary(*, json: Json = False) -> int:
    """Print the corpus in numbers; return 1 if nothing is built."""
    numbers = summarize(load_corpus())
    if json:
        print_json(numbers)
    elif not numbers.is_empty:
        show(numbers)
    if numbers.is_empty:
        sys.stderr.write(f"Nothing is built yet in {numbers.store}. Run: corpus build\n")
    return int(numbers.is_empty)


def summarize(corpus: Corpus) -> Summary:
    """Sum up the newest manifests of a corpus."""
    settings = corpus.settings
    return Summary(
        store=str(corpus.store),
        sources={name: stages_of(corpus, name, SOURCE_STAGES) for name in settings.source_names()},
        global_=stages_of(corpus, GLOBAL, GLOBAL_STAGES),
        phases={name: mix_of(corpus, name) for name in settings.phase_names()},
        unread=list(unread_of(corpus)) or UNSET,
        other_languages=dict(other_languages_of(corpus)) or UNSET,
        held_out=dict(held_out_of(corpus)) or UNSET,
        long_conversations=dict(long_conversations_of(corpus)) or UNSET,
    )


def stages_of(corpus: Corpus, partition: str, stages: tuple[str, ...]) -> Stages:
    """Return the numbers of one partition, stage by stage; not of stages that are not used."""
    used = used_stages(corpus.settings)
    folders = (corpus.store.partition(stage, partition) for stage in stages if stage in used)
    manifests = (folder.newest_manifest() for folder in folders)
    return {
        manifest.stage: stage_numbers(corpus, manifest)
        for manifest in manifests
        if manifest is not None
    }


def stage_numbers(corpus: Corpus, manifest: Manifest) -> StageNumbers:
    """Return the numbers of a manifest and of the last run's report."""
    stats = manifest.stats
    report = read_report(corpus.store.root, manifest.stage, manifest.partition)
    return StageNumbers(
        rows_in=stats.rows_in,
        rows_kept=stats.rows_kept,
        rejected=stats.rejected,
        duplicates=stats.duplicates,
        quarantined=stats.quarantined,
        tokens=stats.tokens,
        bytes=stats.bytes,
        parts_computed=report.parts_computed,
        parts_reused=report.parts_reused,
        seconds=report.seconds,
        cpu_seconds=report.cpu_seconds,
        docs_per_second=report.docs_per_second,
        mb_per_second=report.mb_per_second,
        fingerprint=manifest.fingerprint,
        shards=count_shards(manifest) if manifest.stage == SHARDED.name else UNSET,
    )


def count_shards(manifest: Manifest) -> int:
    """Count the shards of a source."""
    return sum(manifest.stats.numbers.get("shards", {}).values())


def unread_of(corpus: Corpus) -> Iterator[str]:
    """Yield the lines on files that are not read, source by source."""
    for source in corpus.settings.source_names():
        manifest = corpus.store.newest_or_none(RAW, source)
        if manifest is not None and manifest.code_version == RAW.code_version:
            yield from unread_lines(manifest)


def other_languages_of(corpus: Corpus) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield each source with documents in other languages than its own, and their languages."""
    for source in corpus.settings.source_names():
        manifest = corpus.store.newest_or_none(FILTERED, source)
        if manifest is not None and manifest.stats.numbers.other_languages:
            yield source, manifest.stats.numbers.other_languages


def held_out_of(corpus: Corpus) -> Iterator[tuple[str, HeldOut]]:
    """Yield each source of which documents are held out of training, and how many."""
    for source in corpus.settings.source_names():
        manifest = corpus.store.newest_or_none(BUCKETED, source)
        held = held_out(manifest.stats.numbers) if manifest is not None else None
        if held is not None:
            yield source, held


def long_conversations_of(corpus: Corpus) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield each source with conversations that are longer than a sequence, and their counts."""
    for source in corpus.settings.source_names():
        manifest = corpus.store.newest_or_none(BUCKETED, source)
        if manifest is not None and (counts := long_counts(manifest.stats.numbers)):
            yield source, counts


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


def show(numbers: Summary) -> None:
    """Print a summary for people."""
    console = table_console(WIDTH)
    console.print(stage_table(numbers))
    reasons = reason_table(numbers)
    if reasons.row_count:
        console.print(reasons)
    if any(numbers.phases.values()):
        console.print(mix_table(numbers))
    lines = (language_lines(numbers), held_out_lines(numbers), long_lines(numbers))
    for line in chain(numbers.unread or (), *lines):
        print_line(console, line)
    print_line(console, f"The corpus is in {numbers.store}")
    print_line(console, "See it in the web UI: make ui   (http://127.0.0.1:3000)")


def language_lines(numbers: Summary) -> Iterator[str]:
    """Yield a line for each source with documents in other languages than its own."""
    for source, counts in (numbers.other_languages or {}).items():
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        languages = ", ".join(f"{lang} {count:,}" for lang, count in ordered[:TOP_LANGUAGES])
        total = sum(counts.values())
        yield f"{source}: {total:,} documents in other languages than its `language` ({languages})"


def held_out_lines(numbers: Summary) -> Iterator[str]:
    """Yield a line for each source of which documents are held out of training."""
    for source, held in (numbers.held_out or {}).items():
        yield (
            f"{source}: {held.documents:,} documents are held out for validation "
            f"({held.tokens:,} tokens in {held.sequences:,} sequences)"
        )


def long_lines(numbers: Summary) -> Iterator[str]:
    """Yield a line for each source with conversations that are longer than a sequence."""
    for source, counts in (numbers.long_conversations or {}).items():
        yield (
            f"{source}: {sum(counts.values()):,} conversations are longer than a sequence "
            f"({counts.get(LEFT_OUT, 0):,} left out, {counts.get(CUT, 0):,} cut between turns)"
        )


def print_line(console: Console, text: str) -> None:
    """Print a line without markup or wrapping."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def stage_table(numbers: Summary) -> Table:
    """Tabulate the stages of each source below its name, then those of all sources together."""
    columns = ("rows in", "kept", "rejected", "duplicates", "quarantined", "tokens", "shards")
    table = new_table("stages", ["source and stage"], [*columns, "parts\nnew + kept"])
    narrow(table)
    for source, stages in [*numbers.sources.items(), ("all sources", numbers.global_)]:
        if stages:
            table.add_row(source, style="bold")
        for stage, of_stage in stages.items():
            table.add_row(f"  {stage}", *stage_cells(of_stage))
        table.add_section()
    return table


def narrow(table: Table) -> None:
    """Reduce the frame of a table to save columns."""
    table.box = box.SIMPLE_HEAD
    table.collapse_padding, table.pad_edge = True, False


def stage_cells(numbers: StageNumbers) -> Iterator[str]:
    """Yield the cells of one stage of one source."""
    rejected = sum(numbers.rejected.values())
    removed = (rejected, numbers.duplicates, numbers.quarantined)
    yield from (f"{rows:,}" for rows in (numbers.rows_in, numbers.rows_kept, *removed))
    yield f"{numbers.tokens:,}" if numbers.tokens else ""
    yield "" if isinstance(numbers.shards, UnsetType) else f"{numbers.shards:,}"
    yield f"{numbers.parts_computed:,} + {numbers.parts_reused:,}"


def reason_table(numbers: Summary) -> Table:
    """List the most frequent reasons for which documents of each source were rejected."""
    table = new_table("top reasons", ["source", "stage", "reason"], ["documents"])
    narrow(table)
    for source, stages in numbers.sources.items():
        for stage, of_stage in stages.items():
            ordered = sorted(of_stage.rejected.items(), key=lambda item: (-item[1], item[0]))
            for reason, count in ordered[:TOP_REASONS]:
                table.add_row(source, stage, reason, f"{count:,}")
        table.add_section()
    return table


def mix_table(numbers: Summary) -> Table:
    """Compare planned and realised tokens per source of each phase."""
    columns = ("weight", "planned tokens", "realised tokens", "realised share", "epochs")
    is_changing = any(share.weights_at for mix in numbers.phases.values() for share in mix.values())
    more = ("from start to end",) if is_changing else ()
    table = new_table("phases", ["phase", "source"], (*columns, *more))
    narrow(table)
    for phase, mix in numbers.phases.items():
        total = sum(of_source.realised_tokens for of_source in mix.values())
        for source, of_source in mix.items():
            table.add_row(
                phase,
                source,
                f"{of_source.weight:.1%}",
                f"{of_source.planned_tokens:,}",
                f"{of_source.realised_tokens:,}",
                f"{of_source.realised_tokens / max(1, total):.1%}",
                f"{of_source.epochs:.2f}",
                *([percentages(of_source.weights_at)] if is_changing else ()),
            )
        table.add_section()
    return table
