"""`corpus quarantine`: records that could not be read: count them, see them, read them again.

A fix is another option of the source in pipeline.yaml, a corrected file, or a patched record. The
first two change the fingerprint of the parts that they concern; patches are kept in the store, and
change it, too. So `replay` runs `raw` for the source, and reports what came back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import polars as pl
from cyclopts import Parameter
from rich.console import Console

from assets.raw.places.patch_files import add_patches, read_patches
from assets.raw.raw_records import RAW
from assets.raw.readers.documents import NO_QUARANTINE
from assets.raw.readers.input_record import Patch, position_row, shown_digest
from assets.raw.taken_down_files import without_record
from assets.text.takedown_files import wanted_by
from pipeline_defs.commands.answers import answer
from pipeline_defs.commands.terminal import (
    Json,
    Positive,
    alone_on,
    one_line,
    print_json,
    print_named,
    say,
)
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.dagster_home import prepare_home
from resources.errors import UsageError, check_name
from resources.takedowns import read_takedowns

DIGITS = re.compile(r"[0-9][0-9,.]*")  # places and sizes, which differ from record to record
SHOWN_CHARS = 200  # of an error, which may quote a record
SHOWN_BYTES = 2000  # of a record
NUM_NAMED = 10  # records that the report names
NOTHING = "No record is in quarantine."
OnlyFile = Annotated[
    str | None, Parameter(name="--file", help="Only records of this file, as `list` names it.")
]
SourceName = Annotated[str, Parameter(help="A source.")]


class PatchLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line of --patched: the record as it should be, and the one that it replaces."""

    file: str
    position: str
    record: msgspec.Raw


def read_quarantine(corpus: Corpus, source: str, file: str | None = None) -> pl.DataFrame:
    """Return the records of a source that are in quarantine, in the order of its parts.

    Raises UsageError for a source that is none, and for a file without such records.
    """
    check_name("source", source, corpus.settings.source_names())
    manifest = corpus.store.newest(RAW, source)
    tables = [
        pl.read_parquet(corpus.store.file_of(manifest, found).checked())
        for part in manifest.parts
        if (found := part.file("quarantine"))
    ]
    every = pl.concat([NO_QUARANTINE, *tables])
    if file is None or every.is_empty():
        return every
    check_name("file", file, every["file"].unique().to_list())
    return every.filter(pl.col("file") == file)


def list_quarantine(
    *,
    source: Annotated[str | None, Parameter(help="Only this source.")] = None,
    file: OnlyFile = None,
    json: Json = False,
) -> int:
    """Print the counts, the first error of each kind, and what to do about it."""
    corpus = load_corpus()
    names = corpus.settings.source_names()
    built = [name for name in names if corpus.store.newest_or_none(RAW, name) is not None]
    names = [source] if source else built
    found = [NO_QUARANTINE, *(read_quarantine(corpus, name, file) for name in names)]
    counts = count_kinds(pl.concat(found))
    title = f"{counts['records'].sum():,} records in quarantine, with the first error of each kind"
    shown = counts if json else counts.with_columns(pl.col("error").str.head(SHOWN_CHARS))
    answer(title, shown, NOTHING, json=json)
    if not (json or counts.is_empty()):
        say("See them: corpus quarantine show SOURCE")
    return 0


def count_kinds(records: pl.DataFrame) -> pl.DataFrame:
    """Count records by file and kind of error: errors that differ in numbers alone are one kind."""
    kinds = pl.Series("kind", [DIGITS.sub("#", error) for error in records["error"]], pl.String())
    return (
        records.with_columns(kinds)
        .group_by("source", "file", "kind", "next_step", maintain_order=True)
        .agg(pl.len().alias("records"), pl.col("error").first())
        .select("source", "file", "records", "error", "next_step")
    )


def show_records(
    source: SourceName, /, *, file: OnlyFile = None, limit: Positive = 10, json: Json = False
) -> int:
    """Print the first records; the bytes are escaped as Python writes them."""
    records = read_quarantine(load_corpus(), source, file)
    rows = [
        {
            "file": row["file"],
            "position": row["position"],
            **({"line": str(row["line"])} if row["line"] else {}),
            "why": row["error"],
            "next_step": row["next_step"],
            "raw": escaped(row["raw"]),
        }
        for row in records.head(limit).iter_rows(named=True)
    ]
    if json:
        print_json(rows)
        return 0
    console = Console(soft_wrap=True, highlight=False, markup=False)
    for row in rows:
        print_named(console, {name: one_line(value) for name, value in row.items()})
        console.rule()
    say(f"{len(rows):,} of {records.height:,} records in quarantine" if rows else NOTHING)
    return 0


