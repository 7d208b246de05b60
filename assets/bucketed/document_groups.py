"""Groups of documents that are packed by themselves, and documents that are left out.

Documents that are held out of training are a group of their own (`VALIDATION`), and so is each of
`buckets.classes`: by a label of an annotator; by a score of `filtered` or of an annotator, a field
of `meta`, or their tokens; or by a label and a score.
Documents that an annotator drops, and those for training that are much like a held-out one, are in
no sequence.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.bucketed.annotated_files import Annotations, SourceAnnotations, source_annotations
from assets.bucketed.bucketed_records import (
    HELD_OUT,
    LEAKAGE,
    LIKE_HELD_OUT,
    SHARES,
    LeakageManifest,
)
from assets.bucketed.make_sequences import Groups
from assets.bucketed.sequences import count_tokens
from assets.deduped.minhash.meta_fields import field_values, finite, numbers_of
from assets.deduped.signed_files import clustered_documents
from resources.corpus import Corpus
from resources.settings.buckets import TOKENS, VALIDATION, DocumentClasses, class_names
from resources.source_states import parts_of_source, state_of_all
from resources.store.published import PublishedFile
from resources.store.records import Manifest
from resources.store.store import StoreError
from resources.tasks import GLOBAL

META = "meta."


@dataclass(frozen=True)
class ScoredParts:
    """Files with the scores of the documents of some parts, and the fingerprints of the parts."""

    classes: DocumentClasses
    files: tuple[PublishedFile, ...]
    fingerprints: tuple[str, ...]

    @property
    def column(self) -> str:
        """The column with the scores, or meta.<name>."""
        score = self.classes.score
        return score if score.startswith(META) else score.rpartition(".")[2]


@dataclass(frozen=True)
class Decisions:
    """Files of which documents of some parts are held out, and digests of those that are."""

    files: tuple[PublishedFile, ...]
    held_ids: tuple[str, ...]  # "" for none

    @property
    def groups(self) -> tuple[str, ...]:
        """The group of the documents that are held out, none if none are."""
        return (VALIDATION,) if any(self.held_ids) else ()


class LeftOut(NamedTuple):
    """Which documents are left out, bool [n], and the number of them by the first reason."""

    is_left_out: NDArray[np.bool_]
    reasons: Mapping[str, int]


@dataclass(frozen=True)
class WindowGroups:
    """Names of the groups of a window's documents, sorted, and what decides them.

    `by_tokens`: limits of classes by the documents' own lengths. `labelled`: what is said of their
    labels, and the column. `dropping`: what annotators that drop documents say of these.
    `like_held_out`: ids of the documents that are left out for what they share with a held-out one.
    """

    names: tuple[str, ...] = ()
    by_tokens: tuple[float, ...] = ()
    scored: ScoredParts | None = None
    labelled: tuple[Annotations, str] | None = None
    decisions: Decisions | None = None
    dropping: tuple[Annotations, ...] = ()
    like_held_out: tuple[str, ...] = ()

    @property
    def made_of(self) -> list[Any]:
        """Content that the fingerprint of the window depends on."""
        return [
            *([self.names] if self.names else []),
            *([self.scored.fingerprints] if self.scored else []),
            *([["label", self.labelled[0].digests]] if self.labelled else []),
            *([self.decisions.held_ids] if self.decisions and self.decisions.groups else []),
            *([["drop", each.name, each.drop, each.digests] for each in self.dropping]),
            *([["like", self.like_held_out]] if self.like_held_out else []),
        ]

    def of_documents(self, tables: Sequence[pl.DataFrame]) -> Groups:
        """Return the group of each document of all tables (column doc_id).

        Raises ValueError for a document that is newer than what decides its group.
        """
        groups = Groups(self.names, np.zeros(sum(table.height for table in tables), np.uint16))
        if self.decisions is not None:
            groups = hold_out(groups, tables, self.decisions)
        classes = self.classes_of(tables)
        return groups if classes is None else in_classes(groups, classes)

    def classes_of(self, tables: Sequence[pl.DataFrame]) -> pl.Series | None:
        """Return the name of each document's class, String, null for none; None without classes.

        Raises ValueError for a document that is newer than what decides its class.
        """
        marks = list[pl.Series]()
        if self.labelled is not None:
            said, column = self.labelled
            found = look_up(tables, said.labels(column).with_columns(is_known=pl.lit(True)))
            check_known(found["is_known"].null_count(), "that have labels")
            marks.append(found["label"])
        if self.by_tokens:
            lengths = count_tokens(tables).astype(np.float64)
            marks.append(numbers_in(lengths, self.by_tokens))
        elif self.scored is not None:
            limits = self.scored.classes.limits
            marks.append(numbers_in(scores_of(tables, self.scored), limits))
        if not marks:
            return None
        name = pl.concat_str(pl.lit("class"), pl.all(), separator="-")
        return pl.DataFrame(marks).select(name=name)["name"]

    def tokens_by_class(self, tables: Sequence[pl.DataFrame]) -> dict[str, int]:
        """Count the tokens of the documents of each class; ValueError as `classes_of`."""
        table = pl.DataFrame({"name": self.classes_of(tables), "tokens": count_tokens(tables)})
        counts = table.drop_nulls().group_by("name").agg(pl.sum("tokens")).sort("name")
        return dict(counts.iter_rows())

    def left_out(self, tables: Sequence[pl.DataFrame]) -> LeftOut | None:
        """Return the documents that are left out; None if none can be.

        Raises ValueError for a document that is newer than what is said of it.
        """
        if not self.like_held_out and not self.dropping:
            return None
        doc_ids = pl.concat([table["doc_id"] for table in tables])
        is_left_out, reasons = np.zeros(len(doc_ids), np.bool_), dict[str, int]()
        for each in self.dropping:
            dropped = look_up(tables, each.dropped())["is_dropped"]
            check_known(dropped.null_count(), f"that `{each.name}` annotates")
            is_new = dropped.to_numpy() & ~is_left_out
            is_left_out, reasons[each.reason] = is_left_out | is_new, int(is_new.sum())
        if self.like_held_out:
            is_like = doc_ids.is_in(list(self.like_held_out)).to_numpy()
            unknown = len(self.like_held_out) - int(is_like.sum())
            check_known(unknown, "that `leakage` leaves out")
            reasons[LIKE_HELD_OUT] = int((is_like & ~is_left_out).sum())
            is_left_out = is_left_out | is_like
        return LeftOut(is_left_out, reasons)


@dataclass(frozen=True)
class SourceGroups:
    """Groups of a source's documents: their scores, decisions and likeness, by part.

    classes    names of the classes, sorted; none if the documents have no score, or are counted
    by_tokens  limits of the classes, if they are of the documents' own lengths
    scored     the filtered documents with the scores, if they are of a score of `filtered`
    decided    file of the decisions on each part, and digest of what it holds out; None: no
               `holdout`
    like       ids of documents that are much like a held-out one, by part
    annotated  what annotators say of the documents
    """

    classes: tuple[str, ...]
    by_tokens: tuple[float, ...]
    scored: Manifest[Any, Any] | None
    decided: Mapping[str, Decisions] | None
    like: Mapping[str, list[str]]
    annotated: SourceAnnotations

    @property
    def are_counted(self) -> bool:
        """Whether there are classes whose names follow from the documents."""
        said = self.annotated.scoring or self.annotated.labelling
        return not self.classes and bool(self.by_tokens or self.scored or said)

    def of_window(self, corpus: Corpus, source: str, names: Sequence[str]) -> WindowGroups:
        """Return the groups of the documents of some parts; StoreError if a part is too new."""
        decisions = decisions_on(source, self.decided, names)
        scored = scored_parts(corpus, self.scored, names) if self.scored else None
        classes = corpus.settings.buckets.classes
        if classes and self.annotated.scoring:
            said = self.annotated.of_parts(self.annotated.scoring, names)
            scored = ScoredParts(classes, said.files, said.digests)
        labelled = None
        if classes and classes.label and self.annotated.labelling:
            said = self.annotated.of_parts(self.annotated.labelling, names)
            labelled = said, classes.label.partition(".")[2]
        return WindowGroups(
            tuple(sorted([*self.classes, *(decisions.groups if decisions else ())])),
            self.by_tokens,
            scored,
            labelled,
            decisions,
            tuple(self.annotated.of_parts(each, names) for each in self.annotated.dropping),
            tuple(doc_id for name in names for doc_id in self.like.get(name, ())),
        )


def groups_of_source(corpus: Corpus, source: str) -> SourceGroups:
    """Return what decides the groups of a source's documents."""
    classes, scored = corpus.settings.buckets.classes, scored_documents(corpus, source)
    annotated = source_annotations(corpus, source)
    by_tokens = classes.limits if classes and classes.score == TOKENS else ()
    has_score = scored or by_tokens or annotated.scoring
    names = class_names(classes.limits) if classes and has_score and not classes.is_counted else []
    if (
        classes
        and classes.label
        and not (annotated.labelling and (has_score or not classes.limits))
    ):
        by_tokens, scored = (), None
        annotated = replace(annotated, scoring=None, labelling=None)
    decided, like = decided_parts(corpus, source), left_out_documents(corpus, source)
    return SourceGroups(tuple(names), by_tokens, scored, decided, like, annotated)


