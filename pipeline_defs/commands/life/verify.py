"""`corpus verify`: every published file against its manifest; --repair rebuilds what differs."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

import msgspec
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
from resources.errors import UsageError
from resources.store.records import FileRecord


class FolderFile(msgspec.Struct, frozen=True):
    """What manifest.json of a format's folder says of a file, as far as it is compared."""

    name: str
    bytes: int
    sha256: str


class Folder(msgspec.Struct, frozen=True):
    """manifest.json of a format's folder."""

    files: tuple[FolderFile, ...]


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `corpus verify`."""
    parser.add_argument("--fast", action="store_true", help="compare xxh3 instead of sha256")
    parser.add_argument(
        "--folder", type=Path, help="compare a copied shard folder with its manifest.json instead"
    )
    parser.add_argument(
        "--repair", action="store_true", help="rebuild exactly the parts that differ"
    )


def run(options: Namespace) -> int:
    """Verify, and repair if asked to; the exit code is 1 if anything differs in the end."""
    if options.folder is not None:
        return run_folder(options.folder)
    corpus = load_corpus()
    console = Console(soft_wrap=True, highlight=False, markup=False)
    if not list(corpus.store.partitions()):
        console.print(
            f"{corpus.store.root}: nothing is materialized here. Run `make corpus` first."
        )
        return 1
    findings = find_faults(corpus.store, is_fast=options.fast)
    show(console, findings)
    if findings.faults and options.repair:
        # Dagster: 2 s that a verification need not pay.
        from pipeline_defs.commands.life.repair import records_of_runs, repair

        with records_of_runs() as instance:
            for line in repair(corpus, findings.faults, instance):
                console.print(line)
        findings = find_faults(corpus.store, is_fast=options.fast)
        show(console, findings)
    elif findings.faults:
        console.print("`corpus verify --repair` rebuilds exactly the parts that differ.")
    return 1 if findings.faults else 0


def show(console: Console, findings: Findings) -> None:
    """Name what differs, then the sums."""
    for fault in findings.faults:
        console.print(str(fault))
    console.print(str(findings))


def run_folder(folder: Path) -> int:
    """Compare a format's folder, wherever it was copied to, with its own manifest.json."""
    path = folder / MANIFEST_NAME
    try:
        described = msgspec.json.decode(path.read_bytes(), type=Folder).files
    except (OSError, msgspec.MsgspecError) as error:
        raise UsageError(f"{path}: not the manifest of a format's folder: {error}") from error
    files = {folder / f.name: FileRecord("", f.name, 0, f.bytes, f.sha256, "") for f in described}
    differing = compare(files)
    there = {other for other in files_of(folder) if other != path}
    differing |= dict.fromkeys(there - files.keys(), f"{STRAY}: {REMOVE}")
    for name, what in sorted(differing.items()):
        sys.stdout.write(f"{name}: {what}\n")
    sys.stdout.write(f"{len(files)} files: {len(differing) or 'none'} differ\n")
    return 1 if differing else 0
