"""`corpus find TEXT`: find the documents, kept or removed, that contain a string, and their fates.

The text column of each part is decoded and searched for the exact bytes, a part per core, so that
memory is bounded by the parts under way. Decoding takes nine tenths of the time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal

import msgspec
import polars as pl
from cyclopts import Parameter

from assets.deduped.document_files import KeptDocuments, kept_documents, read_kept
from assets.text.table_rows import count_bytes
from pipeline_defs.commands.look.trace_document import cluster_of, deduped_of, rows_of, rows_with
from pipeline_defs.commands.published_documents import newest_part, path_of
from pipeline_defs.commands.terminal import Json, Positive, one_line, print_json, say
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError
from resources.store.records import PartRecord
from resources.store.store import StoreError

AROUND = 40  # characters shown on both sides of the string
COLUMNS = ("doc_id", "url", "origin")
TextStage = Literal["raw", "filtered", "deduped"]
Found = tuple[pl.DataFrame, int, int]  # documents with the string; number and bytes of all texts


@dataclass(frozen=True)
class TextPart:
    """A part with texts."""

    source: str
    record: PartRecord
    documents: KeptDocuments


class Hit(msgspec.Struct, frozen=True):
    """A document with the string: where it is from, what became of it, and where it is now."""

    doc_id: str
    source: str
    file: str
    row: int
    url: str | None
    fate: str
    shards: list[str]
    around: str


class Searched(msgspec.Struct, frozen=True):
    """Result of a search; `is_cut` if it ended at the limit."""

    hits: list[Hit]
    documents: int
    text_bytes: int
    seconds: float
    is_cut: bool


def find(
    text: Annotated[str, Parameter(help="A string, as its bytes are; it may have blanks.")],
    /,
    *,
    limit: Annotated[Positive, Parameter(help="Stop at so many documents.")] = 20,
    stage: Annotated[TextStage, Parameter(help="Search the texts of this stage.")] = "raw",
    ignore_case: Annotated[
        bool, Parameter(help="Upper and lower case are the same, in all scripts.")
    ] = False,
    json: Json = False,
) -> int:
    """Print the documents that contain a string; return 1 if none does."""
    if not text:
        raise UsageError("give a string of at least one character")
    place = pl.col("text").str.find(text, literal=True)  # in bytes; null if it is not there
    if ignore_case:
        place = pl.col("text").str.find(f"(?i){pl.escape_regex(text)}")
    searched = search(load_corpus(), place, limit, stage)
    if json:
        print_json(searched)
    else:
        for hit in searched.hits:
            say(f"{hit.doc_id} {hit.source}/{hit.file} row {hit.row:,}: {hit.fate}")
            if hit.shards:
                say(f"  shard:row {', '.join(hit.shards)}")
            say(f"  {hit.around}")
        say(
            f"{len(searched.hits):,} documents found in {searched.documents:,}, "
            f"{searched.text_bytes / 1e6:,.1f} MB in {searched.seconds:.2f} s"
            f"{'; there may be more: --limit' if searched.is_cut else ''}"
        )
    return 0 if searched.hits else 1


def search(corpus: Corpus, place: pl.Expr, limit: int, stage: TextStage) -> Searched:
    """Search the newest texts of a stage, in order of sources and parts; StoreError for none."""
    began, hits, num_texts, num_bytes = time.monotonic(), list[Hit](), 0, 0
    names = corpus.settings.source_names()
    manifests = [m for name in names if (m := corpus.store.newest_or_none(stage, name))]
    if not manifests:
        raise StoreError(f"{stage} has no texts in {corpus.store}. Run: corpus build")
    parts = [
        TextPart(each.partition, part, kept_documents(corpus.store, each, part))
        for each in manifests
        for part in each.parts
    ]
    for part, (found, documents, size) in in_order(parts, place, limit + 1):
        num_texts, num_bytes = num_texts + documents, num_bytes + size
        left = limit - len(hits)
        for row in found.head(left).iter_rows(named=True):
            fate, shards = fate_of(corpus, part.source, part.record, row["doc_id"])
            place_in = row["origin"]["file"], row["origin"]["row"], row["url"]
            hits.append(Hit(row["doc_id"], part.source, *place_in, fate, shards, row["around"]))
        if found.height > left or len(hits) == limit:
            break
    seconds = time.monotonic() - began
    return Searched(hits, num_texts, num_bytes, seconds, len(hits) == limit)


def in_order(
    parts: Sequence[TextPart], place: pl.Expr, most: int
) -> Iterator[tuple[TextPart, Found]]:
    """Search parts on all cores; yield the results in order, with `most` documents of each."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            found = pool.map(partial(search_part, place, most), parts)
            yield from zip(parts, found, strict=True)
        finally:
            pool.shutdown(cancel_futures=True)


def search_part(place: pl.Expr, most: int, part: TextPart) -> Found:
    """Return the first documents of a part that have the string, the number of all, their bytes."""
    texts = read_kept(part.documents, ["text"])
    places = texts.select(place=place).to_series()
    rows = places.is_not_null().arg_true().head(most)
    sizes = texts.height, count_bytes(texts["text"])
    if rows.is_empty():
        return pl.DataFrame(), *sizes
    others = read_kept(part.documents, COLUMNS)[rows]
    around = map(excerpt, texts["text"][rows], places[rows])
    return others.with_columns(around=pl.Series(list(around))), *sizes


def excerpt(text: str, place: int) -> str:
    """Return the text around a place in bytes, safe to print."""
    start = len(text.encode()[:place].decode())
    return one_line(text[max(0, start - AROUND) : start + 2 * AROUND])


def fate_of(corpus: Corpus, source: str, part: PartRecord, doc_id: str) -> tuple[str, list[str]]:
    """Return what became of a document, and the rows of shards that hold it."""
    decision: list[dict[str, list[str]]] = []
    if filtered := newest_part(corpus, "filtered", source, part.name):
        decision = rows_with(path_of(corpus, *filtered, "decisions"), doc_id, ["reasons"])
    if not decision:
        return "not filtered yet", []
    if reasons := decision[0]["reasons"]:
        return f"removed by filtered: {', '.join(reasons)}", []
    cluster = cluster_of(corpus, source, part, doc_id)
    if cluster is not None and cluster.kept_doc_id != doc_id:
        return f"duplicate ({cluster.method}) of {cluster.kept_doc_id}", []
    deduped = deduped_of(corpus, source, part, doc_id)
    if deduped is None:
        return "kept by filtered", []
    if not deduped.kept:
        steps = ", ".join(change.step for change in deduped.changes if change.is_rejected)
        return f"removed by deduped{steps and f': {steps}'}", []
    found = rows_of(corpus, source, doc_id)
    fate = f"kept, held out for {found.split}" if found.split else "kept"
    return fate, [f"{each.shard}:{each.row}" for each in found.rows]
