"""Configuration of `filtered`: presets, one model per step, and the files that a config names.

A config is put together from the lowest layer up: what the domain wants, the presets in their
order, then the keys that the user wrote. `null` in a higher layer switches a lower one off.
"""

from typing import Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    model_validator,
)

from resources.settings.filter_steps import (
    FasttextConfig,
    LanguageConfig,
    LinesConfig,
    NormalizeConfig,
    PiiConfig,
    WordsConfig,
)
from resources.settings.presets import expand_presets
from resources.settings.rules import RulesConfig


class FilterConfig(BaseModel):
    """Normalisation, corrections and rules for documents."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    presets: tuple[str, ...] = Field(
        default=(), description="named lists of rules, laid under the keys below: `corpus presets`"
    )
    mode: Literal["all", "first_failure"] = Field(
        default="all",
        description="all: every rule judges every document; first_failure: a document's later "
        "groups of rules are not computed, which saves time and loses what-if",
    )
    normalize: NormalizeConfig = Field(
        default=NormalizeConfig(), description="one form for equal texts"
    )
    language: LanguageConfig = Field(
        default=LanguageConfig(), description="detection of the language"
    )
    lines: LinesConfig = Field(
        default=LinesConfig(), description="corrections that take lines, not documents"
    )
    pii: PiiConfig | None = Field(default=None, description="personal data in the text")
    words: WordsConfig = Field(default=WordsConfig(), description="lists of words")
    fasttext: FasttextConfig | None = Field(
        default=None, description="a fastText model that gives a score"
    )
    custom: str | None = Field(
        default=None, description="Python file with rules of your own, relative to pipeline.yaml"
    )
    rules: RulesConfig = Field(
        default=RulesConfig(), description="groups of rules and their thresholds"
    )

    _given: dict[str, Any] = PrivateAttr(default_factory=dict)

    @property
    def given(self) -> dict[str, Any]:
        """Keys that the user wrote, before presets; a source's own keys are laid over them."""
        return self._given

    @model_validator(mode="wrap")
    @classmethod
    def lay_over_presets(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Put the presets under the keys given; ValueError for a preset that does not exist."""
        if not isinstance(given, dict):
            return handler(given)
        config = handler(expand_presets(given))
        config._given = given
        return config
