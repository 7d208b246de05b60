"""A source of `sources` with what later stages know of it: filters, held-out share, facts."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from resources.settings.disclosure import SourceFacts
from resources.settings.filtering.filters import FilterConfig
from resources.settings.frozen_model import FrozenModel
from resources.settings.holdout import HoldoutConfig
from resources.settings.key_types import EACH_ONCE
from resources.settings.sources import SourceConfig
from resources.settings.tokenizer import FillInTheMiddle

LIKE_FILTERS = BeforeValidator(lambda layer: layer, json_schema_input_type=FilterConfig)


class LearnedRoles(FrozenModel):
    """The roles whose messages are learned."""

    roles: Annotated[
        tuple[Literal["assistant", "user", "tool", "system", "developer"], ...], EACH_ONCE
    ] = Field(min_length=1, description="whose messages are learned, each to the end of its turn")


class Source(SourceConfig, SourceFacts):
    """A source of documents, its overrides of the filters, the form of its tokens, and facts."""

    filters: Annotated[dict[str, Any], LIKE_FILTERS] = Field(
        default_factory=dict,
        description="overrides of `filters` for this source, merged key by key; null switches off",
    )
    holdout: HoldoutConfig | None = Field(
        default=None,
        exclude=True,
        description="documents of this source that are held out of training, instead of the "
        "file's `holdout`; `share: 0` for none",
    )
    fill_in_the_middle: FillInTheMiddle | None = Field(
        None,
        exclude=True,
        description="rearranges documents, usually of code, so that a model learns to fill in "
        "their middle; {}: the defaults; null: none",
    )

    learn: Literal["all", "last", "weights"] | LearnedRoles = Field(
        default="all",
        exclude=True,
        description="of conversations. all: every message of the assistant; last: only its last "
        "one; weights: every one, times its weight in the loss (`weight: 0.5` of a message or "
        "record, in hundredths up to 2.55); {roles: [assistant, user]}: those of these roles",
    )

    reasoning: Literal["as_template", "split_turns"] = Field(
        default="as_template",
        exclude=True,
        description="of conversations. split_turns: each turn is learned in a conversation that "
        "ends there, since templates leave out the reasoning of earlier turns",
    )

    @property
    def learned(self) -> dict[str, Any]:
        """What `learn` changes for a template, as JSON; nothing by default."""
        if isinstance(self.learn, LearnedRoles):
            return self.learn.model_dump(mode="json")
        return {} if self.learn == "all" else {"learn": self.learn}

    @model_validator(mode="after")
    def check_order(self) -> Self:
        """Refuse to rearrange conversations, and `learn` for other documents."""
        if self.kind != "chat" and self.learn != "all":
            raise ValueError("learn is for kind: chat: of other documents all tokens are learned")
        if self.reasoning == "split_turns" and isinstance(self.learn, LearnedRoles):
            raise ValueError(
                "`reasoning: split_turns` does not go with `learn: {roles: ...}`: only answers end "
                "a turn. Leave one of the two out"
            )
        if self.kind != "chat" and self.reasoning != "as_template":
            raise ValueError("reasoning is for kind: chat: other documents have no turns")
        if self.kind == "chat" and self.fill_in_the_middle is not None:
            raise ValueError(
                "fill_in_the_middle has no meaning with kind: chat: a conversation stays in its "
                "order. Remove it"
            )
        return self
