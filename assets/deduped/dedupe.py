"""Stage `deduped`: documents without copies, evaluation items and repeats.

Purpose: what other stages found about the documents of one part is applied here, in this order:
documents that another stands for go, contaminated ones go or are tagged, spans, then paragraphs,
then lines are cut, and documents that keep too little of their text go. Price: 50 ms per 100,000
documents for the copies; cutting and comparing as the steps themselves say.
"""

from dataclasses import dataclass, field

import polars as pl

from assets.deduped.clusters.duplicates import drop_duplicates
from assets.deduped.decontamination.contaminated_documents import tag_documents
from assets.deduped.repeats.repeated_lines import Unit, cut_repeated
from assets.deduped.repeats.substrings import cut_spans
from resources.settings.dedup import DedupConfig
from resources.settings.repeats import RepeatedLinesConfig

CHANGES_SCHEMA = {
    "doc_id": pl.String,
    "num_cut": pl.UInt32,
    "cut_chars": pl.UInt32,
    "kept_share": pl.Float64,
    "is_rejected": pl.Boolean,
    "step": pl.String,
}


@dataclass(frozen=True)
class Findings:
    """What other stages found for one part; None: that step is not configured.

    clusters as in the stage `duplicates`; hits as of `find_contamination`, and is_contaminated;
    spans: doc_id, start, stop (bytes); repeated: unit, text.
    """

    clusters: pl.DataFrame
    hits: pl.DataFrame | None = None
    spans: pl.DataFrame | None = None
    repeated: pl.DataFrame | None = None


@dataclass
class Deduped:
    """Documents on their way through the steps, and what was done to them."""

    documents: pl.DataFrame
    num_duplicates: int
    rejected: dict[str, int] = field(default_factory=dict)
    changes: list[pl.DataFrame] = field(default_factory=list)
    hits: pl.DataFrame | None = None

    def reject(self, reason: str, doc_ids: pl.Series) -> None:
        """Take documents out, counted under a reason."""
        gone = self.documents["doc_id"].is_in(doc_ids.implode())
        self.documents = self.documents.filter(~gone)
        if gone.any():
            self.rejected[reason] = int(gone.sum())

    def cut(self, step: str, outcome: tuple[pl.DataFrame, pl.DataFrame]) -> None:
        """Go on with what a step left, without the documents of which it left too little."""
        self.documents, changes = outcome
        self.changes.append(changes.with_columns(step=pl.lit(step)).select(list(CHANGES_SCHEMA)))
        self.reject(step, changes.filter("is_rejected")["doc_id"])

    def all_changes(self) -> pl.DataFrame:
        """A row per document and step that cut something: the columns `CHANGES_SCHEMA`."""
        return pl.concat([pl.DataFrame(schema=CHANGES_SCHEMA), *self.changes])


def dedupe(documents: pl.DataFrame, found: Findings, config: DedupConfig) -> Deduped:
    """Apply to documents what was found; see the module for the order.

    A rejected document is counted once: as `contaminated`, `substrings`, `paragraphs` or `lines`.
    """
    kept = drop_duplicates(documents, found.clusters, config.rehydration)
    done = Deduped(kept, documents.height - kept.height)
    if found.hits is not None and config.decontamination is not None:
        done.hits = found.hits.join(kept, on="doc_id", how="semi", maintain_order="left")
        if config.decontamination.action == "tag":
            done.documents = tag_documents(kept, done.hits, config.decontamination)
        else:
            done.reject("contaminated", done.hits.filter("is_contaminated")["doc_id"])
    if found.spans is not None and config.substrings is not None:
        done.cut("substrings", cut_spans(done.documents, found.spans, config.substrings))
    if found.repeated is not None:
        units: dict[Unit, RepeatedLinesConfig | None] = {
            "paragraphs": config.paragraphs,
            "lines": config.lines,
        }
        for unit, settings in units.items():
            if settings is not None:
                texts = found.repeated.filter(pl.col("unit") == unit)
                done.cut(unit, cut_repeated(done.documents, texts, settings, unit))
    return done
