"""Documents of `raw` that a takedown means: in every part that the store has, of any manifest."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import polars as pl

from assets.raw.raw_records import RAW
from assets.raw.taken_down_files import (
    Wanted,
    is_copy,
    is_itself_wanted,
    is_record_wanted,
    is_text_wanted,
)
from assets.text.marks import find_passages
from resources.corpus import Corpus
from resources.store.published import PublishedFile
from resources.store.store import part_stem, published_file
from resources.takedowns import task_name
from resources.tasks import GLOBAL

COLUMNS = ("doc_id", "url", "text", "origin")
NO_TEXT = pl.lit("").alias("text")
Result = TypeVar("Result")


@dataclass(frozen=True)
class RawPart:
    """A published part of `raw`: the task that made it, the stem of its files, its tables."""

    source: str
    task: str
    stem: str
    documents: PublishedFile
    quarantine: PublishedFile | None


class Hits(NamedTuple):
    """What a part has of a takedown.

    documents  those that are meant themselves: doc_id, url, text and origin
    records    those in quarantine that are meant
    within     other documents with passages of these: doc_id, url, origin, digests of passages
    """

    part: RawPart
    documents: pl.DataFrame
    records: pl.DataFrame
    within: pl.DataFrame


def raw_parts(corpus: Corpus) -> list[RawPart]:
    """Return every published part of `raw`, whether a manifest names it or not."""
    return [
        part
        for folder in corpus.store.partitions()
        if folder.stage == RAW.name
        for name in folder.medium.names(folder.records)
        for record in [folder.read_record(name)]
        if record is not None and folder.find_part(record.name, record.fingerprint)
        for files in [{f.kind: published_file(folder.folder / f.path, f) for f in record.files}]
        for part in [
            RawPart(
                folder.name,
                task_name(record.name),
                part_stem(record.name, record.fingerprint),
                files["documents"],
                files.get("quarantine"),
            )
        ]
    ]


def on_all_cores(work: Callable[[RawPart], Result], parts: Sequence[RawPart]) -> Iterator[Result]:
    """Map a function over parts, on all cores: Polars and the kernels release the lock."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(work, parts)


def named_documents(part: RawPart, wanted: Wanted) -> pl.DataFrame:
    """Return the documents of a part that are meant by id or URL; texts are read of these alone."""
    path = part.documents.checked()
    table = pl.read_parquet(path, columns=["doc_id", "url"])
    rows = is_itself_wanted(table.with_columns(NO_TEXT), wanted).arg_true()
    return read_rows(part, rows)


def matching_documents(part: RawPart, wanted: Wanted) -> pl.DataFrame:
    """Return the documents of a part that have a text of `wanted`, alone or within more."""
    texts = pl.read_parquet(part.documents.checked(), columns=["text"])["text"]
    return read_rows(part, (is_text_wanted(texts, wanted) | is_copy(texts, wanted)).arg_true())


def passages_by_row(texts: pl.Series, wanted: Wanted) -> dict[int, set[bytes]]:
    """Return the digests of the passages in each of some texts, of those that have any."""
    passages: dict[int, set[bytes]] = {}
    for found in find_passages(texts, wanted.passages):
        passages.setdefault(found.row, set()).add(found.digest)
    return passages


def read_rows(part: RawPart, rows: pl.Series) -> pl.DataFrame:
    """Read some documents of a part; nothing is read for no rows."""
    table = pl.scan_parquet(part.documents.checked()).select(COLUMNS)
    if rows.is_empty():
        return table.head(0).collect()
    return (
        table.with_row_index("row")
        .filter(pl.col("row").is_in(rows.implode()))
        .drop("row")
        .collect()
    )


def hits_in(part: RawPart, wanted: Wanted) -> Hits:
    """Read a part, and return all that it has of a takedown."""
    documents = pl.read_parquet(part.documents.checked(), columns=list(COLUMNS))
    is_meant = is_itself_wanted(documents, wanted)
    others = documents.filter(~is_meant)
    found = passages_by_row(others["text"], wanted)
    within = others.drop("text")[[*found]].with_columns(
        pl.Series("passages", [sorted(each) for each in found.values()], pl.List(pl.Binary))
    )
    records = pl.DataFrame()
    if part.quarantine is not None:
        quarantine = pl.read_parquet(part.quarantine.checked())
        records = quarantine.filter(is_record_wanted(quarantine, wanted))
    return Hits(part, documents.filter(is_meant), records, within)


def clusters_with(corpus: Corpus, doc_ids: Iterable[str]) -> list[frozenset[str]]:
    """Return the duplicate clusters that have any of some documents, of all kept manifests."""
    wanted = pl.Series(sorted(doc_ids), dtype=pl.String)
    folder = corpus.store.partition("duplicates", GLOBAL)
    clusters: dict[frozenset[str], None] = {}
    for number in folder.manifest_numbers() if len(wanted) else ():
        manifest = folder.read_manifest(number)
        files = [file for part in manifest.parts if (file := part.file("clusters")) and file.rows]
        tables = [
            pl.read_parquet(
                corpus.store.file_of(manifest, file).checked(), columns=["doc_id", "cluster_id"]
            )
            for file in files
        ]
        if tables:
            table = pl.concat(tables)
            found = table.filter(pl.col("doc_id").is_in(wanted.implode()))["cluster_id"]
            members = table.filter(pl.col("cluster_id").is_in(found.implode()))
            groups = members.group_by("cluster_id", maintain_order=True).agg("doc_id")["doc_id"]
            clusters |= dict.fromkeys(map(frozenset, groups.to_list()))
    return [*clusters]
