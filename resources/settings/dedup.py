"""`dedup`: definition of duplicates, the document that stays, and repeats that are cut.

The fingerprint of a stage holds the keys that it uses and no others (`SIGNING`, `CLUSTERING`), so
that another keep policy costs no new signatures.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    ModelWrapValidatorHandler,
    model_validator,
)

from resources.settings.decontamination import DecontaminationConfig
from resources.settings.frozen_model import FrozenModel
from resources.settings.key_types import EACH_ONCE
from resources.settings.repeats import RepeatedLinesConfig, SubstringsConfig

MAX_BANDS, MAX_ROWS = 256, 64
EqualField = Annotated[str, Field(pattern=r"^(url|id|meta\..+)$")]
WithinField = Annotated[str, Field(pattern=r"^(source|lang|license|meta\..+)$")]
KeepKey = Literal["priority", "ingested", "quality", "cleanest", "longest", "newest", "oldest"]

# Keys of each preset; keys that the user wrote win. Recall and costs are in docs/dedup.md.
DEDUP_PRESETS: dict[str, dict[str, Any]] = {
    "datatrove": {
        "ngram": 5,
        "bands": 14,
        "rows": 8,
        "verify": "none",
        "clusters": "components",
        "keep": ["priority", "ingested", "longest"],
    },
    "verified": {"verify": "signature", "threshold": 0.75, "clusters": "star"},
    # 20 x 6: a pair of similarity 0.8 is missed once in 430, at the cost of 14 x 8.
    "high-recall": {
        "bands": 20,
        "rows": 6,
        "verify": "exact",
        "threshold": 0.8,
        "clusters": "star",
    },
}
SIGNING = {
    *("exact", "exact_text", "fields", "within", "near", "shingle", "ngram", "lowercase"),
    *("punctuation", "bands", "rows", "seed", "quality_field", "date_field", "decontamination"),
}
CLUSTERING = {"verify", "threshold", "clusters", "keep", "priority"}


class DedupConfig(FrozenModel):
    """Rules by which documents are duplicates, one of them stays, and repeats are cut."""

    preset: Literal["datatrove", "verified", "high-recall"] | None = Field(
        default=None, description="named set of keys; keys written beside it win"
    )
    exact: bool = Field(default=True, description="finds equal texts, by a 128-bit hash")
    exact_text: Literal["whole", "whitespace", "words"] = Field(
        default="whitespace",
        description="form of the text that must be equal. whole: as it is; whitespace: with white "
        "space folded; words: the words as they are shingled (case and punctuation as below)",
    )
    fields: Annotated[tuple[EqualField, ...], EACH_ONCE] = Field(
        default=(),
        description="fields whose equal values make two documents duplicates: url, meta.<name>, or "
        "id, the record's own, which needs the source's `id_field`; a document without a value has "
        "no such duplicate",
    )
    within: Annotated[tuple[WithinField, ...], EACH_ONCE] = Field(
        default=(),
        description="fields whose values must be equal for documents to be compared: source, lang, "
        "license or meta.<name> (a snapshot); empty: all documents are compared",
    )
    near: bool = Field(
        default=True, description="finds texts that share most shingles, by MinHash and LSH"
    )
    shingle: Literal["words", "characters"] = Field(
        default="words", description="unit of a shingle"
    )
    ngram: int = Field(default=5, ge=1, le=100, description="words or characters in a shingle")
    lowercase: bool = Field(default=True, description="folds case before shingling")
    punctuation: Literal["remove", "keep"] = Field(
        default="remove",
        description="treatment of punctuation. remove: it separates words; keep: it belongs to "
        "them",
    )
    bands: int = Field(
        default=14,
        ge=1,
        le=MAX_BANDS,
        description="LSH bands; documents that agree in any band are candidates",
    )
    rows: int = Field(
        default=8,
        ge=1,
        le=MAX_ROWS,
        description="signature values in a band, all of which must agree",
    )
    seed: int = Field(default=1, ge=0, le=2**32 - 1, description="seed of the MinHash permutations")
    verify: Literal["none", "signature", "exact"] = Field(
        default="exact",
        description="verification of candidates. none: not verified; signature: by the share of "
        "equal signature values; exact: by the Jaccard similarity of their shingles",
    )
    threshold: float = Field(
        default=0.8, ge=0, le=1, description="minimum similarity of a verified pair"
    )
    clusters: Literal["components", "star"] = Field(
        default="star",
        description="definition of a cluster. components: chains of similar pairs; star: every "
        "removed document is itself similar to the one that stays",
    )
    keep: Annotated[tuple[KeepKey, ...], EACH_ONCE] = Field(
        default=("priority", "ingested", "cleanest", "longest"),
        description="order of keys by which one document of a cluster stays: the best by the first "
        "key, ties by the next ones, at last the smallest doc_id. ingested: documents of earlier "
        "runs come first; cleanest: the copy that agrees most with the others, the less its text "
        "is damaged (case, white space, encoding, markup, boilerplate, a cut end)",
    )
    priority: tuple[str, ...] = Field(
        default=(), description="sources, the preferred first; sources that are not named come last"
    )
    quality_field: str | None = Field(
        default=None,
        description="for `keep: [quality]`: score of `filtered` (as in decisions) or meta.<name>",
    )
    date_field: Annotated[str, Field(pattern=r"^meta\..+$")] | None = Field(
        default=None,
        description="for newest and oldest: meta.<name> with either ISO 8601 dates or numbers; a "
        "number is compared as given (2024 is no year)",
    )
    memory_bytes: int = Field(
        default=2 << 30,
        ge=64 << 20,
        description="memory that clustering may use; more documents take more disk, not memory",
    )
    ledger: str | None = Field(
        default=None,
        description="file of `corpus duplicates ledger` with the ingest order of another build, "
        "for parts that are new to this store; parts in the store keep their order",
    )
    lines: RepeatedLinesConfig | None = Field(
        default=None, description="cuts lines that a source repeats (boilerplate, licence headers)"
    )
    paragraphs: RepeatedLinesConfig | None = Field(
        default=None, description="cuts paragraphs that a source repeats"
    )
    substrings: SubstringsConfig | None = Field(
        default=None,
        description="cuts long runs of words that occur elsewhere as well, in other documents or "
        "in the same one",
    )
    decontamination: DecontaminationConfig | None = Field(
        default=None, description="finds documents that overlap with evaluation sets"
    )

    @model_validator(mode="wrap")
    @classmethod
    def lay_preset(cls, given: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        """Lay the keys given over those of the preset."""
        if not isinstance(given, Mapping):
            return validate(given)
        preset = given.get("preset")
        named = DEDUP_PRESETS.get(preset if isinstance(preset, str) else "", {})
        config = validate({**named, **given})
        # A dumped config has all keys: a default in it is no wish of the user's.
        default = named.get("threshold", DedupConfig.model_fields["threshold"].default)
        is_wished = "verify" not in given or config.threshold != default
        if config.verify == "none" and "threshold" in given and is_wished:
            raise ValueError(
                f"threshold {config.threshold} does nothing without verify: set verify, or remove "
                "threshold"
            )
        return config

    @model_validator(mode="after")
    def check_together(self) -> Self:
        """Refuse keys without the keys that they need, and repeated or contradictory ones."""
        if "quality" in self.keep and self.quality_field is None:
            raise ValueError("keep: quality needs quality_field: name a score or meta.<name>")
        if {"newest", "oldest"} & set(self.keep) and self.date_field is None:
            raise ValueError("keep: newest and oldest need date_field: name meta.<name>")
        if {"newest", "oldest"} <= set(self.keep):
            raise ValueError(f"keep: either newest or oldest, got {list(self.keep)}")
        return self

    @property
    def num_values(self) -> int:
        """Return the number of values in a signature: bands x rows."""
        return self.bands * self.rows

    @property
    def compares_shingles(self) -> bool:
        """True if candidates are verified by their shingles."""
        return self.near and self.verify == "exact"

    @property
    def reads_candidates(self) -> bool:
        """True if the texts of candidates are read again to decide clusters."""
        return self.compares_shingles or "cleanest" in self.keep

    def signing(self) -> dict[str, Any]:
        """Return the keys that signatures depend on, for fingerprints."""
        return self.model_dump(mode="json", include=SIGNING)

    def clustering(self) -> dict[str, Any]:
        """Return the keys that clusters depend on besides signatures, for fingerprints."""
        return self.model_dump(mode="json", include=CLUSTERING)
