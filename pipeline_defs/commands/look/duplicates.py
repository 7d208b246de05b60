"""`corpus duplicates`: the clusters of the last run, the documents of one, the ingest order.

duplicates show DOC [--html FILE]   a document's cluster, and how each copy differs from what stayed
duplicates list [--source S]        the largest clusters
duplicates ledger                   the ingest order as JSON, for another build's `dedup.ledger`
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from assets.deduped.clusters.duplicates import CLUSTER_SCHEMA
from pipeline_defs.commands.look.duplicates_show import (
    Copy,
    cluster_page,
    print_cluster,
    print_clusters,
)
from pipeline_defs.commands.look.sample import positive
from pipeline_defs.commands.look.whatif import pick_sources, write_text
from pipeline_defs.commands.look.word_diff import common_start
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError
from resources.store.records import Manifest, PartRecord, required_file, to_json
from resources.store.store import StoreError
from resources.tasks import GLOBAL

LEAST_PREFIX = 4  # characters of an id: of 1e9 documents, 15,000 begin alike
MAX_SUGGESTED = 5
MOST = 20


Place = tuple[str, str]  # source and part


def add_arguments(parser: ArgumentParser) -> None:
    """The options of the command."""
    actions = parser.add_subparsers(dest="action", required=True)
    show = actions.add_parser("show", help="a document's cluster, with what differs")
    show.add_argument("document", metavar="DOC", help="a doc_id, or the beginning of one")
    show.add_argument("--html", type=Path, metavar="FILE", help="write a page instead")
    show.add_argument(
        "--context", type=positive, default=8, help="equal words shown around a change (default: 8)"
    )
    clusters = actions.add_parser("list", help="clusters, the largest first")
    clusters.add_argument("--source", metavar="S", help="only those with a document of S")
    clusters.add_argument("--min-size", type=positive, default=2, metavar="N")
    clusters.add_argument("--json", action="store_true", help="for programs")
    for action in (show, clusters):
        action.add_argument(
            "--most", type=positive, default=MOST, metavar="N", help=f"(default: {MOST})"
        )
    actions.add_parser("ledger", help="the ingest order, as JSON")


def run(options: Namespace) -> int:
    """Do what was asked for."""
    actions = {"show": run_show, "list": run_list, "ledger": run_ledger}
    actions[options.action](load_corpus(), options)
    return 0


def run_show(corpus: Corpus, options: Namespace) -> None:
    """Print a cluster, or write it as a page."""
    places = cluster_places(corpus)
    found = find_document(corpus, places, options.document.lower())
    members = cluster_members(places, found["cluster_id"], options.most)
    facts = {
        "cluster": found["cluster_id"],
        "documents": f"{found['cluster_size']:,}",
        "survivor": f"{found['kept_doc_id']} ({found['kept_source']})",
    }
    copies = list(read_copies(corpus, members))
    not_shown = found["cluster_size"] - len(copies)
    if options.html:
        write_text(options.html, cluster_page(facts, copies, not_shown, options.context))
    else:
        print_cluster(facts, copies, not_shown, options.context)


def run_list(corpus: Corpus, options: Namespace) -> None:
    """Print the largest clusters."""
    sources = pick_sources(corpus, [options.source]) if options.source else None
    places = cluster_places(corpus)
    paths = [path for path, (source, _) in places.items() if not sources or source in sources]
    found = largest(paths, options.min_size, options.most)
    if options.json:
        sys.stdout.write(to_json(found.to_dicts()).decode())
    elif found.is_empty():
        of_source = f" with a document of {options.source!r}" if options.source else ""
        sys.stdout.write(f"No cluster of {options.min_size:,} or more documents{of_source}.\n")
    else:
        print_clusters(found)


def run_ledger(corpus: Corpus, _: Namespace) -> None:
    """Print the ingest order."""
    ledger = corpus.store.newest("band_index", GLOBAL).provenance["ledger"]
    keys = ("source", "part", "generations")
    sys.stdout.write(to_json([{key: entry[key] for key in keys} for entry in ledger]).decode())


def cluster_places(corpus: Corpus) -> dict[Path, Place]:
    """The tables of clusters of the last run, and whose they are; StoreError if one is missing."""
    manifest = corpus.store.newest("duplicates", GLOBAL)
    places: dict[Path, Place] = {}
    for part in manifest.parts:
        if file := part.file("clusters"):
            path = corpus.store.path_of(manifest, file)
            places[path] = part.stats.numbers["source"], part.stats.numbers["part"]
            if not path.is_file():
                raise StoreError(f"{path}: missing. Materialize `duplicates` again to restore it.")
    return places


def scan_clusters(paths: Iterable[Path]) -> pl.LazyFrame:
    """All clusters of some files, in their order, with the path of each row's file."""
    found = list(paths)
    if not found:
        return pl.LazyFrame(schema={"row": pl.UInt32, **CLUSTER_SCHEMA, "path": pl.String})
    return pl.scan_parquet(found, include_file_paths="path")


