"""`dedup.paragraphs` and `dedup.substrings`: repeated lines and runs of words."""

from __future__ import annotations

from math import ceil
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class RepeatedLinesConfig(BaseModel):
    """When a line (or a paragraph) is so common in a source that it is cut out everywhere."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    min_count: int = Field(
        default=10,
        ge=2,
        description="documents of a source that must have a line, or a paragraph, for it to be cut",
    )
    min_share: float = Field(
        default=0,
        ge=0,
        le=1,
        description="share of the source's documents that must have it as well: in a large source "
        "a common sentence reaches any count",
    )
    min_chars: int = Field(
        default=20, ge=1, description="shorter ones (characters, normalised) are left alone"
    )
    min_kept_share: float = Field(
        default=0.2,
        ge=0,
        le=1,
        description="a document that keeps less of the characters that it had before this step is "
        "rejected, as is one that keeps only white space",
    )
    fold_whitespace: bool = Field(
        default=True,
        description="whether runs of ASCII white space count as one blank, and as none at the ends",
    )
    lowercase: bool = Field(default=False, description="whether case is folded for the comparison")

    def threshold(self, num_documents: int) -> int:
        """Documents that must have a line, in a source of so many."""
        share = round(self.min_share * num_documents, 6)  # 0.1 * 30 is a little more than 3
        return max(self.min_count, ceil(share))

    def comparison(self) -> dict[str, Any]:
        """What the hashes of lines depend on, for fingerprints."""
        return self.model_dump(include={"min_chars", "fold_whitespace", "lowercase"})


class SubstringsConfig(BaseModel):
    """Which runs of words are cut that stand elsewhere too, in another document or in the same one,
    and what becomes of documents that shrink.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    min_words: int = Field(
        default=50, ge=3, le=10_000, description="words in the shortest run that is cut"
    )
    within: Literal["corpus", "source"] = Field(
        default="corpus", description="where a run must stand as well: anywhere, or in its source"
    )
    keep_first: bool = Field(
        default=True,
        description="whether a run stays where it occurs first among the documents that duplicates "
        "and decontamination leave; it is lost if that one is rejected later, as it keeps too "
        "little. false: it is cut everywhere, as suits boilerplate",
    )
    min_kept_share: float = Field(
        default=0.2,
        ge=0,
        le=1,
        description="a document that keeps less of the characters that it had before this step is "
        "rejected, as is one that keeps none",
    )

    @property
    def pick_words(self) -> int:
        """Words in the shorter runs that stand for a run: the greatest power of two up to half."""
        return 1 << ((self.min_words // 2).bit_length() - 1)
