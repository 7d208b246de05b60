"""`fill_in_the_middle` of a source, and the special tokens for it, which are the tokenizer's."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

NonEmpty = Annotated[str, Field(min_length=1)]


class FillInTheMiddle(BaseModel):
    """Documents of a source that are rearranged, so that a model learns to fill in their middle."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rate: float = Field(
        default=0.5,
        gt=0,
        le=1,
        description="share of the documents that are cut at two random characters and rearranged",
    )
    spm_rate: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="share of these with the suffix before the prefix (SPM); the others have the "
        "prefix first (PSM)",
    )
    seed: int = Field(default=0, ge=0, description="seed of what is rearranged, and of the cuts")


class FillTokens(BaseModel):
    """Special tokens before the three pieces of a rearranged document."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    prefix: NonEmpty = Field(default="<|fim_prefix|>", description="special token of the prefix")
    middle: NonEmpty = Field(
        default="<|fim_middle|>", description="special token before what is to be filled in"
    )
    suffix: NonEmpty = Field(default="<|fim_suffix|>", description="special token of the suffix")

    @model_validator(mode="after")
    def check_difference(self) -> Self:
        """Refuse a token that stands for two pieces."""
        if len(set(self.all)) < len(self.all):
            raise ValueError(f"prefix, middle and suffix must differ, got {list(self.all)}")
        return self

    @property
    def all(self) -> tuple[str, str, str]:
        """Prefix, middle, suffix."""
        return self.prefix, self.middle, self.suffix