def scored_documents(corpus: Corpus, source: str) -> Manifest[Any, Any] | None:
    """Return the filtered documents that the classes of a source come from.

    None if they come from none, or from an annotator, or if the filters of the source do not store
    the score.
    """
    classes = corpus.settings.buckets.classes
    if classes is None or not classes.limits or classes.score == TOKENS:
        return None
    if corpus.settings.annotator_of(classes.score):
        return None
    manifest = clustered_documents(corpus, source)
    if classes.score.startswith(META) or not manifest.parts:
        return manifest
    decisions = corpus.store.part_file(manifest, manifest.parts[0], "decisions")
    return manifest if classes.score in pl.read_parquet_schema(decisions.checked()) else None


def scored_parts(
    corpus: Corpus, manifest: Manifest[Any, Any], names: Collection[str]
) -> ScoredParts:
    """Return the scores of the documents of some parts; StoreError if one is not filtered."""
    classes = corpus.settings.buckets.classes
    assert classes is not None, "there are scored documents, so there are classes"
    parts = [part for part in manifest.parts if part.name in names]
    if missing := sorted({*names} - {part.name for part in parts}):
        raise StoreError(
            f"tokenized[{manifest.partition}] has the part {missing[0]!r}, of which there are no "
            "filtered documents any more. Materialize `deduped` and `tokenized` for "
            f"{manifest.partition!r} first."
        )
    kind = "documents" if classes.score.startswith(META) else "decisions"
    files = (corpus.store.part_file(manifest, p, kind) for p in parts)
    return ScoredParts(classes, tuple(files), tuple(part.fingerprint for part in parts))


