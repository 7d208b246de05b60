"""`annotations`: what models, people or other programs say of documents, by annotator."""

from __future__ import annotations

import re
from abc import abstractmethod
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from resources.settings.conditions import ColumnType, check_condition
from resources.settings.frozen_model import FrozenModel
from resources.settings.key_types import EACH_ONCE, ONE_OR_MORE, NonEmpty
from resources.settings.sources import InputPlaces

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
RESERVED = ("doc_id", "key", "is_known", "meta")
DOCUMENT_KEYS = ("doc_id", "id", "url")
READING = {"kind", "where", "format", "key", "columns"}  # what tables of files depend on
USES = {"sources", "min_matched", "drop"}  # what says nothing of the documents
MOST_TOPICS = 200


def check_identifier(name: str) -> str:
    """Return a name that may stand before a dot, and in a condition; ValueError for another."""
    if not IDENTIFIER.fullmatch(name) or name in RESERVED:
        raise ValueError(
            f"{name!r} must begin with a letter, have letters, digits and _ only, and be none of "
            f"{', '.join(RESERVED)}"
        )
    return name


class Annotations(FrozenModel):
    """What every annotator has."""

    name: str = Field(description="name of the annotator: `edu` in `edu.score`")
    sources: Annotated[tuple[NonEmpty, ...], ONE_OR_MORE, EACH_ONCE] | None = Field(
        default=None, min_length=1, description="sources that are annotated; null: all"
    )
    drop: NonEmpty | None = Field(
        default=None,
        description="condition on the columns, in SQL, of documents that are left out of training: "
        "score < 2. A document without a value stays",
    )

    @property
    @abstractmethod
    def given_columns(self) -> dict[str, ColumnType]:
        """The columns of documents that the annotator gives, each a number or a label."""

    @field_validator("name")
    @classmethod
    def check_name(cls, name: str) -> str:
        """Refuse a name with a dot, which stands between annotator and column."""
        return check_identifier(name)

    @model_validator(mode="after")
    def check_drop(self) -> Self:
        """Refuse a condition that is none, or that is not of one document alone."""
        if self.drop is not None:
            check_condition(self.drop, self.given_columns)
        return self

    def annotates(self, source: str) -> bool:
        """Return whether the documents of a source are annotated."""
        return self.sources is None or source in self.sources

    def saying(self) -> dict[str, Any]:
        """Return the keys that what it says of a document depends on, besides files and models."""
        return self.model_dump(mode="json", exclude=USES)


class FileAnnotator(Annotations, InputPlaces):
    """Columns of documents that come from files: scores and labels that were made elsewhere."""

    kind: Literal["file"] = Field(
        default="file", description="file: scores and labels made elsewhere, by files of `where`"
    )
    by: str = Field(
        default="doc_id",
        description="what a record names its document by: doc_id, id (the record's own), url, or "
        "meta.<name>",
    )
    key: NonEmpty | None = Field(
        default=None,
        description="field of the file's records with it, a text; null: the last part of `by`",
    )
    columns: dict[str, ColumnType] = Field(
        min_length=1,
        description="fields of the file's records that are taken, each a number or a label",
    )
    min_matched: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="smallest share of a source's documents that a record must name. A source with "
        "less fails, and keeps its last good state",
    )

    @field_validator("columns")
    @classmethod
    def check_columns(cls, columns: dict[str, ColumnType]) -> dict[str, ColumnType]:
        """Refuse names that cannot stand in a condition."""
        for name in columns:
            check_identifier(name)
        return columns

    @field_validator("by")
    @classmethod
    def check_by(cls, by: str) -> str:
        """Refuse what is no key of a document."""
        if by not in DOCUMENT_KEYS and not re.fullmatch(r"meta\..+", by):
            known = ", ".join(DOCUMENT_KEYS)
            raise ValueError(f"{by!r} names no document; it must be {known} or meta.<name>")
        return by

    @cached_property
    def key_field(self) -> str:
        """The field of the file's records that names the document."""
        return self.key or self.by.rpartition(".")[2]

    @property
    def given_columns(self) -> dict[str, ColumnType]:
        """The columns that are taken."""
        return self.columns

    def reading(self) -> dict[str, Any]:
        """Return the keys that the tables of its files depend on, besides the files."""
        return self.model_dump(mode="json", include=READING) | {"key": self.key_field}

    def saying(self) -> dict[str, Any]:
        """Return the keys that annotations depend on, besides those tables."""
        return self.model_dump(mode="json", include={"kind", "name", "by", "columns"})


class TopicsAnnotator(Annotations):
    """Topics that are found in the corpus: clusters of documents with words in common."""

    kind: Literal["topics"] = Field(description="topics: clusters found in a sample, then frozen")
    most_topics: int = Field(
        default=40, ge=2, le=MOST_TOPICS, description="greatest number of topics"
    )
    least_share: float = Field(
        default=0.01,
        gt=0,
        lt=0.5,
        description="smallest share of the sample in a topic; smaller ones join their nearest",
    )
    seed: int = Field(default=0, ge=0, description="seed of the first centres")

    @property
    def given_columns(self) -> dict[str, ColumnType]:
        """The topic's name, and the distance to its centre, from 0 (the same words) to 2."""
        return {"topic": "label", "distance": "number"}


def _with_kind(value: object) -> object:
    """Return an annotator with its kind, file unless it names one."""
    return {"kind": "file"} | value if isinstance(value, dict) else value


Annotator = Annotated[
    Annotated[FileAnnotator | TopicsAnnotator, Field(discriminator="kind")],
    BeforeValidator(_with_kind),
]
