"""`corpus duplicates show` and `list`: clusters, and how copies differ from what stayed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import polars as pl
from cyclopts import Parameter

from assets.deduped.clusters.duplicates import CLUSTER_SCHEMA
from corpus_loader.places.stage_names import DUPLICATES, FILTERED
from pipeline_defs.commands.answers import answer
from pipeline_defs.commands.look.word_diff import diff_texts, fold
from pipeline_defs.commands.marked_texts import Segment, ShownDocument, show_documents
from pipeline_defs.commands.origins import origin_text
from pipeline_defs.commands.published_documents import (
    check_prefix,
    find_decision,
    likeness,
    newest_part,
    path_of,
    several,
)
from pipeline_defs.commands.rules.filtered_files import pick_sources
from pipeline_defs.commands.terminal import Json, Positive, one_line
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError
from resources.store.store import StoreError
from resources.tasks import GLOBAL

MOST = 20
CHANGED_CHARS = 2000  # shown of a stretch that only one text has
EXCERPT_CHARS = 500  # of a text that several documents have
GONE = "{} text is not among the newest filtered documents: materialize `duplicates` again."
Place = tuple[str, str]  # source and part
MOST_SHOWN = Annotated[Positive, Parameter(name="--most", help="Show at most so many.")]


@dataclass(frozen=True)
class Copy:
    """Document of a cluster; the survivor has no method, and a lost document has no text."""

    doc_id: str
    source: str
    similarity: float | None
    method: str | None
    origin: dict[str, Any] | None
    url: str | None
    text: str | None

    def lines(self) -> dict[str, str]:
        """Source, origin and likeness, one line each, safe to print."""
        place = self.origin and origin_text(self.origin["file"], self.origin["row"])
        lines = {
            "source": self.source,
            "origin": place,
            "url": self.url,
            "method": self.method,
            "similarity": self.method and likeness(self.similarity),
        }
        return {name: one_line(line) for name, line in lines.items() if line}


def show_cluster(
    document: Annotated[str, Parameter(help="A doc_id, or the beginning of one.")],
    /,
    *,
    html: Annotated[Path | None, Parameter(help="Write a page (HTML) to this file.")] = None,
    context: Annotated[Positive, Parameter(help="Equal words shown around a change.")] = 8,
    most: MOST_SHOWN = MOST,
    json: Json = False,
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
        "marks": "struck out is in the survivor only, inserted in the copy only",
    }
    copies = list(read_copies(corpus, members))
    documents = [
        ShownDocument(
            f"{copy.doc_id}: {'removed' if copy.method else 'stays'}",
            copy.lines(),
            list(segments_of(copies, copy, context)),
        )
        for copy in copies
    ]
    not_shown = member["cluster_size"] - len(copies)
    end = f"and {not_shown:,} more: --most shows more" if not_shown else ""
    show_documents("Duplicates", lines, documents, page=html, end=end, json=json)
    return 0


def segments_of(copies: Sequence[Copy], copy: Copy, context: int) -> Iterator[Segment]:
    """Yield the differences of a copy from the survivor, which is the first.

    Of the survivor itself the beginning of its text, if a copy has the same text.
    """
    survivor = copies[0]
    if copy is survivor:
        if survivor.text and any(other.text == survivor.text for other in copies[1:]):
            yield "same", survivor.text[:EXCERPT_CHARS]
            if more := len(survivor.text[EXCERPT_CHARS:]):
                yield "omitted", f"{more:,} characters"
    elif survivor.text is None or copy.text is None:
        yield "note", GONE.format("The survivor's" if survivor.text is None else "The")
    elif survivor.text == copy.text:
        yield "note", "The same text."
    else:
        yield from fold(diff_texts(survivor.text, copy.text), context, CHANGED_CHARS)


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
    columns = ("cluster_id", "kept_doc_id", "kept_source", "cluster_size")
    table = scan_clusters(paths).filter(pl.col("cluster_size") >= min_size).select(columns)
    order = table.unique("cluster_id").sort("cluster_size", "cluster_id", descending=[True, False])
    clusters = order.head(most).collect(engine="streaming")
    of_source = f" with a document of {source!r}" if source else ""
    nothing = f"No cluster of {min_size:,} or more documents{of_source}."
    answer("clusters", clusters, nothing, json=json)
    return 0


def cluster_places(corpus: Corpus) -> dict[Path, Place]:
    """Find the last run's tables of clusters by source and part; StoreError if one is missing."""
    manifest = corpus.store.newest(DUPLICATES, GLOBAL)
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
    check_prefix(doc_id)
    table = scan_clusters(paths).filter(pl.col("doc_id").str.starts_with(doc_id))
    rows = table.collect(engine="streaming").to_dicts()
    exact = [row for row in rows if row["doc_id"] == doc_id]
    if len(exact or rows) == 1:
        return (exact or rows)[0]
    if rows:
        raise UsageError(several(doc_id, [row["doc_id"] for row in rows]))
    found = find_decision(corpus, doc_id)
    own, decision = f"{found.doc_id} ({found.manifest.partition})", found.decision
    if decision.kept:
        raise UsageError(f"{own} is in no cluster: no other document was found to be a copy of it.")
    reasons = ", ".join(decision.reasons)
    raise UsageError(f"{own} was filtered out ({reasons}), so it was not compared with others.")


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
    documents: dict[str, dict[str, Any]] = {}
    for (source, name), rows in members.group_by("source", "part", maintain_order=True):
        if place := newest_part(corpus, FILTERED, str(source), str(name)):
            table = pl.scan_parquet(path_of(corpus, *place, "documents"))
            wanted = table.filter(pl.col("doc_id").is_in(rows["doc_id"].implode()))
            texts = wanted.select("doc_id", "text", "origin", "url").collect(engine="streaming")
            documents |= {row["doc_id"]: row for row in texts.iter_rows(named=True)}
    for member in members.iter_rows(named=True):
        document = documents.get(member["doc_id"], {})
        own = [member[name] for name in ("doc_id", "source", "similarity", "method")]
        yield Copy(*own, *(document.get(name) for name in ("origin", "url", "text")))