def escaped(raw: bytes) -> str:
    """Return the first bytes of a record in ASCII, and how many follow."""
    more = len(raw) - SHOWN_BYTES
    return f"{raw[:SHOWN_BYTES]!r}{f' and {more:,} bytes more' if more > 0 else ''}"


def replay(
    source: SourceName,
    /,
    *,
    file: OnlyFile = None,
    patched: Annotated[
        Path | None,
        Parameter(
            help='JSON lines {"file": ..., "position": ..., "record": {...}}: records in place of '
            "those that `show` names so."
        ),
    ] = None,
) -> int:
    """Read the source again and report what came back; 1 if the run fails."""
    corpus = load_corpus()
    before = read_quarantine(corpus, source, file)
    prepare_home(corpus.store.root)
    with alone_on(corpus.store.root, "corpus quarantine replay"):
        if patched is not None:
            known = read_patches(corpus, source)
            if new := read_patched(patched, before, known):
                refuse_forbidden(corpus, source, new)
                add_patches(corpus, source, new)
            say(f"{len(new):,} patches added, {len(known) + len(new):,} in all")
        num_documents = corpus.store.newest(RAW, source).stats.rows_kept
        error = read_again(corpus, source)
    say(*report(before, read_quarantine(corpus, source)))
    say(
        f"raw[{source}] has {corpus.store.newest(RAW, source).stats.rows_kept:,} documents, "
        f"{num_documents:,} before. `corpus build` takes them through the other stages."
    )
    if error:
        say(*error.splitlines())
    return 1 if error else 0


def read_patched(path: Path, before: pl.DataFrame, known: list[Patch]) -> list[Patch]:
    """Return the patches of a file that are new; UsageError for one that replaces nothing."""
    digests = {
        (row["file"], row["position"]): shown_digest(row["raw"])
        for row in before.iter_rows(named=True)
    }
    last = {(patch.file, patch.row): patch.record for patch in known}
    patches: dict[tuple[str, int], Patch] = {}
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    for number, line in enumerate(lines, 1):
        try:
            given = msgspec.json.decode(line, type=PatchLine)
            record = bytes(given.record).decode()
            row = position_row(given.position)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise UsageError(
                f"{path}, line {number}: {error}. A line is a JSON object with file, position and "
                "record."
            ) from error
        replaced = digests.get((given.file, given.position))
        if row is not None and last.get((given.file, row)) == record:
            continue
        if row is None or replaced is None or replaced == shown_digest(record.encode()):
            raise UsageError(
                f"{path}, line {number}: {given.file!r} has no other record in quarantine at "
                f"{given.position!r}. Take file and position as `corpus quarantine show` has them."
            )
        patches[given.file, row] = Patch(given.file, row, replaced, record)
    return [*patches.values()]


def refuse_forbidden(corpus: Corpus, source: str, patches: Sequence[Patch]) -> None:
    """Raise UsageError for a patch whose record was taken down: its text is not to be stored."""
    if takedowns := read_takedowns(corpus.store.root):
        wanted = wanted_by(takedowns)
        for patch in patches:
            if without_record(patch, source, wanted) != patch:
                raise UsageError(
                    f"{patch.file}, row {patch.row}: a takedown means this record, so that it "
                    "stays out. No patch was added: leave it out of the file."
                )


def read_again(corpus: Corpus, source: str) -> str:
    """Run `raw` for a source; return why it failed, or ""."""
    # Importing Dagster takes 2 s, which wrong use does not need.
    import dagster as dg

    from pipeline_defs.commands.life.repair import NotRebuilt, materialize

    with dg.DagsterInstance.get() as instance:
        try:
            materialize(corpus, corpus.store.partition(RAW.name, source), instance)
        except NotRebuilt as error:
            return str(error)
    return ""


def report(before: pl.DataFrame, after: pl.DataFrame) -> list[str]:
    """Say how many records came back, and why others did not."""
    is_still = pl.any_horizontal(
        pl.struct(same).is_in(before.select(pl.struct(same)).to_series().implode())
        for same in (["file", "position"], ["file", "raw"])  # a patch, or what moved in its file
    )
    still, new = after.filter(is_still), after.filter(~is_still)
    lines = [
        f"{before.height - still.height:,} of {before.height:,} records are no more in quarantine"
    ]
    for records, what in ((still, "still there"), (new, "new there")):
        lines += [
            f"{what}: {row['file']}, {row['position']}: {row['error']} {row['next_step']}"
            for row in records.head(NUM_NAMED).iter_rows(named=True)
        ]
        if records.height > NUM_NAMED:
            lines.append(f"{what}: {records.height - NUM_NAMED:,} more")
    return lines
