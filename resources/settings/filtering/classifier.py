"""`classifier`: a classifier of good and bad documents."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from resources.settings.frozen_model import FrozenModel
from resources.settings.key_types import POWER_OF_TWO


class ClassifierConfig(FrozenModel):
    """Examples of good and bad documents, and the training of the classifier."""

    good: tuple[str, ...] = Field(
        default=(), description="names of sources whose raw documents are good examples"
    )
    bad: tuple[str, ...] = Field(
        default=(), description="names of sources whose raw documents are bad examples"
    )
    labelled: str | None = Field(
        default=None,
        description="JSON lines file, relative to pipeline.yaml, with `text` and `label` (1 or 0, "
        "true or false, good or bad)",
    )
    sample_bytes: int = Field(
        default=64 << 20,
        ge=1,
        description="approximate number of bytes that are read of each side's text, and of the "
        "labelled file",
    )
    ngram_words: int = Field(default=2, ge=1, le=5, description="words in the longest n-gram")
    buckets: Annotated[int, POWER_OF_TWO] = Field(
        default=1 << 18,
        ge=1 << 10,
        le=1 << 24,
        description="number of weights, a power of two; n-grams share them by hash",
    )
    epochs: int = Field(default=10, ge=1, le=1000, description="passes over the sample")
    l2: float = Field(
        default=0.1,
        ge=1e-4,
        le=1e4,
        description="strength of L2 regularisation against one document's loss: more is smoother, "
        "less is closer to the examples",
    )
    held_out: float = Field(
        default=0.1,
        gt=0,
        lt=1,
        description="share of the documents that are held out of training to measure the "
        "classifier",
    )
    seed: int = Field(
        default=0, ge=0, description="seed of the documents that are sampled and held out"
    )
    max_document_bytes: int = Field(
        default=20_000,
        ge=16,
        le=1 << 24,
        description="bytes at the start of a document that it is judged by",
    )

    @model_validator(mode="after")
    def check_examples(self) -> Self:
        """Refuse examples of one side only, and sources that are named twice."""
        names = [*self.good, *self.bad]
        if bool(self.good) != bool(self.bad):
            given, missing = ("good", "bad") if self.good else ("bad", "good")
            if self.labelled is None:
                raise ValueError(f"{given} is given, {missing} is not: name sources for both")
        elif not names and self.labelled is None:
            raise ValueError("no examples: name sources under good and bad, or a labelled file")
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"{twice} are named twice under good and bad; keep each once")
        return self

    @property
    def shape(self) -> tuple[int, int, int]:
        """Return the arguments of the kernels: words in an n-gram, bits of a bucket, bytes read."""
        return self.ngram_words, self.buckets.bit_length() - 1, self.max_document_bytes
