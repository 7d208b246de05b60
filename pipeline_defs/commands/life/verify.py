"""`corpus verify`: compare published files with their manifests; --repair rebuilds faulty parts."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from assets.sharded.shard_files import MANIFEST_NAME
from pipeline_defs.commands.life.faults import (
    REMOVE,
    STRAY,
    Findings,
    compare,
    files_of,
    find_faults,
)
from pipeline_defs.commands.terminal import alone_on, say
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.dagster_home import prepare_home
from resources.errors import UsageError
from resources.store.records import FileRecord
from resources.store.store import Store


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
    store = corpus.store
    if not list(store.partitions()):
        say(f"Nothing is built yet in {store}. Run: corpus build")
        return 1
    if repair:
        prepare_home(store.root)
    with alone_on(store.root, "corpus verify --repair") if repair else nullcontext():
        findings = found_and_shown(store, is_fast=fast)
        if findings.faults and repair:
            repair_faults(corpus, findings)
            findings = found_and_shown(store, is_fast=fast)
        elif findings.faults:
            say("`corpus verify --repair` rebuilds exactly the parts that differ.")
    return 0 if findings.is_whole else 1


def found_and_shown(store: Store, *, is_fast: bool) -> Findings:
    """Find the faults of a store; print the files that differ, then the sums."""
    findings = find_faults(store, is_fast=is_fast)
    say(*map(str, findings.faults), *findings.unreadable, str(findings))
    return findings


def repair_faults(corpus: Corpus, findings: Findings) -> None:
    """Rebuild faulty parts, and print a line for each partition."""
    import dagster as dg  # takes 2 s, which verification alone does not need

    from pipeline_defs.commands.life.repair import repair

    with dg.DagsterInstance.get() as instance:
        for line in repair(corpus, findings.faults, instance):
            say(line)


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
    say(*(f"{name}: {what}" for name, what in sorted(differing.items())))
    say(f"{len(files)} files: {len(differing) or 'none'} differ")
    return 1 if differing else 0
