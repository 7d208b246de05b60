"""`corpus path`: print the newest folder of a format, for a training config.

corpus path --source web --format mds             the folder of one format
corpus path --phase general --format megatron     the same, of a phase with shards of its own
corpus path --source web                          a line for each format and its folder

A folder's name changes with its rows, so that a job never reads a mixture of two states: ask again
after a build, not before every step. docs/formats.md names the readers of each format.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Group, Parameter

from pipeline_defs.commands.terminal.options import check_one_given
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError, unknown_name
from resources.settings.shards import FORMAT_NAMES
from resources.store.records import Manifest
from resources.store.store import StoreError

WHICH = Group("Shards", validator=check_one_given)


def path(
    *,
    source: Annotated[str | None, Parameter(group=WHICH, help="Print those of a source.")] = None,
    phase: Annotated[str | None, Parameter(group=WHICH, help="Print those of a phase.")] = None,
    format_: Annotated[
        str | None, Parameter(name="--format", help=f"One of {', '.join(FORMAT_NAMES)}.")
    ] = None,
) -> int:
    """Print one folder, or a line for each."""
    corpus = load_corpus()
    if format_ is not None and format_ not in FORMAT_NAMES:
        raise UsageError(unknown_name("format", format_, FORMAT_NAMES))
    manifest = newest(corpus, source, phase)
    folders = format_folders(corpus, manifest)
    if format_ in folders:
        sys.stdout.write(f"{folders[format_]}\n")
    elif format_ is None and folders:
        sys.stdout.writelines(f"{name}\t{folder}\n" for name, folder in folders.items())
    else:
        raise StoreError(missing(manifest, format_, folders))
    return 0


def newest(corpus: Corpus, source: str | None, phase: str | None) -> Manifest:
    """Return the manifest of a source's or of a phase's shards."""
    settings = corpus.settings
    what, name, known = (
        ("source", source, settings.source_names())
        if source is not None
        else ("phase", phase or "", settings.phase_names())
    )
    if name not in known:
        raise UsageError(unknown_name(what, name, known))
    return corpus.store.newest("sharded" if what == "source" else "mixed", name)


def format_folders(corpus: Corpus, manifest: Manifest) -> dict[str, Path]:
    """Return the folder of each format that a manifest names."""
    files = [file for part in manifest.parts for file in part.files if "/" in file.path]
    folders = {file.kind.partition(".")[0]: corpus.store.path_of(manifest, file) for file in files}
    return {name: path.parent.resolve() for name, path in sorted(folders.items())}


def missing(manifest: Manifest, wanted: str | None, folders: dict[str, Path]) -> str:
    """Explain which formats exist, and how to get the requested one."""
    where = f"{manifest.stage}[{manifest.partition}]"
    there_is = ", ".join(folders) or "none"
    key = "shards.formats"
    other = ""
    if manifest.stage == "mixed":
        key = "the phase's formats"
        other = " CorpusLoader reads the phase without: give it the store's folder."
    return (
        f"{where} has no files of {wanted or 'any format'}; formats there: {there_is}. "
        f"Add {wanted or 'one'} to {key} in pipeline.yaml and materialize `{manifest.stage}` "
        f"for {manifest.partition!r}.{other}"
    )
