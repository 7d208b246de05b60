"""`filters`: presets, and one model per step.

A config is put together from the lowest layer up: the keys of the domain, the presets in their
order, then the keys that the user wrote. `null` in a higher layer switches a lower one off.
"""

from functools import partial
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    model_validator,
)

from resources.settings.filtering.filter_steps import (
    FasttextConfig,
    LanguageConfig,
    LinesConfig,
    NormalizeConfig,
    PiiConfig,
    WordsConfig,
)
from resources.settings.filtering.presets import expand_presets
from resources.settings.filtering.rules import RulesConfig
from resources.settings.frozen_model import FrozenModel
from resources.settings.plug_ins import check_plug_in


class FilterConfig(FrozenModel):
    """Normalisation, corrections and rules for documents."""

    presets: tuple[str, ...] = Field(
        default=(),
        description="named sets of rules, below the other keys: `corpus rules presets` lists them",
    )
    mode: Literal["all"] = Field(
        default="all",
        description="every rule judges every document; there is no other way any more, and configs "
        "that name this one stay valid",
    )
    normalize: NormalizeConfig = Field(
        default=NormalizeConfig(), description="normalisation to one form for equal texts"
    )
    language: LanguageConfig = Field(
        default=LanguageConfig(), description="detection of the language"
    )
    lines: LinesConfig = Field(
        default=LinesConfig(), description="corrections that remove lines, not documents"
    )
    pii: PiiConfig | None = Field(default=None, description="search for personal data in the text")
    words: WordsConfig = Field(default=WordsConfig(), description="lists of words")
    fasttext: FasttextConfig | None = Field(
        default=None, description="fastText model that gives a score"
    )
    custom: str | None = Field(
        default=None, description="Python file with custom rules, relative to pipeline.yaml"
    )
    custom_files: tuple[str, ...] = Field(
        default=(),
        exclude_if=lambda names: not names,  # configs without it keep their fingerprints
        description="every other file that `custom` opens, relative to pipeline.yaml",
    )
    plug_ins: tuple[Annotated[str, AfterValidator(partial(check_plug_in, "rules"))], ...] = Field(
        default=(),
        exclude_if=lambda names: not names,  # configs without it keep their fingerprints
        description="custom rules that packages add, by the names of their entry points",
    )
    rules: RulesConfig = Field(
        default=RulesConfig(), description="groups of rules and their thresholds"
    )

    _given: dict[str, Any] = PrivateAttr(default_factory=dict)

    @property
    def given(self) -> dict[str, Any]:
        """Return the keys that the user wrote, without presets; a source lays its own over them."""
        return self._given

    @property
    def ranks_fasttext(self) -> bool:
        """Return whether `quality_percentile` is that of the fastText score, not the classifier's.

        It is if that score alone is in use: `min_score` is null, and a model is named.
        """
        quality = self.rules.quality
        return self.fasttext is not None and (quality is None or quality.min_score is None)

    @property
    def has_percentile(self) -> bool:
        """Return whether a rule looks at the percentile of the quality score."""
        quality = self.rules.quality
        return quality is not None and quality.min_percentile is not None

    @property
    def uses_profanity(self) -> bool:
        """Return whether a rule in force looks at profane words."""
        c4 = self.rules.c4
        return self.rules.profanity is not None or (c4 is not None and c4.bad_words)

    def with_tracking_parameters(self, parameters: tuple[str, ...]) -> Self:
        """Return the filters with these parameters for opt-outs, unless they name their own."""
        rules = self.rules.opt_out
        if rules is None or rules.tracking_parameters is not None:
            return self
        own = rules.model_copy(update={"tracking_parameters": parameters})
        return self.model_copy(update={"rules": self.rules.model_copy(update={"opt_out": own})})

    @model_validator(mode="wrap")
    @classmethod
    def lay_over_presets(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Put the presets under the keys given; ValueError for a preset that does not exist."""
        if not isinstance(given, dict):
            return handler(given)
        config = handler(expand_presets(given))
        config._given = given
        return config