def decided_parts(corpus: Corpus, source: str) -> Mapping[str, Decisions] | None:
    """Return which documents of each part of a source are held out; None without `holdout`."""
    if not corpus.settings.holds_out:
        return None
    manifest = state_of_all(corpus, HELD_OUT)
    of_source = parts_of_source(corpus, manifest, source)
    return {
        part.stats.numbers.part: Decisions(
            (corpus.store.part_file(manifest, part, "decisions"),), (part.stats.numbers.held_ids,)
        )
        for part in of_source
    }


def decisions_on(
    source: str, decided: Mapping[str, Decisions] | None, names: Sequence[str]
) -> Decisions | None:
    """Return the decisions on the documents of some parts, None without `holdout`.

    Raises StoreError if there are none on a part.
    """
    if decided is None:
        return None
    if missing := [name for name in names if name not in decided]:
        raise StoreError(
            f"held_out[{GLOBAL}] has no decisions on the part {missing[0]!r} of "
            f"tokenized[{source}]. Materialize `deduped` and `tokenized` for {source!r}, then "
            "`held_out`."
        )
    of_parts = [decided[name] for name in names]
    files = (file for each in of_parts for file in each.files)
    return Decisions(tuple(files), tuple(digest for each in of_parts for digest in each.held_ids))


def left_out_documents(corpus: Corpus, source: str) -> dict[str, list[str]]:
    """Return the documents of a source that are much like a held-out one, by deduped part."""
    if not corpus.settings.holds_out:
        return {}
    return left_out_in(shares_file(corpus, state_of_all(corpus, LEAKAGE))).get(source, {})


