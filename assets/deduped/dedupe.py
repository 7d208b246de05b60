"""Apply to the documents of one part what other stages found.

In this order: remove duplicates; remove or tag contaminated documents; cut spans, then paragraphs,
then lines. After each cut, documents that keep too little of their text are removed.
"""

from dataclasses import dataclass, field

import polars as pl

from assets.deduped.clusters.duplicates import drop_duplicates
from assets.deduped.decontamination.contamination import tag_documents
from assets.deduped.deduped_records import CONTAMINATED
from assets.deduped.repeats.repeated_lines import CHANGE_SCHEMA, cut_repeated, units_of
from assets.deduped.repeats.substrings import cut_spans
from resources.settings.dedup import DedupConfig

CHANGES_SCHEMA = pl.Schema([*CHANGE_SCHEMA.items(), ("step", pl.String)])


@dataclass(frozen=True)
class Findings:
    """Tables of other stages for one part; None if the step is not configured.

    clusters as of the stage `duplicates`; hits as of `find_contamination`, and is_contaminated;
    spans: doc_id, start, stop (bytes); repeated: unit, text.
    """

    clusters: pl.DataFrame
    hits: pl.DataFrame | None = None
    spans: pl.DataFrame | None = None
    repeated: pl.DataFrame | None = None


@dataclass
class Deduped:
    """Documents on their way through the steps, and the record of each step."""

    documents: pl.DataFrame
    num_duplicates: int
    rejected: dict[str, int] = field(default_factory=dict)
    changes: list[pl.DataFrame] = field(default_factory=list)
    hits: pl.DataFrame | None = None

    def reject(self, reason: str, doc_ids: pl.Series) -> None:
        """Remove documents, and count them under a reason."""
        if doc_ids.is_empty():
            return
        gone = self.documents["doc_id"].is_in(doc_ids.implode())
        self.documents = self.documents.filter(~gone)
        if gone.any():
            self.rejected[reason] = int(gone.sum())

    def cut(self, step: str, outcome: tuple[pl.DataFrame, pl.DataFrame]) -> None:
        """Replace the documents by the outcome of a step; remove those that keep too little."""
        self.documents, changes = outcome
        if changes.is_empty():
            self.changes.append(pl.DataFrame(schema=CHANGES_SCHEMA))
            return
        self.changes.append(changes.with_columns(step=pl.lit(step)).select(list(CHANGES_SCHEMA)))
        self.reject(step, changes.filter("is_rejected")["doc_id"])

    def all_changes(self) -> pl.DataFrame:
        """Return a row per document and step that cut something: the columns `CHANGES_SCHEMA`."""
        return pl.concat([pl.DataFrame(schema=CHANGES_SCHEMA), *self.changes])


def dedupe(documents: pl.DataFrame, findings: Findings, config: DedupConfig) -> Deduped:
    """Apply findings to documents, in the order of the module's steps.

    A rejected document is counted once: as `contaminated`, `substrings`, `paragraphs` or `lines`.
    """
    kept = drop_duplicates(documents, findings.clusters)
    result = Deduped(kept, documents.height - kept.height)
    if findings.hits is not None and config.decontamination is not None:
        result.hits = findings.hits.join(kept, on="doc_id", how="semi", maintain_order="left")
        if config.decontamination.action == "tag":
            result.documents = tag_documents(kept, result.hits, config.decontamination)
        else:
            result.reject(CONTAMINATED, result.hits.filter("is_contaminated")["doc_id"])
    if findings.spans is not None and config.substrings is not None:
        result.cut("substrings", cut_spans(result.documents, findings.spans, config.substrings))
    if findings.repeated is not None:
        for unit, settings in reversed(units_of(config).items()):  # paragraphs, then lines
            result.cut(unit, cut_repeated(result.documents, findings.repeated, settings, unit))
    return result
