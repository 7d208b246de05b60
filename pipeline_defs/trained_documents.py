"""The documents in training shards, counted by domain, licence and language.

They are those in the spans of sequences that are not held out. Their bytes are known from the
decisions of `filtered`, so that no text is read but of documents that `deduped` cut.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import polars as pl

from assets.bucketed.bucketed_records import BUCKETED, layout_of
from assets.deduped.deduped_records import DEDUPED
from assets.deduped.document_files import KeptDocuments, kept_documents, sizes_of
from assets.filtered.filtered_records import FILTERED
from assets.filtered.opt_out import registrable_domains
from assets.sharded.sharded_records import SHARDED
from assets.text.addresses import url_parts
from assets.tokenized.tokenized_records import TOKENIZED
from assets.tokenized.tokenizer_fit import UNKNOWN
from resources.corpus import Corpus
from resources.settings.buckets import VALIDATION, split_bucket
from resources.store.published import PublishedFile
from resources.store.records import Manifest

STAGES = (FILTERED, DEDUPED, TOKENIZED, BUCKETED)
SUMS = ("documents", "bytes", "tokens")
COUNTED_BY = ("source", "host", "license", "language")  # host: "" without one, null: not read
COUNTED = {name: pl.String if name in COUNTED_BY else pl.Int64 for name in (*COUNTED_BY, *SUMS)}


class Window(NamedTuple):
    """Files that tell which documents of a source's consecutive parts are in training shards.

    sequences   those of the window, and `held_out` the numbers of the buckets that are held out
    parts       documents of each part of `deduped`, and decisions with the bytes of their texts
    """

    source: str
    sequences: PublishedFile
    held_out: tuple[int, ...]
    parts: list[tuple[KeptDocuments, PublishedFile]]


def windows_of(
    corpus: Corpus, source: str, chain: Mapping[str, Manifest[Any, Any]]
) -> list[Window]:
    """Return the windows of a source, none before there are shards of it."""
    if SHARDED.name not in chain:
        return []
    filtered, deduped, tokenized, bucketed = (chain[stage.name] for stage in STAGES)
    named = [{part.name: part for part in each.parts} for each in (filtered, deduped, bucketed)]
    buckets = layout_of(bucketed).names
    held_out = tuple(n for n, name in enumerate(buckets) if split_bucket(name)[1] == VALIDATION)
    windows: list[Window] = []
    for name in (part.name for part in tokenized.parts):
        of_filter, of_dedup, window = (parts.get(name) for parts in named)
        if window is not None:  # it has the name of its first part
            sequences = corpus.store.part_file(bucketed, window, "sequences")
            windows.append(Window(source, sequences, held_out, []))
        assert of_filter is not None and of_dedup is not None, "each stage was made of the other"
        decisions = corpus.store.part_file(filtered, of_filter, "decisions")
        documents = kept_documents(corpus.store, deduped, of_dedup)
        windows[-1].parts.append((documents, decisions))
    return windows


def documents_table(corpus: Corpus, windows: Sequence[Window]) -> pl.DataFrame:
    """Count the documents in training shards, a window at a time on each core."""
    settings = [corpus.settings.source(name) for name in corpus.settings.source_names()]
    crawls = {source.name for source in settings if source.provenance == "crawl"}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        counted = pool.map(lambda each: count_documents(each, each.source in crawls), windows)
        table = pl.concat([pl.DataFrame(schema=COUNTED), *counted])
    hosts = table["host"].drop_nulls().unique()
    domains = pl.DataFrame({"host": hosts, "domain": registrable_domains(hosts)})
    code = [source.name for source in settings if source.domain == "code"]
    by_domain = table.join(domains, on="host", how="left")
    by_domain = by_domain.with_columns(is_code=pl.col("source").is_in(code))
    keys = ("source", "domain", "license", "language", "is_code")
    return by_domain.group_by(*keys).agg(pl.col(*SUMS).sum())


def count_documents(window: Window, is_crawl: bool) -> pl.DataFrame:
    """Count the documents of a window that are in training shards; see COUNTED."""
    rows = pl.scan_ipc(window.sequences.checked())
    rows = rows.filter(~pl.col("bucket").is_in(list(window.held_out)))
    spans = rows.select(pl.col("spans").explode()).unnest("spans").group_by("doc_id")
    tokens = spans.agg(tokens=pl.col("length").cast(pl.Int64).sum()).collect()
    of_parts = (told_of(*part, is_crawl).join(tokens, on="doc_id") for part in window.parts)
    table = pl.concat(of_parts).with_columns(
        documents=pl.lit(1, pl.Int64), source=pl.lit(window.source)
    )
    by_host = table.with_columns(url_parts(table["url"])["host"]).group_by(*COUNTED_BY)
    return by_host.agg(pl.col(*SUMS).sum())


def told_of(documents: KeptDocuments, decisions: PublishedFile, is_crawl: bool) -> pl.DataFrame:
    """Return the documents of a part: doc_id, license, url (of crawls), language and bytes."""
    url = (pl.col("url").fill_null("") if is_crawl else pl.lit(None)).cast(pl.String)
    language, size = pl.col("lang").fill_null(UNKNOWN), pl.lit(sizes_of(decisions)).cast(pl.Int64)
    table = pl.scan_parquet(documents.filtered.checked()).with_row_index("row")
    table = table.select("row", "doc_id", "license", url=url, language=language, bytes=size)
    if documents.kept is not None:
        cut = pl.col("text").str.len_bytes().cast(pl.Int64)
        kept = pl.scan_parquet(documents.kept.checked()).select("row", cut=cut)
        table = table.join(kept, on="row").with_columns(bytes=pl.coalesce("cut", "bytes"))
    return table.select("doc_id", "license", "url", "language", "bytes").collect()
