"""`dedup.paragraphs` and `dedup.substrings`: repeated lines and runs of words."""

from __future__ import annotations

from math import ceil
from typing import Any, Literal

from pydantic import Field

from resources.settings.frozen_model import FrozenModel


class RepeatedLinesConfig(FrozenModel):
    """Frequency from which a line (or a paragraph) of a source is cut everywhere."""

    min_count: int = Field(
        default=10,
        ge=2,
        description="minimum number of documents of a source with a line, or a paragraph, for it "
        "to be cut",
    )
    min_share: float = Field(
        default=0,
        ge=0,
        le=1,
        description="minimum share of the source's documents with it, in addition to min_count: in "
        "a large source a common sentence reaches any count",
    )
    min_chars: int = Field(
        default=20,
        ge=1,
        description="minimum number of characters, normalised, of a line or paragraph that is cut",
    )
    min_kept_share: float = Field(
        default=0.2,
        ge=0,
        le=1,
        description="minimum share of its characters before this step that a document keeps; with "
        "less, or only white space, it is rejected",
    )
    fold_whitespace: bool = Field(
        default=True,
        description="compares runs of ASCII white space as one blank, and as none at the ends",
    )
    lowercase: bool = Field(default=False, description="folds case for the comparison")

    def threshold(self, num_documents: int) -> int:
        """Return the documents that must have a line, in a source of `num_documents`."""
        share = round(self.min_share * num_documents, 6)  # 0.1 * 30 is a little more than 3
        return max(self.min_count, ceil(share))

    def comparison(self) -> dict[str, Any]:
        """Return the keys that the hashes of lines depend on, for fingerprints."""
        return self.model_dump(include={"min_chars", "fold_whitespace", "lowercase"})


class SubstringsConfig(FrozenModel):
    """Runs of words that are cut since they occur elsewhere, and documents that shrink too much."""

    min_words: int = Field(
        default=50, ge=3, le=10_000, description="minimum number of words in a run that is cut"
    )
    within: Literal["corpus", "source"] = Field(
        default="corpus",
        description="scope of the search for another copy of a run: the corpus, or its source",
    )
    keep_first: bool = Field(
        default=True,
        description="keeps a run where it occurs first among the documents that duplicates and "
        "decontamination leave; it is lost if that document is rejected later because it keeps "
        "too little. false: it is cut everywhere, which suits boilerplate",
    )
    min_kept_share: float = Field(
        default=0.2,
        ge=0,
        le=1,
        description="minimum share of its characters before this step that a document keeps; with "
        "less, or none, it is rejected",
    )

    @property
    def pick_words(self) -> int:
        """Return the words of the shorter runs that represent a run.

        Their number is the greatest power of two up to half of `min_words`.
        """
        return 1 << ((self.min_words // 2).bit_length() - 1)
