"""How deduplication is configured: when documents are copies, which stays, and what is cut.

Each stage's fingerprint holds the keys that it looks at and no other (`SIGNING`, `CLUSTERING`), so
that another keep policy costs no new signatures.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    field_validator,
    model_validator,
)

from resources.settings.decontamination import DecontaminationConfig
from resources.settings.lsh import solve_bands
from resources.settings.repeats import RepeatedLinesConfig, SubstringsConfig

MAX_BANDS, MAX_ROWS = 256, 64
EqualField = Annotated[str, Field(pattern=r"^(url|id|meta\..+)$")]
WithinField = Annotated[str, Field(pattern=r"^(source|lang|license|meta\..+)$")]
KeepKey = Literal["priority", "ingested", "quality", "longest", "newest", "oldest"]

# What a preset sets; keys that the user wrote win. docs/dedup.md has what each finds and costs.
DEDUP_PRESETS: dict[str, dict[str, Any]] = {
    "datatrove": {"ngram": 5, "bands": 14, "rows": 8, "verify": "none"},
    "verified": {"verify": "signature", "threshold": 0.75, "clusters": "star"},
    # 20 x 6: a pair of similarity 0.8 is missed once in 430; signatures as fast as those of 14 x 8.
    "high-recall": {
        "bands": 20,
        "rows": 6,
        "verify": "exact",
        "threshold": 0.8,
        "clusters": "star",
    },
}
# Copies of a document by the size of its cluster: the table of FineWeb2 (arXiv 2506.20920).
REHYDRATION: dict[str, dict[int, int]] = {"fineweb2": {1: 1, 2: 2, 3: 3, 5: 5, 100: 8, 1000: 1}}
SIGNING = {
    *("exact", "exact_text", "fields", "within", "near", "shingle", "ngram", "lowercase"),
    *("punctuation", "bands", "rows", "seed", "quality_field", "date_field", "decontamination"),
}
CLUSTERING = {"verify", "threshold", "clusters", "keep", "priority"}
# Keys that do nothing unless another is set.
NEEDS = {
    "threshold": "verify",
    "num_perm": "near_threshold",
    "false_negative_weight": "near_threshold",
}


class DedupConfig(BaseModel):
    """When two documents count as duplicates, which of them stays, and which repeats are cut."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    preset: Literal["datatrove", "verified", "high-recall"] | None = Field(
        default=None, description="a named set of keys; what is written beside it wins"
    )
    exact: bool = Field(default=True, description="find equal texts, by a 128-bit hash")
    exact_text: Literal["whole", "whitespace", "words"] = Field(
        default="whitespace",
        description="what must be equal: the whole text; with white space folded; or the words as "
        "they are shingled (case and punctuation as set below)",
    )
    fields: tuple[EqualField, ...] = Field(
        default=(),
        description="fields whose equal value makes two documents duplicates: url, meta.<name>, or "
        "id, the record's own, which needs the source's `id_field`; a document without a value has "
        "no such duplicate",
    )
    within: tuple[WithinField, ...] = Field(
        default=(),
        description="only documents with equal values of these are compared: source, lang, license "
        "or meta.<name> (a snapshot); empty: all with all",
    )
    near: bool = Field(
        default=True, description="find texts that share most shingles, by MinHash and LSH"
    )
    shingle: Literal["words", "characters"] = Field(
        default="words", description="what a shingle is made of"
    )
    ngram: int = Field(default=5, ge=1, le=100, description="words or characters in a shingle")
    lowercase: bool = Field(default=True, description="whether case is folded before shingling")
    punctuation: Literal["remove", "keep"] = Field(
        default="remove", description="whether punctuation separates words, or belongs to them"
    )
    bands: int = Field(
        default=14,
        ge=1,
        le=MAX_BANDS,
        description="LSH bands: documents that agree in any are candidates",
    )
    rows: int = Field(
        default=8, ge=1, le=MAX_ROWS, description="signature values in a band: all must agree"
    )
    near_threshold: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="instead of bands and rows: the similarity from which pairs should be found",
    )
    false_negative_weight: float = Field(
        default=0.5,
        gt=0,
        lt=1,
        description="with near_threshold: how much a missed pair counts against a false one",
    )
    num_perm: int = Field(
        default=128,
        ge=2,
        le=4096,
        description="with near_threshold: signature values that the bands may use",
    )
    seed: int = Field(default=1, ge=0, le=2**32 - 1, description="seed of the MinHash permutations")
    verify: Literal["none", "signature", "exact"] = Field(
        default="none",
        description="how candidates are verified: not at all, by the share of equal signature "
        "values, or by the true Jaccard similarity of their shingles",
    )
    threshold: float = Field(
        default=0.8, ge=0, le=1, description="least similarity of a verified pair"
    )
    clusters: Literal["components", "star"] = Field(
        default="components",
        description="components: chains of similar pairs are one cluster; star: a removed document "
        "is itself similar to the one that stays",
    )
    keep: tuple[KeepKey, ...] = Field(
        default=("priority", "ingested", "longest"),
        description="which document of a cluster stays: the best by the first key, of equals by "
        "the next, ..., at last the smallest doc_id. ingested: what an earlier run had",
    )
    priority: tuple[str, ...] = Field(
        default=(), description="sources, the most wanted first; those not named come after all"
    )
    quality_field: str | None = Field(
        default=None,
        description="for `keep: [quality]`: a score of `filtered` (as in decisions) or meta.<name>",
    )
    date_field: Annotated[str, Field(pattern=r"^meta\..+$")] | None = Field(
        default=None,
        description="for newest and oldest: meta.<name>, which holds ISO 8601 dates, or numbers, "
        "not both: a number is compared as given (2024 is no year)",
    )
    rehydration: Literal["fineweb2"] | dict[int, int] | None = Field(
        default=None,
        description="column `copies` of the documents by size of their cluster: a table of "
        "{least size: copies}, or a preset; null: 1 for all",
    )
    memory_bytes: int = Field(
        default=2 << 30,
        ge=64 << 20,
        description="memory that clustering may take; more documents take more disk, not memory",
    )
    ledger: str | None = Field(
        default=None,
        description="a file of `corpus duplicates ledger`, the ingest order of another build: it "
        "orders parts that are new to this store; one that is already there keeps its place",
    )
    max_rate_jump: float = Field(
        default=0.1,
        gt=0,
        le=1,
        description="the check duplicate_rate warns if the share of duplicates moves by more than "
        "this against the median of earlier runs",
    )
    lines: RepeatedLinesConfig | None = Field(
        default=None, description="cut lines that a source repeats (boilerplate, licence headers)"
    )
    paragraphs: RepeatedLinesConfig | None = Field(
        default=None, description="cut paragraphs that a source repeats"
    )
    substrings: SubstringsConfig | None = Field(
        default=None,
        description="cut long runs of words that stand elsewhere as well, in "
        "other documents or in the same",
    )
    decontamination: DecontaminationConfig | None = Field(
        default=None, description="find documents that overlap with evaluation sets"
    )

    @model_validator(mode="wrap")
    @classmethod
    def lay_preset(cls, given: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        """What a preset sets, below what the user wrote; bands and rows from a threshold."""
        if not isinstance(given, Mapping):
            return validate(given)
        preset = given.get("preset")
        laid = {**DEDUP_PRESETS.get(preset if isinstance(preset, str) else "", {}), **given}
        config = validate(laid)
        config.check_used(given)
        if config.near_threshold is None:
            return config
        bands, rows = solve_bands(
            config.near_threshold, config.false_negative_weight, config.num_perm
        )
        solved = {"bands": bands, "rows": rows}
        if any(key in given and getattr(config, key) != solved[key] for key in solved):
            raise ValueError(
                f"near_threshold {config.near_threshold} solves to {bands} bands of {rows} rows, "
                f"bands {config.bands} and rows {config.rows} are given: remove one or the other"
            )
        if bands > MAX_BANDS or rows > MAX_ROWS:
            raise ValueError(
                f"near_threshold {config.near_threshold} with num_perm {config.num_perm} solves to "
                f"{bands} bands of {rows} rows, more than {MAX_BANDS} or {MAX_ROWS}: lower num_perm"
            )
        return validate({**laid, **solved})

    @field_validator("fields", "within")
    @classmethod
    def check_once(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        """Each field once."""
        if len(set(names)) < len(names):
            raise ValueError(f"each field once (got {list(names)}): remove what is there twice")
        return names

    @field_validator("rehydration")
    @classmethod
    def check_copies(cls, table: str | dict[int, int] | None) -> str | dict[int, int] | None:
        """Sizes of clusters are 1 or more, and the column `copies` is a UInt32."""
        for size, copies in table.items() if isinstance(table, dict) else ():
            if size < 1 or not 0 <= copies < 2**32:
                raise ValueError(
                    f"{{{size}: {copies}}}: give {{least size of a cluster: copies}}, a size of 1 "
                    f"or more and copies from 0 to {2**32 - 1}"
                )
        return table

    def check_used(self, given: Mapping[str, Any]) -> None:
        """Refuse what the user wrote and nothing looks at, because another key is not set."""
        defaults = {name: field.default for name, field in DedupConfig.model_fields.items()}
        defaults |= DEDUP_PRESETS.get(self.preset or "", {})
        for key, needed in NEEDS.items():
            value = getattr(self, key)
            is_off = getattr(self, needed) in (None, "none")
            # A config that was dumped gives all keys: there the default is nobody's wish.
            is_wished = key in given and (needed not in given or value != defaults[key])
            if is_off and is_wished:
                raise ValueError(
                    f"{key} {value} does nothing without {needed}: set {needed}, or remove {key}"
                )

    @model_validator(mode="after")
    def check_together(self) -> Self:
        """Keys that need another."""
        if "quality" in self.keep and self.quality_field is None:
            raise ValueError("keep: quality needs quality_field: name a score or meta.<name>")
        if {"newest", "oldest"} & set(self.keep) and self.date_field is None:
            raise ValueError("keep: newest and oldest need date_field: name meta.<name>")
        if len(set(self.keep)) < len(self.keep) or {"newest", "oldest"} <= set(self.keep):
            raise ValueError(f"keep: each key once, newest or oldest (got {list(self.keep)})")
        return self

    @property
    def num_values(self) -> int:
        """Values in a signature: bands x rows."""
        return self.bands * self.rows

    def signing(self) -> dict[str, Any]:
        """What signatures and keys depend on, for fingerprints."""
        return self.model_dump(mode="json", include=SIGNING)

    def clustering(self) -> dict[str, Any]:
        """What clusters depend on besides signatures and candidates, for fingerprints."""
        return self.model_dump(mode="json", include=CLUSTERING)
