"""`corpus find TEXT`: find the documents, kept or removed, that contain a string, and their fates.

The text column of each part is decoded and searched, a part per core, so that memory is bounded by
the parts under way. Decoding takes nine tenths of the time: texts that an index or --url rules out
are not decoded.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Annotated, Any, Literal

import polars as pl
from cyclopts import Parameter

from assets.bucketed.bucketed_records import TOO_LONG
from assets.deduped.document_files import read_some
from assets.mixed.complete_state_files import incomplete
from assets.text.table_rows import count_bytes
from assets.tokenized.tokenized_records import NO_TOKENS, REJECTED
from corpus_loader.places.stage_names import CHAIN, DEDUPED, FILTERED, SHARDED, TOKENIZED
from pipeline_defs.commands.answers import answer_lines
from pipeline_defs.commands.look.find_index import TextPart, build_indexes, parts_of
from pipeline_defs.commands.look.find_query import Options, Query
from pipeline_defs.commands.look.trace_document import (
    annotations_of,
    cluster_of,
    deduped_of,
    leakage_of,
    rows_of,
    rows_with,
    tokens_of,
)
from pipeline_defs.commands.origins import origin_text
from pipeline_defs.commands.published_documents import newest_part, path_of
from pipeline_defs.commands.terminal import (
    Json,
    Positive,
    alone_on,
    one_line,
    warn,
)
from pipeline_defs.load_corpus import load_corpus
from pipeline_defs.record_fates import Fate, complete_chain, fate_of
from resources.corpus import Corpus
from resources.store.records import PartRecord

AROUND = 40  # characters shown on both sides of the string
COLUMNS = ("doc_id", "url", "origin")
HITS: dict[str, Any] = {
    **dict.fromkeys(("doc_id", "source", "file"), pl.String),
    **{"row": pl.Int64, "url": pl.String, "fate": pl.String},
    **{"shards": pl.List(pl.String), "around": pl.String},
}
TextStage = Literal["raw", "filtered", "deduped"]
Found = tuple[pl.DataFrame, int, int]  # documents with the string; number and bytes of texts read


def find(
    text: Annotated[str, Parameter(help="A string, as its bytes are; it may have blanks.")] = "",
    /,
    *,
    options: Options | None = None,
    limit: Annotated[Positive, Parameter(help="Stop at so many documents.")] = 20,
    stage: Annotated[TextStage, Parameter(help="Search the texts of this stage.")] = "raw",
    build_index: Annotated[
        bool, Parameter(help="First index the parts that have no index; a string is optional.")
    ] = False,
    json: Json = False,
) -> int:
    """Print the documents that contain a string; return 1 if none does."""
    options = options or Options()
    is_asked = bool(text or options.regex is not None or not build_index)
    query = Query.of(text, options) if is_asked else None
    corpus = load_corpus()
    if build_index:
        with alone_on(corpus.store.root, "corpus find --build-index"):
            sys.stderr.write(f"{build_indexes(corpus, stage, options.source)}\n")
    if query is None:
        return 0
    found = search(corpus, query, parts_of(corpus, stage, options.source), limit)
    warn(incomplete(corpus))
    answer_lines(lines_of(**found), found, json=json)
    return int(found["hits"].is_empty())


def lines_of(
    hits: pl.DataFrame, documents: int, text_bytes: int, seconds: float, *, is_cut: bool
) -> Iterator[str]:
    """Yield what a search found, and how much was read."""
    for hit in hits.iter_rows(named=True):
        place = origin_text(hit["file"], hit["row"])
        yield f"{hit['doc_id']} {hit['source']}: {place}: {hit['fate']}"
        if hit["shards"]:
            yield f"  shard:row {', '.join(hit['shards'])}"
        yield f"  {hit['around']}"
    yield (
        f"{hits.height:,} documents found; {documents:,} texts, {text_bytes / 1e6:,.1f} MB, were "
        f"read in {seconds:.2f} s{'; there may be more: --limit' if is_cut else ''}"
    )


def search(corpus: Corpus, query: Query, parts: Sequence[TextPart], limit: int) -> dict[str, Any]:
    """Search parts in their order; `is_cut` if that ended at the limit."""
    began, hits, num_texts, num_bytes = time.monotonic(), list[tuple[Any, ...]](), 0, 0
    for part, (found, documents, size) in in_order(parts, query, limit + 1):
        num_texts, num_bytes = num_texts + documents, num_bytes + size
        left = limit - len(hits)
        for row in found.head(left).iter_rows(named=True):
            fate, shards = document_fate(corpus, part.source, part.record, row["doc_id"])
            place_in = row["origin"]["file"], row["origin"]["row"], row["url"]
            hits.append((row["doc_id"], part.source, *place_in, fate, shards, row["around"]))
        if found.height > left or len(hits) == limit:
            break
    return {
        "hits": pl.DataFrame(hits, HITS, orient="row"),
        **{"documents": num_texts, "text_bytes": num_bytes},
        **{"seconds": time.monotonic() - began, "is_cut": len(hits) == limit},
    }


def in_order(
    parts: Sequence[TextPart], query: Query, most: int
) -> Iterator[tuple[TextPart, Found]]:
    """Search parts on all cores; yield the results in order, with `most` documents of each."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            found = pool.map(partial(search_part, query, most), parts)
            yield from zip(parts, found, strict=True)
        finally:
            pool.shutdown(cancel_futures=True)


