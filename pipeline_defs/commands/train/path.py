"""`corpus shards path`: print the newest folder of a format, for a training config.

corpus shards path --source web --format mds             the folder of one format
corpus shards path --phase general --format megatron     the same, of a phase with shards of its own
corpus shards path --source web                          a line for each format and its folder
corpus shards path --source web --split validation       the same, of what is held out of training

A folder's name changes with its rows, so that a job never reads a mixture of two states: ask again
after a build, not before every step. docs/formats.md names the readers of each format.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Group, Parameter

from assets.sharded.shard_files import kind_of
from corpus_loader.places.stage_names import MIXED, SHARDED
from pipeline_defs.commands.terminal import check_one_given, say
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import check_name
from resources.settings.plug_ins import plug_ins
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
    split: Annotated[
        Literal["train", "validation"], Parameter(help="Of a source: which of its rows.")
    ] = "train",
) -> int:
    """Print one folder, or a line for each."""
    corpus = load_corpus()
    if format_ is not None:
        check_name("format", format_, [*FORMAT_NAMES, *plug_ins("formats")])
    if source is not None:
        check_name("source", source, corpus.settings.source_names())
        manifest = corpus.store.newest(SHARDED, source)
    else:
        check_name("phase", phase or "", corpus.settings.phase_names())
        manifest = corpus.store.newest(MIXED, phase or "")
    folders = format_folders(corpus, manifest, split)
    if format_ in folders:
        say(str(folders[format_]))
    elif format_ is None and folders:
        sys.stdout.writelines(f"{name}\t{folder}\n" for name, folder in folders.items())
    else:
        raise StoreError(missing(manifest, format_, folders, split))
    return 0


def format_folders(corpus: Corpus, manifest: Manifest, split: str) -> dict[str, Path]:
    """Return the folder of each format of a split that a manifest names, by format."""
    files = [file for part in manifest.parts for file in part.files if "/" in file.path]
    paths = {  # by the name of its folder, without the digits of its state
        file.path.partition("/")[0].rpartition("-")[0]: corpus.store.path_of(manifest, file)
        for file in files
    }
    names = [*FORMAT_NAMES, *plug_ins("formats")]
    kinds = {name: kind_of(name, "" if split == "train" else split) for name in names}
    found = {name: paths[kind] for name, kind in kinds.items() if kind in paths}
    return {name: path.parent.resolve() for name, path in sorted(found.items())}


def missing(manifest: Manifest, wanted: str | None, folders: dict[str, Path], split: str) -> str:
    """Explain which formats exist, and how to get the requested one."""
    where = f"{manifest.stage}[{manifest.partition}]"
    if split != "train" and not folders:
        return (
            f"{where} has no shards of documents that are held out for {split}. Set `holdout` in "
            f"pipeline.yaml and materialize `bucketed` and `sharded` for {manifest.partition!r}; "
            f"of a phase's own shards, name the phase {split!r}."
        )
    there_is = ", ".join(folders) or "none"
    key = "shards.formats"
    other = ""
    if manifest.stage == MIXED:
        key = "the phase's formats"
        other = " CorpusLoader reads the phase without: give it the store's folder."
    return (
        f"{where} has no files of {wanted or 'any format'}; formats there: {there_is}. "
        f"Add {wanted or 'one'} to {key} in pipeline.yaml and materialize `{manifest.stage}` "
        f"for {manifest.partition!r}.{other}"
    )
