"""`corpus verify`: compare published files with their manifests; --repair rebuilds faulty parts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import msgspec
import polars as pl
from cyclopts import Parameter

from assets.sharded.shard_files import MANIFEST_NAME
from assets.sharded.shard_index_files import FolderFile
from pipeline_defs.commands.answers import answer_lines
from pipeline_defs.commands.life.faults import (
    REMOVE,
    STRAY,
    Findings,
    compare,
    files_of,
    find_faults,
)
from pipeline_defs.commands.terminal import Json, alone_on, say, warn
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.dagster_home import prepare_home
from resources.errors import UsageError
from resources.store.records import FileRecord
from resources.store.scratch import place_of

TEXTS = ("file", "what", "next_step", "stage", "partition", "part")
DIFFERING: dict[str, Any] = {**dict.fromkeys(TEXTS, pl.String), "manifest": pl.Int64}


class Folder(msgspec.Struct, frozen=True):
    """Contents of manifest.json in a format's folder."""

    files: tuple[FolderFile, ...]


def verify(
    *,
    fast: Annotated[bool, Parameter(help="Compare xxh3 instead of sha256.")] = False,
    folder: Annotated[
        Path | None,
        Parameter(help="Compare a copied shard folder with its manifest.json instead."),
    ] = None,
    repair: Annotated[bool, Parameter(help="Rebuild exactly the parts that differ.")] = False,
    json: Json = False,
) -> int:
    """Verify, and repair if asked to; return 1 if a file differs in the end."""
    if folder is not None:
        return verify_folder(folder, json=json)
    corpus = load_corpus()
    store = corpus.store
    if not list(store.partitions()):
        say(f"Nothing is built yet in {store}. Run: corpus build")
        return 1
    if repair:
        prepare_home(store.root)
    repaired, tell = list[str](), warn if json else say
    with alone_on(store.root, "corpus verify --repair") if repair else nullcontext():
        findings = find_faults(store, is_fast=fast)
        if findings.faults and repair:
            for line in findings.lines():
                tell(line)
            for line in repair_faults(corpus, findings):
                repaired.append(line)
                tell(line)
            findings = find_faults(store, is_fast=fast)
    advice = "`corpus verify --repair` rebuilds exactly the parts that differ."
    hint = [advice] if findings.faults and not repair else []
    told = {
        **{"files": findings.num_files, "bytes": findings.num_bytes, "seconds": findings.seconds},
        **{"differing": differing_files(findings), "unreadable": findings.unreadable},
        "repaired": repaired,
    }
    answer_lines([*findings.lines(), *hint], told, json=json)
    return 0 if findings.is_whole else 1


def differing_files(findings: Findings) -> pl.DataFrame:
    """Return the files that differ, and what each is of."""
    rows = [
        (
            *(place_of(each.path), each.what, each.remedy or None),
            *(each.partition.stage, each.partition.name, each.part and each.part.name),
            each.manifest,
        )
        for each in findings.faults
    ]
    return pl.DataFrame(rows, DIFFERING, orient="row")


def repair_faults(corpus: Corpus, findings: Findings) -> Iterator[str]:
    """Rebuild faulty parts; yield a line for each partition."""
    import dagster as dg  # takes 2 s, which verification alone does not need

    from pipeline_defs.commands.life.repair import repair

    with dg.DagsterInstance.get() as instance:
        yield from repair(corpus, findings.faults, instance)


def verify_folder(folder: Path, *, json: bool) -> int:
    """Compare a format's folder, copied or not, with its manifest.json; return 1 if they differ."""
    path = folder / MANIFEST_NAME
    try:
        described = msgspec.json.decode(path.read_bytes(), type=Folder).files
    except (OSError, msgspec.MsgspecError) as error:
        raise UsageError(f"{path}: not the manifest of a format's folder: {error}") from error
    files = {folder / f.name: FileRecord("", f.name, 0, f.bytes, f.sha256, "") for f in described}
    differing = compare(files)
    on_disk = {other for other in files_of(folder) if other != path}
    differing |= dict.fromkeys(on_disk - files.keys(), f"{STRAY}: {REMOVE}")
    rows = [(str(name), what) for name, what in sorted(differing.items())]
    table = pl.DataFrame(rows, {"file": pl.String, "what": pl.String}, orient="row")
    lines = [f"{file}: {what}" for file, what in table.iter_rows()]
    end = f"{len(files)} files: {len(differing) or 'none'} differ"
    answer_lines([*lines, end], {"files": len(files), "differing": table}, json=json)
    return 1 if differing else 0
