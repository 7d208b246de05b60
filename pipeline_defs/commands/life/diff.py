"""`corpus diff A B`: two states of a source, or of all sources, side by side."""

from __future__ import annotations

import json as json_text
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter
from rich.console import Console
from rich.markup import escape

from pipeline_defs.commands.life.document_changes import DocumentChanges, document_changes
from pipeline_defs.commands.life.state_chain import (
    NEWEST,
    SOURCE_STAGES,
    SourceState,
    code_changes,
    config_changes,
    state_of,
)
from pipeline_defs.commands.terminal.options import Json, Natural
from pipeline_defs.commands.terminal.output import (
    ONE_LINE,
    new_table,
    print_json,
    table_console,
)
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError
from resources.store.kept_manifests import KeptManifests
from resources.store.named_states import read_tags
from resources.store.records import Stats

COUNTS = ("rows_in", "rows_kept", "duplicates", "quarantined", "tokens", "bytes")
SIGNS = {"in": "+", "out": "-", "text": "~"}


class StageDifference(msgspec.Struct, frozen=True):
    """Numbers of a stage that differ, as (before, after)."""

    stage: str
    numbers: dict[str, tuple[int, int]]


class Difference(msgspec.Struct, frozen=True):
    """Two states of a source: their documents, numbers, config keys and code versions.

    `documents` is unset if one of the states no longer has the stages that tell their fates.
    """

    source: str
    before: str
    after: str
    documents: DocumentChanges | None
    stages: list[StageDifference]
    config: dict[str, tuple[Any, Any]]
    code: dict[str, tuple[str, str]]


def diff(
    before: Annotated[str, Parameter(help="State: a number of `corpus history`, or a tag.")],
    after: Annotated[str, Parameter(help="Other state; the newest without.")] = NEWEST,
    /,
    *,
    source: Annotated[
        str | None, Parameter(help="Source; without, all that two tags have.")
    ] = None,
    stage: Annotated[
        str | None, Parameter(help="Stage whose numbers are meant; the last one without.")
    ] = None,
    samples: Annotated[Natural, Parameter(help="Documents to show of each change.")] = 3,
    json: Json = False,
) -> int:
    """Print what differs between two states."""
    if stage is not None and stage not in SOURCE_STAGES:
        raise UsageError(f"No stage {stage!r} by source; there are: {', '.join(SOURCE_STAGES)}.")
    corpus = load_corpus()
    names = [source] if source is not None else sources_of(corpus, before, after)
    found = [difference(corpus, name, (before, after), stage, samples) for name in names]
    if json:
        print_json(found)
    else:
        for each in found:
            show(each)
    return 0


def sources_of(corpus: Corpus, before: str, after: str) -> list[str]:
    """Return the sources that both tags have; UsageError for a state that needs a source."""
    tags = read_tags(corpus.store.root)
    wanted = [tags[name] for name in (before, after) if name in tags]
    if len(wanted) < 2 - (after == NEWEST):
        raise UsageError(
            f"Without --source both states are tags; there are: {', '.join(tags) or 'none'}. "
            "For numbers name the source: corpus diff 3 5 --source web"
        )
    in_tags = [{each.partition for each in tag.manifests if each.stage == "raw"} for tag in wanted]
    return [name for name in corpus.settings.source_names() if all(name in of for of in in_tags)]


def difference(
    corpus: Corpus, source: str, names: tuple[str, str], stage: str | None, samples: int
) -> Difference:
    """Compare two states of a source."""
    kept = KeptManifests(corpus.store, source)
    before, after = (state_of(kept, name, stage) for name in names)
    is_told = all(state.manifest("filtered") for state in (before, after))
    return Difference(
        source=source,
        before=before.name,
        after=after.name,
        documents=document_changes(corpus.store, before, after, samples) if is_told else None,
        stages=list(stage_differences(before, after)),
        config=config_changes(before, after),
        code=code_changes(before, after),
    )


def stage_differences(before: SourceState, after: SourceState) -> Iterator[StageDifference]:
    """Yield the stages of which a number differs."""
    for stage in SOURCE_STAGES:
        then, now = before.manifest(stage), after.manifest(stage)
        if then is None or now is None:
            continue
        old, new = counts_of(then.stats), counts_of(now.stats)
        names = [*old, *(name for name in new if name not in old)]
        pairs = {name: (old.get(name, 0), new.get(name, 0)) for name in names}
        if differing := {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}:
            yield StageDifference(stage, differing)


def counts_of(stats: Stats[Any]) -> dict[str, int]:
    """Return the counts of a manifest, and the rejected rows by reason."""
    rejected = {f"rejected: {reason}": count for reason, count in stats.rejected.items()}
    return {name: getattr(stats, name) for name in COUNTS} | rejected


def show(found: Difference) -> None:
    """Print a difference for people."""
    console = table_console()
    print_line(console, f"{found.source}: from {found.before} to {found.after}")
    show_documents(console, found.documents)
    names = (found.before, found.after)
    numbers = new_table("numbers", ["stage", "number"], [*map(escape, names), "change"])
    for each in found.stages:
        for name, (then, now) in each.numbers.items():
            cells = (f"{then:,}", f"{now:,}", f"{now - then:+,}")
            numbers.add_row(each.stage, safe(name), *cells)
    settings = new_table("config and code", ["key", *map(escape, names)], [])
    for key, pair in found.config.items():
        settings.add_row(safe(key), *(safe(value(each)) for each in pair))
    for stage, versions in found.code.items():
        settings.add_row(f"{stage}: code version", *versions)
    for table in (numbers, settings):
        if table.row_count:
            console.print(table)
    if not (numbers.row_count or settings.row_count):
        print_line(console, "Numbers, config and code are the same.")


def show_documents(console: Console, documents: DocumentChanges | None) -> None:
    """Print the documents that came, went or changed."""
    if documents is None:
        print_line(console, "Documents are not compared: `filtered` of a state is no longer kept.")
        return
    for each in documents.changes:
        what = f"{each.before} -> {each.after}" if each.kind != "text" else "another text"
        print_line(console, f"{SIGNS[each.kind]} {each.documents:,} documents: {what}")
        for sample in each.samples:
            print_line(console, f"    {sample.doc_id} {sample.text}")
    if not documents.changes:
        print_line(console, "The same documents are kept.")
    alike, read = documents.parts_alike, documents.parts_read
    print_line(console, f"{read:,} parts were read; {alike:,} are the same in both.")


def print_line(console: Console, text: str) -> None:
    """Print a line that is safe on a terminal."""
    line = text.translate(ONE_LINE)
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def safe(text: str) -> str:
    """Return a text for a cell: safe for a terminal and for markup."""
    return escape(text.translate(ONE_LINE))


def value(setting: Any) -> str:
    """Write the value of a key; "not set" without one."""
    return "not set" if setting is None else json_text.dumps(setting, ensure_ascii=False)
