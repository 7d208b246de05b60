"""`annotations`: what models, people or other programs say of documents, by annotator."""

from __future__ import annotations

import re
from abc import abstractmethod
from functools import cached_property, partial
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    JsonValue,
    field_validator,
    model_validator,
)

from resources.settings.conditions import ColumnType, check_condition
from resources.settings.filtering.classifier import ClassifierConfig
from resources.settings.frozen_model import FrozenModel
from resources.settings.key_types import EACH_ONCE, ONE_OR_MORE, NonEmpty
from resources.settings.plug_ins import check_plug_in, with_identity
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


def check_columns(columns: dict[str, ColumnType]) -> dict[str, ColumnType]:
    """Return columns whose names may stand in a condition; ValueError for others."""
    for name in columns:
        check_identifier(name)
    return columns


Columns = Annotated[dict[str, ColumnType], AfterValidator(check_columns)]


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
    columns: Columns = Field(
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


class PlugInAnnotator(Annotations):
    """Columns that a function of another package computes of documents."""

    kind: Literal["plug_in"] = Field(description="plug_in: computed by a function of a package")
    plug_in: Annotated[str, AfterValidator(partial(check_plug_in, "annotators"))] = Field(
        description="name of an entry point of tokenmill.annotators"
    )
    columns: Columns = Field(
        min_length=1, description="columns that the function gives, each a number or a label"
    )

    @property
    def given_columns(self) -> dict[str, ColumnType]:
        """The columns that the function gives."""
        return self.columns

    def saying(self) -> dict[str, Any]:
        """Return the keys that its columns depend on, and the package with its digest."""
        return super().saying() | {"plug_in": with_identity("annotators", self.plug_in)}


class AskAnnotator(Annotations):
    """Columns that a language model gives, which is asked about each document over a network."""

    kind: Literal["ask"] = Field(description="ask: answers of a language model, over a network")
    endpoint: str = Field(
        pattern=r"^https?://[^/@?#]+[^@?#]*$",
        description="URL before /chat/completions, with OpenAI's protocol: "
        "http://127.0.0.1:8000/v1",
    )
    model: NonEmpty = Field(description="model, as the server knows it")
    prompt: NonEmpty = Field(
        description="file with what is asked of a document, which follows in a message of its own"
    )
    columns: Columns = Field(
        min_length=1, description="columns that an answer gives, each a number or a label"
    )
    pattern: str | None = Field(
        default=None,
        description="regular expression with a group for each column: 'Score: (?P<score>[0-5])'; "
        "null: answers are JSON with these columns, by a schema in the request",
    )
    parameters: dict[str, JsonValue] = Field(
        default={"temperature": 0}, description="other fields of a request, such as max_tokens"
    )
    max_chars: int = Field(
        default=6000,
        ge=100,
        le=10_000_000,
        description="characters of a document that are sent: its beginning, middle and end",
    )
    share: float = Field(
        default=1.0,
        gt=0,
        le=1,
        description="share of the documents that is asked about, by the hash of their texts",
    )
    max_requests: int | None = Field(
        default=1000, ge=0, description="most requests of a run; the next goes on. null: any number"
    )
    max_tokens: int | None = Field(
        default=None, ge=0, description="most tokens of a run, as the server counts them"
    )
    parallel: int = Field(default=8, ge=1, le=1024, description="most requests in flight")
    api_key: str = Field(
        default="OPENAI_API_KEY",
        pattern="^[A-Za-z_][A-Za-z0-9_]*$",
        description="environment variable with the key, if the server wants one",
    )

    @field_validator("pattern")
    @classmethod
    def check_pattern(cls, pattern: str | None) -> str | None:
        """Refuse what is no regular expression."""
        try:
            re.compile(pattern or "")
        except re.error as error:
            raise ValueError(f"{pattern!r} is no regular expression: {error}") from None
        return pattern

    @model_validator(mode="after")
    def check_groups(self) -> Self:
        """Refuse a pattern that lacks the group of a column."""
        groups = re.compile(self.pattern).groupindex if self.pattern else self.columns
        if lacking := sorted(self.columns.keys() - groups.keys()):
            raise ValueError(
                f"`pattern` has no group (?P<{lacking[0]}>...) for the column {lacking[0]!r}"
            )
        return self

    @property
    def given_columns(self) -> dict[str, ColumnType]:
        """The columns that an answer gives."""
        return self.columns

    def saying(self) -> dict[str, Any]:
        """Return the keys that an answer depends on, besides the prompt."""
        keys = {"kind", "name", "model", "columns", "pattern", "parameters", "max_chars"}
        return self.model_dump(mode="json", include=keys)


Teacher = FileAnnotator | AskAnnotator  # what a classifier may learn from


class ClassifyAnnotator(Annotations):
    """A score by a classifier that learns from what another annotator says of some documents."""

    kind: Literal["classify"] = Field(
        description="classify: score of a classifier that learns from another annotator's answers"
    )
    by: NonEmpty = Field(
        description="name of the annotator whose answers it learns from, of kind file or ask"
    )
    good: NonEmpty = Field(
        description="condition on the columns of that annotator, in SQL, of good examples: "
        "score >= 3. Other documents with an answer are bad ones"
    )
    held_out: float = Field(
        default=0.1,
        gt=0,
        lt=1,
        description="share of the examples that are held out of training to measure the classifier",
    )

    @property
    def given_columns(self) -> dict[str, ColumnType]:
        """The probability of being good, 0 to 1, if good and bad were equally common."""
        return {"score": "number"}

    @property
    def training(self) -> ClassifierConfig:
        """The training of the classifier, whose labels are another annotator's."""
        return ClassifierConfig(labelled=self.by, held_out=self.held_out)


def _with_kind(value: object) -> object:
    """Return an annotator with its kind, file unless it names one."""
    return {"kind": "file"} | value if isinstance(value, dict) else value


Annotator = Annotated[
    Annotated[
        FileAnnotator | TopicsAnnotator | PlugInAnnotator | AskAnnotator | ClassifyAnnotator,
        Field(discriminator="kind"),
    ],
    BeforeValidator(_with_kind),
]