def find_document(corpus: Corpus, paths: Iterable[Path], doc_id: str) -> dict[str, Any]:
    """The row of the one clustered document whose id begins like that; else UsageError."""
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
    """What is known about a document that is in no cluster, from the decisions of `filtered`."""
    similar: list[dict[str, Any]] = []
    for manifest in filtered_manifests(corpus):
        paths = [path_of(corpus, manifest, part, "decisions") for part in manifest.parts]
        if not paths:
            continue
        begins = pl.col("doc_id").str.starts_with(doc_id[:LEAST_PREFIX])
        rows = pl.scan_parquet(paths).filter(begins).select("doc_id", "kept", "reasons")
        found = rows.collect(engine="streaming").iter_rows(named=True)
        similar += [row | {"source": manifest.partition} for row in found]
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
    """What became of a document that is in no cluster."""
    name = f"{decision['doc_id']} ({decision['source']})"
    if decision["kept"]:
        return f"{name} is in no cluster: no other document was found to be a copy of it."
    reasons = ", ".join(decision["reasons"])
    return f"{name} was filtered out ({reasons}), so it was not compared with others."


def cluster_members(places: Mapping[Path, Place], cluster_id: str, most: int) -> pl.DataFrame:
    """Up to `most` documents of a cluster with source and part, the survivor first."""
    number = pl.col("path").replace_strict({str(path): i for i, path in enumerate(places)})
    members = scan_clusters(places).filter(cluster_id=cluster_id).with_columns(number=number)
    first = members.sort(pl.col("method").is_not_null(), "number", "row").head(most).collect()
    found = [places[Path(path)] for path in first["path"]]
    return first.with_columns(
        source=pl.Series([source for source, _ in found], dtype=pl.String),
        part=pl.Series([part for _, part in found], dtype=pl.String),
    )


def read_copies(corpus: Corpus, members: pl.DataFrame) -> Iterator[Copy]:
    """The members with what `filtered` has of them, in order."""
    manifests = {manifest.partition: manifest for manifest in filtered_manifests(corpus)}
    documents: dict[str, dict[str, Any]] = {}
    for (source, name), rows in members.group_by("source", "part", maintain_order=True):
        manifest = manifests.get(str(source))
        parts = [part for part in manifest.parts if part.name == name] if manifest else []
        for part in parts:
            assert manifest is not None
            table = pl.scan_parquet(path_of(corpus, manifest, part, "documents"))
            wanted = table.filter(pl.col("doc_id").is_in(rows["doc_id"].implode()))
            found = wanted.select("doc_id", "text", "origin", "url").collect(engine="streaming")
            documents |= {row["doc_id"]: row for row in found.iter_rows(named=True)}
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
    """The clusters with a document in one of the files: the largest first, then by id."""
    columns = ["cluster_id", "cluster_size", "kept_doc_id", "kept_source"]
    table = scan_clusters(paths).filter(pl.col("cluster_size") >= min_size).select(columns)
    order = table.unique("cluster_id").sort("cluster_size", "cluster_id", descending=[True, False])
    return order.head(most).collect(engine="streaming")


def filtered_manifests(corpus: Corpus) -> list[Manifest]:
    """The newest filtered documents of every source that has some."""
    folders = [corpus.store.partition("filtered", n) for n in corpus.settings.source_names()]
    return [manifest for folder in folders if (manifest := folder.newest_manifest())]


def path_of(corpus: Corpus, manifest: Manifest, part: PartRecord, kind: str) -> Path:
    """Where a part's file of a kind lies."""
    return corpus.store.path_of(manifest, required_file(manifest, part, kind))
