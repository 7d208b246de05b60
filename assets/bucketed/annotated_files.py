"""What annotators say of the documents of a source, for its classes and for what is left out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

import polars as pl

from assets.annotated.annotated_records import ANNOTATED, ANNOTATIONS, DROPPED
from resources.corpus import Corpus
from resources.errors import UsageError
from resources.made_under import check_made_under
from resources.settings.annotations import Annotator
from resources.settings.conditions import check_rows, is_met
from resources.store.published import PublishedFile
from resources.store.records import required_file
from resources.store.store import StoreError


@dataclass(frozen=True)
class Annotations:
    """What an annotator says of the documents of some parts: files, and their digests.

    `drop` is its condition, "" for none.
    """

    name: str
    drop: str
    files: tuple[PublishedFile, ...]
    digests: tuple[str, ...]

    @property
    def reason(self) -> str:
        """Why documents are left out that the annotator drops."""
        return f"{DROPPED}{self.name}"

    def labels(self, column: str) -> pl.DataFrame:
        """Return doc_id String and label String, as `label_name` has it, of the documents."""
        tables = [pl.read_parquet(file.checked()) for file in self.files]
        table = pl.concat(table.select("doc_id", given=column) for table in tables)
        given = table["given"].drop_nulls().unique()
        names = pl.Series([label_name(label) for label in given], dtype=pl.String)
        return table.select("doc_id", label=pl.col("given").replace(given, names))

    def dropped(self) -> pl.DataFrame:
        """Return doc_id String and is_dropped Boolean of the documents."""
        tables = [pl.read_parquet(file.checked()) for file in self.files]
        return pl.concat(
            table.select("doc_id", is_dropped=is_met(table, self.drop)) for table in tables
        )


def label_name(label: str) -> str:
    """Return a label as names of classes have it: in letters and digits of ASCII, _ and -.

    Others end with 12 digits of their SHA-256, and so do labels that look as if they did: no two
    labels have one name.
    """
    if re.fullmatch(r"[A-Za-z0-9_-]{1,64}", label) and not re.search("(^|-)[0-9a-f]{12}$", label):
        return label
    digits = sha256(label.encode()).hexdigest()[:12]
    return "-".join([*re.findall("[A-Za-z0-9_]+", label[:40]), digits])


@dataclass(frozen=True)
class SourceAnnotations:
    """The annotators that classes are by, those that drop documents, and what they say.

    `parts`: the file of each annotator and part, and its digest.
    """

    source: str
    scoring: Annotator | None = None
    labelling: Annotator | None = None
    dropping: tuple[Annotator, ...] = ()
    parts: Mapping[tuple[str, str], tuple[PublishedFile, str]] | None = None

    def of_parts(self, annotator: Annotator, names: Sequence[str]) -> Annotations:
        """Return what an annotator says of some parts; StoreError if one is not annotated."""
        known, wanted = self.parts or {}, [(annotator.name, name) for name in names]
        if missing := [part for part in wanted if part not in known]:
            raise StoreError(
                f"annotated[{self.source}] has nothing of {missing[0][0]!r} on the part "
                f"{missing[0][1]!r} of tokenized[{self.source}]. Materialize `deduped`, "
                f"`tokenized` and `annotated` for {self.source!r} first."
            )
        files, digests = zip(*(known[part] for part in wanted), strict=True)
        return Annotations(annotator.name, annotator.drop or "", files, digests)


def source_annotations(corpus: Corpus, source: str) -> SourceAnnotations:
    """Return what annotators say of the documents of a source, if sequences depend on it.

    Raises StoreError if it was made under another config, UsageError for a condition that is not
    of one document alone.
    """
    classes, settings = corpus.settings.buckets.classes, corpus.settings
    used = {each.name: each for each in settings.annotations if each.annotates(source)}
    scoring = settings.annotator_of(classes.score) if classes and classes.limits else None
    scoring = scoring if scoring and scoring.name in used else None
    labelling = settings.annotator_of(classes.label, "label") if classes else None
    labelling = labelling if labelling and labelling.name in used else None
    dropping = tuple(each for each in used.values() if each.drop)
    for each in dropping:
        try:
            check_rows(each.drop or "", each.given_columns)
        except ValueError as error:
            raise UsageError(f"annotations: annotator {each.name!r}: drop: {error}") from None
    if scoring is None and labelling is None and not dropping:
        return SourceAnnotations(source)
    manifest = corpus.store.newest(ANNOTATED, source)
    config = {name: each.saying() for name, each in used.items()}
    check_made_under(manifest, config=config, section="annotations")
    files = {
        (part.stats.numbers.annotator, part.stats.numbers.part): required_file(
            manifest, part, ANNOTATIONS
        )
        for part in manifest.parts
    }
    parts = {key: (corpus.store.file_of(manifest, f), f.sha256) for key, f in files.items()}
    return SourceAnnotations(source, scoring, labelling, dropping, parts)
