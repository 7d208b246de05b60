"""`corpus duplicates`: the clusters of the last run, the documents of one, the ingest order.

duplicates show DOC [--html FILE]   a document's cluster, and how each copy differs from what stayed
duplicates list [--source S]        the largest clusters
duplicates ledger                   the ingest order as JSON, for another build's `dedup.ledger`
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import polars as pl
from cyclopts import Parameter
from msgspec import to_builtins

from assets.bucketed.previous_holdout import held_out_documents
from assets.deduped.clusters.duplicates import CLUSTER_SCHEMA
from pipeline_defs.commands.look.decisions import pick_sources, write_text
from pipeline_defs.commands.look.duplicates_show import (
    Copy,
    cluster_page,
    print_cluster,
    print_clusters,
)
from pipeline_defs.commands.look.manifests import (
    LEAST_PREFIX,
    MAX_SUGGESTED,
    filtered_manifests,
    path_of,
)
from pipeline_defs.commands.look.word_diff import common_start
from pipeline_defs.commands.terminal.options import Json, Positive
from pipeline_defs.commands.terminal.output import print_json
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError
from resources.store.store import StoreError
from resources.tasks import GLOBAL

MOST = 20


Place = tuple[str, str]  # source and part


MOST_SHOWN = Annotated[Positive, Parameter(name="--most", help="Show at most so many.")]


def show_cluster(
    document: Annotated[str, Parameter(help="A doc_id, or the beginning of one.")],
    /,
    *,
    html: Annotated[Path | None, Parameter(help="Write a page (HTML) to this file.")] = None,
    context: Annotated[Positive, Parameter(help="Equal words shown around a change.")] = 8,
    most: MOST_SHOWN = MOST,
) -> int:
    """Print a document's cluster, or write it as a page."""
    corpus = load_corpus()
    places = cluster_places(corpus)
    member = find_document(corpus, places, document.lower())
    members = cluster_members(places, member["cluster_id"], most)
    lines = {
        "cluster": member["cluster_id"],
        "documents": f"{member['cluster_size']:,}",
        "survivor": f"{member['kept_doc_id']} ({member['kept_source']})",
    }
    copies = list(read_copies(corpus, members))
    not_shown = member["cluster_size"] - len(copies)
    if html:
        write_text(html, cluster_page(lines, copies, not_shown, context))
    else:
        print_cluster(lines, copies, not_shown, context)
    return 0


def list_clusters(
    *,
    source: Annotated[str | None, Parameter(help="Only clusters with a document of it.")] = None,
    min_size: Annotated[Positive, Parameter(help="Only clusters of at least so many.")] = 2,
    json: Json = False,
    most: MOST_SHOWN = MOST,
) -> int:
    """Print the largest clusters."""
    corpus = load_corpus()
    sources = pick_sources(corpus, [source]) if source else None
    places = cluster_places(corpus)
    paths = [path for path, (name, _) in places.items() if not sources or name in sources]
    clusters = largest(paths, min_size, most)
    if json:
        print_json(clusters.to_dicts())
    elif clusters.is_empty():
        of_source = f" with a document of {source!r}" if source else ""
        sys.stdout.write(f"No cluster of {min_size:,} or more documents{of_source}.\n")
    else:
        print_clusters(clusters)
    return 0


def ledger_of_build() -> int:
    """Print the ingest order as JSON, with the documents that are held out of training."""
    corpus = load_corpus()
    ledger = corpus.store.newest("band_index", GLOBAL).provenance["ledger"]
    held_out = held_out_documents(corpus)
    keys = ("source", "part", "generations", "files")
    exported = [{key: record[key] for key in keys if record.get(key)} for record in ledger]
    for record in exported:
        if (of_part := held_out.get((record["source"], record["part"]))) is not None:
            record |= to_builtins(of_part)
    print_json(exported)
    return 0


def cluster_places(corpus: Corpus) -> dict[Path, Place]:
    """Find the last run's tables of clusters by source and part; StoreError if one is missing."""
    manifest = corpus.store.newest("duplicates", GLOBAL)
    places: dict[Path, Place] = {}
    for part in manifest.parts:
        if file := part.file("clusters"):
            path = corpus.store.path_of(manifest, file)
            if not path.is_file():
                raise StoreError(f"{path}: missing. Materialize `duplicates` again to restore it.")
            clusters = corpus.store.file_of(manifest, file).checked()
            places[clusters] = part.stats.numbers["source"], part.stats.numbers["part"]
    return places


def scan_clusters(paths: Iterable[Path]) -> pl.LazyFrame:
    """Scan the clusters of some files, in their order, with the path of each row's file."""
    files = list(paths)
    if not files:
        return pl.LazyFrame(schema={"row": pl.UInt32, **CLUSTER_SCHEMA, "path": pl.String})
    return pl.scan_parquet(files, include_file_paths="path")


