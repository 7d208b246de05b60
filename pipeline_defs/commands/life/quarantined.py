"""Records in quarantine, from the newest manifests of `raw`."""

from __future__ import annotations

from typing import Annotated

import polars as pl
from cyclopts import Parameter

from assets.raw.raw_records import RAW
from assets.raw.readers.documents import no_quarantine
from resources.corpus import Corpus
from resources.errors import UsageError, unknown_name

OnlyFile = Annotated[
    str | None, Parameter(name="--file", help="Only records of this file, as `list` names it.")
]
SourceName = Annotated[str, Parameter(help="A source.")]


def read_quarantine(corpus: Corpus, source: str, file: str | None = None) -> pl.DataFrame:
    """Return the records of a source that are in quarantine, in the order of its parts.

    Raises UsageError for a source that is none, and for a file without such records.
    """
    names = corpus.settings.source_names()
    if source not in names:
        raise UsageError(unknown_name("source", source, names))
    manifest = corpus.store.newest(RAW, source)
    tables = [
        pl.read_parquet(corpus.store.file_of(manifest, found).checked())
        for part in manifest.parts
        if (found := part.file("quarantine"))
    ]
    every = pl.concat([no_quarantine(), *tables])
    of_file = every if file is None else every.filter(pl.col("file") == file)
    if file is not None and of_file.is_empty() and not every.is_empty():
        raise UsageError(unknown_name("file", file, every["file"].unique().to_list()))
    return of_file