@lru_cache(maxsize=1)  # of all sources, each of which asks for its own
def left_out_in(shares: Path) -> dict[str, dict[str, list[str]]]:
    """Read the documents that are left out, by source and part."""
    table = pl.scan_parquet(shares).filter("is_left_out").sort("doc_id").collect()
    found: dict[str, dict[str, list[str]]] = {}
    for source, part, doc_id in table.select("source", "part_name", "doc_id").iter_rows():
        found.setdefault(source, {}).setdefault(part, []).append(doc_id)
    return found


def shares_file(corpus: Corpus, manifest: LeakageManifest) -> Path:
    """Return the file with the result of `leakage`, with `LEAKAGE_COLUMNS`."""
    part = next(part for part in manifest.parts if part.name == SHARES)
    return corpus.store.part_file(manifest, part, SHARES).checked()


def hold_out(groups: Groups, tables: Sequence[pl.DataFrame], decisions: Decisions) -> Groups:
    """Put the documents that are held out into their group; others stay where they are."""
    decided = pl.concat([pl.read_parquet(file.checked()) for file in decisions.files])
    is_held = look_up(tables, decided)["is_held"]
    check_known(is_held.null_count(), "that `held_out` decided on")
    if not decisions.groups:
        return groups
    number = np.uint16(1 + groups.names.index(VALIDATION))
    of_documents = np.where(is_held.to_numpy(), number, groups.of_documents)
    return replace(groups, of_documents=of_documents)


def in_classes(groups: Groups, classes: pl.Series) -> Groups:
    """Put the documents of group 0 into the groups of their classes; others stay where they are.

    Classes are String [n]; documents without one, or of one without a group, stay in group 0.
    """
    numbers = pl.int_range(1, len(groups.names) + 1, dtype=pl.UInt16, eager=True)
    of_classes = classes.replace_strict([*groups.names], numbers, default=0, return_dtype=pl.UInt16)
    is_trained = groups.of_documents == 0
    return replace(
        groups, of_documents=np.where(is_trained, of_classes.to_numpy(), groups.of_documents)
    )


def numbers_in(scores: NDArray[np.float64], limits: Sequence[float]) -> pl.Series:
    """Return the number of each class as its name has it, String; null of no score (NaN)."""
    of_classes = pl.Series([name.rpartition("-")[2] for name in class_names(limits)])
    numbers = of_classes.gather(np.searchsorted(limits, scores, side="right"))
    return pl.select(number=pl.when(pl.Series(~np.isnan(scores))).then(numbers))["number"]


def scores_of(tables: Sequence[pl.DataFrame], parts: ScoredParts) -> NDArray[np.float64]:
    """Return the score of each document of all tables, float64 [n], NaN for none."""
    scores = pl.concat([read_scores(file, parts.column) for file in parts.files])
    found = look_up(tables, scores)
    check_known(found["is_known"].null_count(), "that have scores")
    return found["score"].to_numpy()


def look_up(tables: Sequence[pl.DataFrame], known: pl.DataFrame) -> pl.DataFrame:
    """Return what is known of each document of all tables, in order; null of the others."""
    doc_ids = pl.concat([table.select("doc_id") for table in tables])
    return doc_ids.join(known, on="doc_id", how="left", maintain_order="left")


def check_known(num_unknown: int, those: str) -> None:
    """Raise ValueError for tokenized documents and documents of another stage that differ."""
    if num_unknown:
        raise ValueError(
            f"{num_unknown:,} of the tokenized documents and those {those} are not the same: the "
            "latter are newer. Materialize `deduped` and `tokenized` first."
        )


def read_scores(file: PublishedFile, score: str) -> pl.DataFrame:
    """Read doc_id, score (Float64, null where absent or not finite) and is_known of a part."""
    if score.startswith(META):
        documents = pl.read_parquet(file.checked(), columns=["doc_id", "meta"])
        values = numbers_of(field_values(documents, score))
    else:
        documents = pl.read_parquet(file.checked(), columns=["doc_id", score])
        values = finite(documents[score].cast(pl.Float64))
    return documents.select("doc_id", score=values, is_known=pl.lit(True))