def find_document(corpus: Corpus, paths: Iterable[Path], doc_id: str) -> dict[str, Any]:
    """Return the row of the one clustered document whose id has this prefix; else UsageError."""
    if len(doc_id) < LEAST_PREFIX:
        raise UsageError(f"{doc_id!r} is too short: give at least {LEAST_PREFIX} characters of it.")
    table = scan_clusters(paths).filter(pl.col("doc_id").str.starts_with(doc_id))
    rows = table.collect(engine="streaming").to_dicts()
    exact = [row for row in rows if row["doc_id"] == doc_id]
    if len(exact or rows) == 1:
        return (exact or rows)[0]
    if not rows:
        raise UsageError(why_not_clustered(corpus, doc_id))
    ids = sorted(row["doc_id"] for row in rows)
    raise UsageError(
        f"{doc_id!r} begins the ids of several duplicates: {', '.join(ids[:MAX_SUGGESTED])}"
        f"{', ...' if len(ids) > MAX_SUGGESTED else ''}. Give more of it."
    )


def why_not_clustered(corpus: Corpus, doc_id: str) -> str:
    """Explain why a document is in no cluster, from the decisions of `filtered`."""
    similar: list[dict[str, Any]] = []
    for manifest in filtered_manifests(corpus):
        paths = [path_of(corpus, manifest, part, "decisions") for part in manifest.parts]
        if not paths:
            continue
        begins = pl.col("doc_id").str.starts_with(doc_id[:LEAST_PREFIX])
        rows = pl.scan_parquet(paths).filter(begins).select("doc_id", "kept", "reasons")
        decisions = rows.collect(engine="streaming").iter_rows(named=True)
        similar += [row | {"source": manifest.partition} for row in decisions]
    matching = [row for row in similar if row["doc_id"].startswith(doc_id)]
    if len(matching) == 1:
        return fate(matching[0])
    if matching:
        return f"{doc_id!r} begins the ids of {len(matching)} documents, none of which has a copy."
    near = sorted(
        (row["doc_id"] for row in similar),
        key=lambda other: (-common_start(other, doc_id), other),
    )
    hint = f"Ids that begin alike: {', '.join(near[:MAX_SUGGESTED])}." if near else ""
    return f"There is no document {doc_id!r}. {hint}".strip()


def fate(decision: dict[str, Any]) -> str:
    """Describe the fate of a document that is in no cluster."""
    name = f"{decision['doc_id']} ({decision['source']})"
    if decision["kept"]:
        return f"{name} is in no cluster: no other document was found to be a copy of it."
    reasons = ", ".join(decision["reasons"])
    return f"{name} was filtered out ({reasons}), so it was not compared with others."


def cluster_members(places: Mapping[Path, Place], cluster_id: str, most: int) -> pl.DataFrame:
    """Return up to `most` documents of a cluster with source and part, the survivor first."""
    number = pl.col("path").replace_strict({str(path): i for i, path in enumerate(places)})
    members = scan_clusters(places).filter(cluster_id=cluster_id).with_columns(number=number)
    first = members.sort(pl.col("method").is_not_null(), "number", "row").head(most).collect()
    parts = [places[Path(path)] for path in first["path"]]
    return first.with_columns(
        source=pl.Series([source for source, _ in parts], dtype=pl.String),
        part=pl.Series([part for _, part in parts], dtype=pl.String),
    )


def read_copies(corpus: Corpus, members: pl.DataFrame) -> Iterator[Copy]:
    """Read the members' documents from `filtered`, in order."""
    manifests = {manifest.partition: manifest for manifest in filtered_manifests(corpus)}
    documents: dict[str, dict[str, Any]] = {}
    for (source, name), rows in members.group_by("source", "part", maintain_order=True):
        manifest = manifests.get(str(source))
        parts = [part for part in manifest.parts if part.name == name] if manifest else []
        for part in parts:
            assert manifest is not None
            table = pl.scan_parquet(path_of(corpus, manifest, part, "documents"))
            wanted = table.filter(pl.col("doc_id").is_in(rows["doc_id"].implode()))
            texts = wanted.select("doc_id", "text", "origin", "url").collect(engine="streaming")
            documents |= {row["doc_id"]: row for row in texts.iter_rows(named=True)}
    for member in members.iter_rows(named=True):
        document = documents.get(member["doc_id"], {})
        yield Copy(
            doc_id=member["doc_id"],
            source=member["source"],
            origin=document.get("origin"),
            url=document.get("url"),
            similarity=member["similarity"],
            method=member["method"],
            text=document.get("text"),
        )


def largest(paths: Iterable[Path], min_size: int, most: int) -> pl.DataFrame:
    """Return the clusters with a document in one of the files: the largest first, then by id."""
    columns = ["cluster_id", "cluster_size", "kept_doc_id", "kept_source"]
    table = scan_clusters(paths).filter(pl.col("cluster_size") >= min_size).select(columns)
    order = table.unique("cluster_id").sort("cluster_size", "cluster_id", descending=[True, False])
    return order.head(most).collect(engine="streaming")
