"""`corpus verify`: compare published files with their manifests; --repair rebuilds faulty parts."""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter
from rich.console import Console

from assets.sharded.shard_files import MANIFEST_NAME
from pipeline_defs.commands.life.faults import (
    REMOVE,
    STRAY,
    Findings,
    compare,
    files_of,
    find_faults,
)
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.dagster_home import prepare_home
from resources.errors import UsageError
from resources.runs.run_lock import run_lock, this_holder
from resources.store.records import FileRecord


class FolderFile(msgspec.Struct, frozen=True):
    """Name, size and sha256 of a file in manifest.json of a format's folder."""

    name: str
    bytes: int
    sha256: str


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
) -> int:
    """Verify, and repair if asked to; return 1 if a file differs in the end."""
    if folder is not None:
        return verify_folder(folder)
    corpus = load_corpus()
    console = Console(soft_wrap=True, highlight=False, markup=False)
    if not list(corpus.store.partitions()):
        console.print(f"Nothing is built yet in {corpus.store}. Run: corpus build")
        return 1
    with alone(corpus, console) if repair else nullcontext():
        findings = find_faults(corpus.store, is_fast=fast)
        show(console, findings)
        if findings.faults and repair:
            repair_faults(corpus, console, findings)
            findings = find_faults(corpus.store, is_fast=fast)
            show(console, findings)
        elif findings.faults:
            console.print("`corpus verify --repair` rebuilds exactly the parts that differ.")
    return 0 if findings.is_whole else 1


def alone(corpus: Corpus, console: Console) -> AbstractContextManager[None]:
    """Hold the store's lock, after the end of a run that works on it."""
    holder = this_holder("", "corpus verify --repair")
    return run_lock(corpus.store.root, holder, console.print, time.sleep)


def repair_faults(corpus: Corpus, console: Console, findings: Findings) -> None:
    """Rebuild faulty parts, and print a line for each partition."""
    # Importing Dagster takes 2 s, which verification alone does not need.
    import dagster as dg

    from pipeline_defs.commands.life.repair import repair

    prepare_home()
    with dg.DagsterInstance.get() as instance:
        for line in repair(corpus, findings.faults, instance):
            console.print(line)


def show(console: Console, findings: Findings) -> None:
    """Print the files that differ, then the sums."""
    for fault in findings.faults:
        console.print(str(fault))
    for line in findings.unreadable:
        console.print(line)
    console.print(str(findings))


def verify_folder(folder: Path) -> int:
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
    for name, what in sorted(differing.items()):
        sys.stdout.write(f"{name}: {what}\n")
    sys.stdout.write(f"{len(files)} files: {len(differing) or 'none'} differ\n")
    return 1 if differing else 0
