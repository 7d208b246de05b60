"""Tables of what is published, for queries: the newest manifests, and the documents that stay."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import polars as pl

from assets.deduped.deduped_records import DEDUPED
from assets.deduped.document_files import KeptDocuments, kept_documents
from assets.filtered.filtered_records import FILTERED
from assets.filtered.opt_out import registrable_domains
from assets.mixed.mixed_records import MIXED
from assets.raw.raw_records import RAW
from assets.text.addresses import url_parts
from assets.tokenized.tokenized_records import TOKENIZED
from resources.corpus import Corpus
from resources.settings.buckets import VALIDATION
from resources.store.records import Manifest, StageRecords
from resources.store.store import StoreError
from resources.takedowns import forbidden_documents

STAGES: tuple[StageRecords[Any, Any], ...] = (RAW, FILTERED, DEDUPED, TOKENIZED)
TABLES = {
    "manifests": "stage, partition, rows_in, rows_kept, tokens, bytes: `stats` of each manifest",
    "removed": "source, reason, documents: `stats.rejected` and `stats.duplicates` of filtered and "
    "deduped",
    "contaminated": "source, evaluation_set, documents: `stats.extra.contaminated` of deduped",
    "languages": "source, language, bytes, tokens, is_code: `stats.extra` of tokenized, by "
    "language; tokens between documents have none. is_code: the source's `domain` is code",
    "mix": "phase, source, tokens, epochs: `parts[0].stats.extra.mix` of mixed, as realised",
    "documents": "source, domain, license, documents, bytes: pl.scan_parquet of the documents that "
    "deduped keeps, by the registrable domain of `url` (publicsuffixlist) and `license`; bytes is "
    "the sum of pl.col('text').str.len_bytes(). Domain and bytes are of crawled sources only",
}
SUMS = ("documents", "bytes")
COUNTED_BY = ("source", "host", "license")  # host: "" of a document without, null: not read
COUNTED = {name: pl.String if name in COUNTED_BY else pl.Int64 for name in (*COUNTED_BY, *SUMS)}
Key = tuple[str, str]  # stage and partition
Manifests = Mapping[Key, Manifest[Any, Any]]


def newest_manifests(corpus: Corpus) -> tuple[Manifests, dict[Key, str]]:
    """Return the newest manifests of what is built, and their paths in the store.

    StoreError if one has a document that a takedown means.
    """
    manifests: dict[Key, Manifest[Any, Any]] = {}
    paths: dict[Key, str] = {}
    wanted = [(stage, name) for name in corpus.settings.source_names() for stage in STAGES]
    wanted += [(MIXED, name) for name in corpus.settings.phase_names() if name != VALIDATION]
    for stage, name in wanted:
        folder = corpus.store.partition(stage.name, name)
        if numbers := folder.manifest_numbers():
            manifests[stage.name, name] = folder.read_manifest(numbers[-1], stage)
            path = folder.manifest_path(numbers[-1])
            paths[stage.name, name] = str(path.relative_to(corpus.store.root))
    for (stage_name, _), manifest in manifests.items():
        if stage_name == RAW.name and (found := forbidden_documents(corpus.store, manifest)):
            raise StoreError(f"{found.source} still has {found}. Run: corpus build")
    return manifests, paths


def tables_of(corpus: Corpus, manifests: Manifests) -> dict[str, pl.DataFrame]:
    """Return the tables of TABLES."""
    rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in TABLES if name != "documents"}
    for (stage, name), manifest in manifests.items():
        stats = manifest.stats
        numbers = (stats.rows_in, stats.rows_kept, stats.tokens, stats.bytes)
        rows["manifests"].append((stage, name, *numbers))
        if stage in (FILTERED.name, DEDUPED.name):
            removed = {**stats.rejected, "duplicate of another document": stats.duplicates}
            rows["removed"] += ((name, reason, n) for reason, n in removed.items() if n)
        if stage == DEDUPED.name:
            hits = stats.numbers.contaminated or {}
            rows["contaminated"] += ((name, each, n) for each, n in hits.items())
        if stage == TOKENIZED.name:
            tokens = stats.numbers.text_tokens_by_language
            sizes = stats.numbers.text_bytes_by_language.items()
            is_code = corpus.settings.source(name).domain == "code"
            rows["languages"] += (
                (name, lang, size, tokens.get(lang, 0), is_code) for lang, size in sizes
            )
        if stage == MIXED.name:
            mix = manifest.parts[0].stats.numbers.mix.items()
            rows["mix"] += ((name, each, of.realised_tokens, of.epochs) for each, of in mix)
    tables = {name: as_table(name, of) for name, of in rows.items()}
    return tables | {"documents": documents_table(corpus, manifests)}


def as_table(name: str, rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    """Return rows as the table of that name, with the type of each column also without rows."""
    columns = TABLES[name].partition(":")[0].split(", ")
    texts = ("stage", "partition", "phase", "source", "reason", "evaluation_set", "language")
    types: dict[str, pl.DataType] = dict.fromkeys(texts, pl.String())
    types |= {"epochs": pl.Float64(), "is_code": pl.Boolean()}
    schema = {column: types.get(column, pl.Int64()) for column in columns}
    return pl.DataFrame(rows, schema=schema, orient="row")


def documents_table(corpus: Corpus, manifests: Manifests) -> pl.DataFrame:
    """Count the documents that stay by source, domain and licence; texts are read of crawls only.

    A part is read at a time on each core.
    """
    deduped = {source: each for (stage, source), each in manifests.items() if stage == DEDUPED.name}
    crawls = {s for s in deduped if corpus.settings.source(s).provenance == "crawl"}
    asked = [
        (source, kept_documents(corpus.store, manifest, part), source in crawls)
        for source, manifest in deduped.items()
        for part in manifest.parts
    ]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        counted = pool.map(lambda each: count_documents(*each), asked)
        table = pl.concat([pl.DataFrame(schema=COUNTED), *counted])
    hosts = table["host"].drop_nulls().unique()
    domains = pl.DataFrame({"host": hosts, "domain": registrable_domains(hosts)})
    by_domain = table.join(domains, on="host", how="left").group_by("source", "domain", "license")
    return by_domain.agg(pl.col(*SUMS).sum())


def count_documents(source: str, documents: KeptDocuments, is_crawl: bool) -> pl.DataFrame:
    """Count the documents of a part by host and licence, and the bytes of texts; see COUNTED."""
    size = (pl.col("text").str.len_bytes() if is_crawl else pl.lit(None)).cast(pl.Int64)
    url = (pl.col("url").fill_null("") if is_crawl else pl.lit(None)).cast(pl.String)
    table = pl.scan_parquet(documents.filtered.checked()).with_row_index("row")
    table = table.select("row", "license", url=url, bytes=size)
    if documents.kept is not None:
        kept = pl.scan_parquet(documents.kept.checked()).select("row", cut=size)
        table = table.join(kept, on="row").with_columns(bytes=pl.coalesce("cut", "bytes"))
    rows = table.with_columns(documents=pl.lit(1, pl.Int64), source=pl.lit(source)).collect()
    by_host = rows.with_columns(url_parts(rows["url"])["host"]).group_by(*COUNTED_BY)
    return by_host.agg(pl.col(*SUMS).sum())