def search_part(query: Query, most: int, part: TextPart) -> Found:
    """Return the first documents of a part that match, the number of texts read, their bytes."""
    texts = query.texts_of(part)
    found = query.find(texts).head(most)
    sizes = texts.height, count_bytes(texts["text"])
    if found.is_empty():
        return pl.DataFrame(), *sizes
    others = read_some(part.documents, found["doc_id"], COLUMNS)
    around = map(excerpt, found["text"], found["place"])
    return others.with_columns(around=pl.Series(list(around))), *sizes


def excerpt(text: str, place: int) -> str:
    """Return the text around a place in bytes, safe to print."""
    start = len(text.encode()[:place].decode())
    return one_line(text[max(0, start - AROUND) : start + 2 * AROUND])


def document_fate(
    corpus: Corpus, source: str, part: PartRecord, doc_id: str
) -> tuple[str, list[str]]:
    """Return what became of a document, and the rows of shards that hold it."""
    decision: list[dict[str, list[str]]] = []
    if filtered := newest_part(corpus, FILTERED, source, part.name):
        decision = rows_with(path_of(corpus, *filtered, "decisions"), doc_id, ["reasons"])
    if not decision:
        return f"{Fate.IN_NO_SHARD}: not filtered yet", []
    if reasons := decision[0]["reasons"]:
        return f"{fate_of(FILTERED, reasons[0])}: {', '.join(reasons)}", []
    cluster = cluster_of(corpus, source, part, doc_id)
    if cluster is not None and cluster.kept_doc_id != doc_id:
        return f"{Fate.DUPLICATE} ({cluster.method}) of {cluster.kept_doc_id}", []
    deduped = deduped_of(corpus, source, part, doc_id)
    if deduped is not None and not deduped.kept:
        if steps := [change.step for change in deduped.changes if change.is_rejected]:
            return f"{fate_of(DEDUPED, steps[0])}: {', '.join(steps)}", []
        if sets := sorted({hit.set for hit in deduped.contamination if hit.is_contaminated}):
            return f"{Fate.CONTAMINATED}: {', '.join(sets)}", []
    found = rows_of(corpus, source, doc_id)
    if not found.rows:
        return why_in_no_shard(corpus, source, part, doc_id), []
    fate = f"{Fate.HELD_OUT} for {found.split}" if found.split else str(Fate.IN_SHARDS)
    return fate, [f"{each.shard}:{each.row}" for each in found.rows]


def why_in_no_shard(corpus: Corpus, source: str, part: PartRecord, doc_id: str) -> str:
    """Return what became of a document that `deduped` keeps, and that no row of a shard has."""
    chain = complete_chain({stage: corpus.store.newest_or_none(stage, source) for stage in CHAIN})
    encoded = newest_part(corpus, TOKENIZED, source, part.name)
    leakage = leakage_of(corpus, doc_id)
    if SHARDED not in chain or encoded is None:
        return Fate.IN_NO_SHARD
    dropped = [a for a in annotations_of(corpus, source, part, doc_id) if a.is_dropped]
    if dropped and tokens_of(corpus, source, part, doc_id) is not None:
        return f"{Fate.DROPPED}: {dropped[0].annotator}"
    if leakage is not None and leakage.is_left_out:
        return f"{Fate.LIKE_HELD_OUT}: {leakage.held_doc_id}"
    if tokens_of(corpus, source, part, doc_id) is not None:
        return f"{Fate.REFUSED}: {TOO_LONG}"
    path = path_of(corpus, *encoded, REJECTED) if encoded[1].file(REJECTED) else None
    reason = rows_with(path, doc_id, ["reason"])[0]["reason"] if path else NO_TOKENS
    return f"{fate_of(TOKENIZED, reason)}: {reason}"
