"""`dedup.decontamination`: evaluation sets, and the comparison of documents with them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self

import yaml
from pydantic import BeforeValidator, Field, model_validator

from resources.settings.frozen_model import FrozenModel
from resources.settings.key_types import NAME, ONE_OR_MORE, NonEmpty, each_once
from resources.settings.sources import InputPlaces

INDEXING = {"sets", "ngram", "min_item_words"}


def _as_ngram(value: object) -> object:
    match = re.fullmatch(r"(\d{1,3})-(words|characters)", value) if isinstance(value, str) else None
    if match is not None:
        return {"unit": match[2], "size": int(match[1])}
    if isinstance(value, str):
        raise ValueError(f"{value!r} is not of the form 13-words or 50-characters")
    return value


class EvaluationSet(InputPlaces):
    """One evaluation set: its files, and the fields of a record that make an item."""

    name: str = Field(pattern=NAME, description="name of the set, in reports")
    fields: Annotated[tuple[NonEmpty, ...], ONE_OR_MORE] = Field(
        default=("text",),
        min_length=1,
        description="fields that make the item's text, joined in this order, by dotted path: a "
        "text first, then texts, numbers or lists of them; in .txt files an item (`text`) ends at "
        "a blank line",
    )
    id_field: NonEmpty | None = Field(
        default=None, description="field that names the item; null: its file and position"
    )


class KnownSet(NamedTuple):
    """An evaluation set that can be named only: its keys, and the licence that its card states."""

    keys: dict[str, Any]
    license: str


@cache
def known_sets() -> dict[str, KnownSet]:
    """Return the evaluation sets that can be named only, by name."""
    listed = yaml.safe_load(Path(__file__).with_name("evaluation_sets.yaml").read_text("utf-8"))
    return {
        name: KnownSet(license=keys.pop("license"), keys={"name": name, **keys})
        for name, keys in listed.items()
    }


def _as_set(value: object) -> object:
    """Return the keys of a known set that is named only."""
    if not isinstance(value, str):
        return value
    if value not in known_sets():
        raise ValueError(
            f"{value!r} is none of the known evaluation sets, {', '.join(known_sets())}; of others "
            "give name, where and fields"
        )
    return known_sets()[value].keys


MOST_UNITS = 200


Unit = Literal["words", "characters"]


class Ngram(FrozenModel):
    """Unit and length of the runs that documents and items are compared by."""

    unit: Unit = Field(default="words", description="unit of the n-gram")
    size: int = Field(
        default=5, ge=1, le=MOST_UNITS, description="words or characters in an n-gram"
    )


class DecontaminationConfig(FrozenModel):
    """Evaluation sets that the corpus must not contain, and the treatment of documents that do."""

    sets: tuple[
        Annotated[
            EvaluationSet, BeforeValidator(_as_set, json_schema_input_type=EvaluationSet | str)
        ],
        ...,
    ] = Field(
        min_length=1,
        description="the evaluation sets; of a known one (`corpus contamination sets`) the name "
        "is enough",
    )
    ngram: Annotated[Ngram, BeforeValidator(_as_ngram, json_schema_input_type=Ngram | str)] = Field(
        default=Ngram(),
        description="n-gram: 5-words, 13-words, 50-characters, ..., or {unit, size}",
    )
    min_item_words: int = Field(
        default=8,
        ge=1,
        description="minimum number of words of an item, and of its words (or characters) in a "
        "document; an item with fewer is left out, and counted in the report, one shorter than an "
        "n-gram is searched for as a whole",
    )
    min_hits: int = Field(
        default=1,
        ge=1,
        description="distinct n-grams of one item that make a document contaminated; all of them "
        "if the item has fewer",
    )
    min_share: float = Field(
        default=0.4,
        ge=0,
        le=1,
        description="minimum share of the item's words (or characters) that a stretch of the "
        "document, twice as long as the item, has in n-grams; in addition to min_hits. A document "
        "with less is partly like the item: it is reported, and stays",
    )
    action: Literal["reject", "tag"] = Field(
        default="reject",
        description="treatment of contaminated documents. reject: they are rejected; tag: column "
        "`contamination` names the sets",
    )

    @model_validator(mode="after")
    def check_names(self) -> Self:
        """Refuse sets of the same name, since hits name their set."""
        each_once(tuple(evaluation_set.name for evaluation_set in self.sets))
        return self

    def indexing(self) -> dict[str, Any]:
        """Return the keys that the index depends on besides the files, for fingerprints."""
        return self.model_dump(mode="json", include=INDEXING)
