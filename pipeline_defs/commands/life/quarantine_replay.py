"""`corpus quarantine replay`: read again what could not be read, after a fix.

A fix is another option of the source in pipeline.yaml, a corrected file, or a patched record. The
first two change the fingerprint of the parts that they concern; patches are kept in the store, and
change it, too. So `raw` is run for the source, and this verb reports what came back.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import polars as pl
from cyclopts import Parameter
from rich.console import Console

from assets.raw.places.patch_files import Patch, add_patches, read_patches, shown_digest
from assets.raw.raw_records import RAW
from assets.raw.readers.input_record import position_row
from assets.raw.taken_down_files import wanted_by, without_record
from pipeline_defs.commands.life.quarantined import OnlyFile, SourceName, read_quarantine
from pipeline_defs.commands.terminal.output import ONE_LINE
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.dagster_home import prepare_home
from resources.errors import UsageError
from resources.runs.run_lock import run_lock, this_holder
from resources.takedowns import read_takedowns

NUM_NAMED = 10  # records that the report names


class PatchLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line of --patched: the record as it should be, and the one that it replaces."""

    file: str
    position: str
    record: msgspec.Raw


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
    console = Console(soft_wrap=True, highlight=False, markup=False)
    before = read_quarantine(corpus, source, file)
    with run_lock(
        corpus.store.root, this_holder("", "corpus quarantine replay"), console.print, time.sleep
    ):
        if patched is not None:
            known = read_patches(corpus, source)
            if new := read_patched(patched, before, known):
                refuse_forbidden(corpus, source, new)
                add_patches(corpus, source, new)
            console.print(f"{len(new):,} patches added, {len(known) + len(new):,} in all")
        num_documents = documents_of(corpus, source)
        error = read_again(corpus, source)
    after = read_quarantine(corpus, source)
    for line in report(before, after):
        console.print(line.translate(ONE_LINE))
    console.print(
        f"raw[{source}] has {documents_of(corpus, source):,} documents, {num_documents:,} before. "
        "`corpus build` takes them through the other stages."
    )
    if error:
        console.print(error)
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

    from pipeline_defs.commands.life.make_again import materialize
    from pipeline_defs.commands.life.rebuild_checks import NotRebuilt

    prepare_home()
    with dg.DagsterInstance.get() as instance:
        try:
            materialize(corpus, corpus.store.partition(RAW.name, source), instance)
        except NotRebuilt as error:
            return str(error)
    return ""


def documents_of(corpus: Corpus, source: str) -> int:
    """Return the number of a source's documents."""
    return corpus.store.newest(RAW, source).stats.rows_kept


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
