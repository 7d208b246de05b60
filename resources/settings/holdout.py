"""`holdout`: documents that are held out of training, for validation."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from resources.settings.frozen_model import FrozenModel

MOST_SHARE = 0.5


class HoldoutConfig(FrozenModel):
    """Part of the documents that no phase draws: a share of them, or about so many tokens."""

    share: float | None = Field(
        default=None,
        ge=0,
        le=MOST_SHARE,
        description="share of the documents that is held out; another share is for documents that "
        "come after the change: what is held out stays so, and what is trained on, too. 0: no more",
    )
    tokens: int | None = Field(
        default=None,
        ge=1,
        description="about so many tokens are held out, instead of share: their share of what is "
        "there at the first run, which is kept from then on",
    )

    @model_validator(mode="after")
    def check_one(self) -> Self:
        """Refuse both keys, and none."""
        if (self.share is None) == (self.tokens is None):
            raise ValueError("give either `share` or `tokens`")
        return self
