"""`annotations`: what models, people or other programs say of documents, by annotator."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from resources.settings.conditions import ColumnType, check_condition
from resources.settings.key_types import EACH_ONCE, ONE_OR_MORE, NonEmpty
from resources.settings.sources import InputPlaces

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
RESERVED = ("doc_id", "key", "is_known", "meta")
DOCUMENT_KEYS = ("doc_id", "id", "url")
READING = {"where", "format", "key", "columns"}  # what the tables of an annotator's files depend on
JOINING = {"name", "by", "columns"}


def check_identifier(name: str) -> str:
    """Return a name that may stand before a dot, and in a condition; ValueError for another."""
    if not IDENTIFIER.fullmatch(name) or name in RESERVED:
        raise ValueError(
            f"{name!r} must begin with a letter, have letters, digits and _ only, and be none of "
            f"{', '.join(RESERVED)}"
        )
    return name


class Annotator(InputPlaces):
    """Columns of documents that come from files: scores and labels that were made elsewhere."""

    name: str = Field(description="name of the annotator: `edu` in `edu.score`")
    kind: Literal["file"] = Field(
        default="file", description="way to annotate. file: scores and labels made elsewhere"
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
    sources: Annotated[tuple[NonEmpty, ...], ONE_OR_MORE, EACH_ONCE] | None = Field(
        default=None, min_length=1, description="sources that are annotated; null: all"
    )
    min_matched: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="smallest share of a source's documents that a record must name. A source with "
        "less fails, and keeps its last good state",
    )
    drop: NonEmpty | None = Field(
        default=None,
        description="condition on the columns, in SQL, of documents that are left out of training: "
        "score < 2. A document without a value stays",
    )

    @field_validator("name")
    @classmethod
    def check_name(cls, name: str) -> str:
        """Refuse a name with a dot, which stands between annotator and column."""
        return check_identifier(name)

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

    @model_validator(mode="after")
    def check_drop(self) -> Self:
        """Refuse what is no SQL, or on other columns."""
        if self.drop is not None:
            check_condition(self.drop, self.columns)
        return self

    @cached_property
    def key_field(self) -> str:
        """The field of the file's records that names the document."""
        return self.key or self.by.rpartition(".")[2]

    def annotates(self, source: str) -> bool:
        """Return whether the documents of a source are annotated."""
        return self.sources is None or source in self.sources

    def reading(self) -> dict[str, Any]:
        """Return the keys that the tables of its files depend on, besides the files."""
        return self.model_dump(mode="json", include=READING) | {"key": self.key_field}

    def joining(self) -> dict[str, Any]:
        """Return the keys that the annotations of a part depend on, besides those tables."""
        return self.model_dump(mode="json", include=JOINING)
