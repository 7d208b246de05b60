"""A corpus in a notebook: what a build kept and removed, as Polars frames, and its steps on frames.

`import tokenmill` has the names of this module that are documented. The methods read the newest
published files and write nothing; large tables are lazy. The functions take a frame with a column
`text`, and settings as pipeline.yaml has them. docs/notebook.md shows both, examples/notebook.ipynb
is one to run.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import polars as pl
from pydantic import BaseModel, ValidationError

from assets.deduped.deduped_records import DEDUPED
from assets.deduped.document_files import KeptDocuments, kept_documents
from assets.filtered.filtered_records import FILTERED
from assets.stages import used_stages
from assets.tokenized.tokenized_records import TOKENIZER
from pipeline_defs.commands.look.duplicates import cluster_places, scan_clusters
from pipeline_defs.commands.published_documents import path_of, raw_manifest
from pipeline_defs.commands.rules.sample import rule_in_force
from pipeline_defs.corpus_tables import REJECTED, TABLES, newest_tables
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError, check_name
from resources.settings.dedup import DedupConfig
from resources.settings.faults import dotted, faults_of
from resources.settings.filtering.filters import FilterConfig
from resources.settings.tokenizer import TokenizerConfig
from resources.store.records import Manifest
from resources.store.store import StoreError
from resources.tasks import GLOBAL

MOST_SHOWN = 6  # names of sources
Model = TypeVar("Model", bound=BaseModel)
ROW_NAME = pl.int_range(pl.len()).cast(pl.String)
COLUMNS = (
    *("source", "stage", "rows_in", "rows_kept", "rejected", "duplicates", "quarantined"),
    *("tokens", "bytes"),
)


@dataclass(frozen=True)
class OpenCorpus:
    """A built corpus to look at."""

    corpus: Corpus

    def __repr__(self) -> str:
        """Return what the corpus is, in a few lines."""
        sources = self.sources
        first = ", ".join(sources[:MOST_SHOWN]) + (", ..." if len(sources) > MOST_SHOWN else "")
        return "\n".join(
            [
                f"Corpus of {self.corpus.config}",
                f"store: {self.corpus.store}",
                f"sources ({len(sources)}): {first}",
                f"built: {', '.join(self.stages) or 'nothing'}",
                f"tables: {', '.join(TABLES)}",
            ]
        )

    @property
    def sources(self) -> list[str]:
        """The names of the sources."""
        return self.corpus.settings.source_names()

    @property
    def stages(self) -> list[str]:
        """The names of the stages that are built, in the order of the data flow."""
        built = {stage for stage, _ in newest_tables(self.corpus).manifests}
        return [name for name in used_stages(self.corpus.settings) if name in built]

    def documents(self, source: str) -> pl.LazyFrame:
        """Return the documents of a source that are kept, after deduplication."""
        manifest = self._newest(DEDUPED.name, source)
        store = self.corpus.store
        return pl.concat(scan_kept(kept_documents(store, manifest, p)) for p in manifest.parts)

    def removed(self, source: str, rule: str | None = None) -> pl.LazyFrame:
        """Return the documents of a source that filters removed, by a rule if one is named.

        `reasons` has all rules that a document breaks; scores follow the columns of the document.
        UsageError for a rule that was not in force.
        """
        manifest = self._newest(FILTERED.name, source)
        raw = raw_manifest(self.corpus, manifest)
        raw_parts = {part.name: part for part in raw.parts}
        is_removed = ~pl.col("kept")
        if rule is not None:
            in_force = rule_in_force(self.corpus, manifest, rule)
            is_removed &= pl.col("reasons").list.contains(in_force.name)
        frames = []
        for part in manifest.parts:
            decisions = pl.scan_parquet(path_of(self.corpus, manifest, part, "decisions"))
            documents = path_of(self.corpus, raw, raw_parts[part.name], "documents")
            removed = decisions.filter(is_removed).drop("kept")
            frames.append(pl.scan_parquet(documents).join(removed, on="doc_id"))
        return pl.concat(frames)

    def clusters(self) -> pl.LazyFrame:
        """Return the documents that have copies: their cluster, and which one stays for it."""
        places = cluster_places(self.corpus)
        sources = {str(path): source for path, (source, _) in places.items()}
        source = pl.col("path").replace_strict(sources, return_dtype=pl.String)
        return scan_clusters(places).select(source.alias("source"), pl.exclude("path", "row"))

    def summary(self) -> pl.DataFrame:
        """Return a row for each source and stage: documents, reasons, tokens and bytes."""
        stages = self.table("stages").filter(pl.col("source").is_not_null()).collect()
        return stages.select(*COLUMNS).with_columns(rejected=REJECTED)

    def table(self, name: str) -> pl.LazyFrame:
        """Return a table of `pipeline_defs.corpus_tables.TABLES`, such as "fates" or "mix"."""
        check_name("table", name, TABLES)
        return newest_tables(self.corpus)[name].lazy()

    def tokenizer(self) -> Path:
        """Return the path of the corpus's tokenizer.json."""
        manifest = self.corpus.store.newest(TOKENIZER.name, GLOBAL)
        return path_of(self.corpus, manifest, manifest.parts[0], "tokenizer")

    def _newest(self, stage: str, source: str) -> Manifest:
        check_name("source", source, self.corpus.settings.source_names())
        manifest = self.corpus.store.newest(stage, source)
        if not manifest.parts:
            raise StoreError(f"{stage}[{source}] has no documents: see `corpus summary`.")
        return manifest


