"""Files of a pushed revision: one of Parquet for each part, under a name that stays.

    data/web/9f...-0000-0000.parquet          documents or decisions of a part, or rows of a shard
    validation/web/g0001-shard-00007.parquet  rows of a shard that are held out

A part that did not change gives the same bytes. `origin`, a path of this machine, is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import polars as pl

from assets.deduped.document_files import kept_documents, read_kept
from assets.mixed.phase_source_files import ListedRows, bucket_of, forbidden_shards, removed_of
from assets.raw.raw_records import DOCUMENT_COLUMNS
from assets.sharded.shard_files import files_of, split_of
from corpus_loader.places.stage_names import DEDUPED, FILTERED, SHARDED
from resources.errors import UsageError
from resources.store.published import PublishedFile
from resources.store.records import Manifest, fingerprint_of
from resources.store.store import Store
from resources.takedowns import Forbidden, forbidden_in

What = Literal["documents", "decisions", "shards"]
STAGES: dict[What, str] = {"documents": DEDUPED, "decisions": FILTERED, "shards": SHARDED}
COLUMNS = [name for name in DOCUMENT_COLUMNS if name != "origin"]
LONG_TEXTS = ("text", "meta")  # of which nobody needs a minimum and maximum


@dataclass(frozen=True)
class CorpusFile:
    """File of a revision: its path, a digest of what its rows are made of, and their number."""

    path: str
    digest: str
    rows: int
    read: Callable[[], pl.DataFrame]


def corpus_files(
    store: Store, what: What, manifests: Iterable[Manifest[Any, Any]]
) -> Iterator[CorpusFile]:
    """Yield the files of sources; all of them have the same columns.

    Readers take the columns of the first file for those of all: what a rule adds to decisions of a
    source, or the loss mask of conversations, is null in the others.
    """
    manifests = list(manifests)
    schemas = [columns_of(store, what, each) for each in manifests]
    columns = {name: dtype for schema in schemas for name, dtype in schema.items()}
    for manifest, own in zip(manifests, schemas, strict=True):
        added = {name: dtype for name, dtype in columns.items() if [*own] != [*columns]}
        yield from files_of_source(store, what, manifest, added)


def columns_of(store: Store, what: What, manifest: Manifest[Any, Any]) -> dict[str, pl.DataType]:
    """Return the columns of the files of a source, by the first; none of documents: all alike."""
    kind = {"documents": "", "decisions": "decisions", "shards": "parquet"}[what]
    files = (file for part in manifest.parts for file in files_of(part, kind))
    first = next(files, None)
    return dict(pl.read_parquet_schema(store.file_of(manifest, first).checked())) if first else {}


def files_of_source(
    store: Store, what: What, manifest: Manifest[Any, Any], columns: Mapping[str, pl.DataType]
) -> Iterator[CorpusFile]:
    """Yield the files of a source; `columns` are those of all sources, if it has not the same."""
    removed = removed_of(manifest) if what == "shards" else {}
    for part in manifest.parts:
        folder, digest, rows = "data", part.fingerprint, part.stats.rows_kept
        if what == "documents":
            read = partial(read_kept, kept_documents(store, manifest, part), COLUMNS)
        elif what == "decisions":
            rows = part.stats.rows_in
            read = partial(read_rows, store.part_file(manifest, part, "decisions"))
        elif (bucket := bucket_of(part)) is None:
            continue
        elif not (files := files_of(part, "parquet")):
            raise UsageError(
                f"sharded[{manifest.partition}] has no Parquet files. Add 'parquet' to "
                "`shards.formats` and run `corpus build`."
            )
        else:
            folder = split_of(bucket) or folder
            read = partial(read_rows, store.file_of(manifest, files[0]))
            if gone := removed.get(part.name):
                rows -= gone.rows
                read = partial(read, gone, store)
                digest = fingerprint_of(digest, gone.file.sha256, gone.first, gone.rows)
        if columns:
            read, digest = partial(with_columns, read, columns), fingerprint_of(digest, [*columns])
        if rows:
            path = f"{folder}/{manifest.partition}/{part.name}.parquet"
            yield CorpusFile(path, digest, rows, read)


def forbidden_state(store: Store, manifest: Manifest[Any, Any]) -> Forbidden | None:
    """Return the takedowns that mean a document in a state, None if none does."""
    if manifest.stage == STAGES["shards"]:
        return forbidden_shards(store, manifest)
    return forbidden_in(store, manifest.stage, manifest)


def read_rows(
    file: PublishedFile, gone: ListedRows | None = None, store: Store | None = None
) -> pl.DataFrame:
    """Read a table, without the rows of a shard that are no sequences of its source any more."""
    frame = pl.read_parquet(file.checked())
    if gone is None or store is None:
        return frame
    is_kept = np.ones(frame.height, np.bool_)
    is_kept[gone.read(store.root)] = False
    return frame.filter(is_kept)


def with_columns(
    read: Callable[[], pl.DataFrame], columns: Mapping[str, pl.DataType]
) -> pl.DataFrame:
    """Read a table with these columns: null where it has none."""
    frame = read()
    return frame.select(
        pl.col(name) if name in frame.columns else pl.lit(None, dtype).alias(name)
        for name, dtype in columns.items()
    )


def as_parquet(frame: pl.DataFrame) -> bytes:
    """Return a table as Parquet with a page index, its pages cut by content.

    The same rows give the same bytes, and rows that come in between change the pages near them.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink, schema = pa.BufferOutputStream(), frame.schema
    pq.write_table(
        frame.to_arrow(compat_level=pl.CompatLevel.oldest()),
        sink,
        compression="zstd",
        write_statistics=[n for n in schema if n not in LONG_TEXTS and not schema[n].is_nested()],
        write_page_index=True,
        use_content_defined_chunking=True,
        store_schema=False,  # plain strings and lists for every reader
    )
    return bytes(sink.getvalue())