def open_corpus(path: str | Path = "pipeline.yaml") -> OpenCorpus:
    """Open the corpus of a pipeline.yaml, or of the folder that has one.

    >>> corpus = open_corpus("pipeline.yaml")
    >>> corpus.documents("prose").select("doc_id", "text").collect().height
    39
    >>> corpus.removed("prose", rule="length.too_short").select("text").collect().to_series()[0]
    'Hi.'
    >>> corpus.clusters().select("source", "cluster_size", "kept_source").collect().rows()
    [('prose', 2, 'notes'), ('notes', 2, 'notes')]
    >>> columns = "source", "rows_in", "rows_kept", "rejected"
    >>> corpus.summary().filter(stage="filtered").select(columns).rows()
    [('prose', 41, 40, 1), ('notes', 41, 41, 0)]
    >>> rejected = corpus.table("fates").filter(fate="rejected").collect()
    >>> rejected.select("source", "reason", "documents").rows()
    [('prose', 'length.too_short', 1)]
    """
    given = Path(path).absolute()
    return OpenCorpus(load_corpus(given / "pipeline.yaml" if given.is_dir() else given))


def filter_documents(documents: pl.DataFrame, **filters: Any) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the documents that stay, and a decision with reasons and scores for each of all.

    `filters` are those of pipeline.yaml; files that they name are looked for in the working folder,
    and the classifier of a corpus is not used.

    >>> documents = pl.DataFrame({"text": ["Write to ann@example.org.", "Hi."]})
    >>> rules = {"length": {"min_chars": 5}}
    >>> kept, decisions = filter_documents(documents, rules=rules, pii={})
    >>> kept["text"].to_list()
    ['Write to <EMAIL>.']
    >>> decisions["reasons"].to_list()
    [[], ['length.too_short']]
    """
    from assets.filtered.filter_documents import filter_documents as filter_frame
    from assets.filtered.filter_files import load_filter_data

    config = checked(FilterConfig, filters)
    return filter_frame(with_columns(documents), config, load_filter_data(config, Path()))


def find_duplicates(documents: pl.DataFrame, **dedup: Any) -> pl.DataFrame:
    """Return a row for each document that has copies: its cluster, and which document stays.

    `dedup` is that of pipeline.yaml.

    >>> text = "The river rose in April, and the old bridge was closed for a week. "
    >>> documents = pl.DataFrame({"doc_id": ["a", "b", "c"], "text": [text, "Other.", text]})
    >>> find_duplicates(documents).select("doc_id", "kept_doc_id", "method").rows()
    [('a', 'a', None), ('c', 'a', 'exact')]
    """
    from assets.deduped.duplicates_asset import cluster

    return cluster(with_columns(documents), checked(DedupConfig, dedup))


def tokenize(
    documents: pl.DataFrame, tokenizer: str | Path, end_of_document: str | None = None
) -> pl.DataFrame:
    """Add `tokens`, a list of ids that ends in that of the end of a document, as builds do.

    `tokenizer` is a tokenizer.json, such as `OpenCorpus.tokenizer` names; null has no tokens.

    >>> documents = pl.DataFrame({"text": ["The river rose in April.", ""]})
    >>> tokenizer = open_corpus("pipeline.yaml").tokenizer()
    >>> tokenize(documents, tokenizer)["tokens"].list.len().to_list()
    [19, None]
    """
    from assets.tokenized.encode_documents import TokenFormat, encode_documents
    from assets.tokenized.encoders import load_encoders
    from assets.tokenized.tokenizer import read_tokenizer, vocabulary_size

    content = Path(tokenizer).read_text("utf-8")
    end = end_of_document or TokenizerConfig().end_of_document
    loaded, end_id = read_tokenizer(content, end)
    form = TokenFormat(vocabulary_size(loaded), end_id)
    numbered = documents.select("text", doc_id=ROW_NAME)
    encoded = encode_documents(numbered, load_encoders(content), form)
    tokens = numbered.select("doc_id").join(encoded, on="doc_id", how="left", maintain_order="left")
    return documents.with_columns(tokens["tokens"])


def checked(model: type[Model], given: dict[str, Any]) -> Model:
    """Return settings as a model; UsageError names every mistake."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        faults = (f"{dotted(keys)}: {message}" for keys, message in faults_of(error, model))
        raise UsageError("; ".join(faults)) from None


def with_columns(documents: pl.DataFrame) -> pl.DataFrame:
    """Add doc_id, the number of the row, and lang, not known, to documents that have none."""
    added = {"doc_id": ROW_NAME, "lang": pl.lit(None, pl.String)}
    return documents.with_columns(
        **{name: column for name, column in added.items() if name not in documents.columns}
    )


def scan_kept(documents: KeptDocuments) -> pl.LazyFrame:
    """Scan the documents of a part that stay, in order, with their texts as they were cut."""
    table = pl.scan_parquet(documents.filtered.checked())
    if documents.kept is None:
        return table
    kept = pl.scan_parquet(documents.kept.checked()).select("row", cut="text")
    joined = table.with_row_index("row").join(kept, on="row", maintain_order="left")
    return joined.with_columns(text=pl.coalesce("cut", "text")).drop("row", "cut")
