"""`tokenizer`: trained on the corpus, or loaded from a file; `fill_in_the_middle` of a source."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from resources.settings.frozen_model import FrozenModel
from resources.settings.key_types import NonEmpty, each_once


class FillInTheMiddle(FrozenModel):
    """Documents of a source that are rearranged, so that a model learns to fill in their middle."""

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


class FillTokens(FrozenModel):
    """Special tokens before the three pieces of a rearranged document."""

    prefix: NonEmpty = Field(default="<|fim_prefix|>", description="special token of the prefix")
    middle: NonEmpty = Field(
        default="<|fim_middle|>", description="special token before what is to be filled in"
    )
    suffix: NonEmpty = Field(default="<|fim_suffix|>", description="special token of the suffix")

    @model_validator(mode="after")
    def check_difference(self) -> Self:
        """Refuse a token that stands for two pieces."""
        each_once(self.all)
        return self

    @property
    def all(self) -> tuple[str, str, str]:
        """Prefix, middle, suffix."""
        return self.prefix, self.middle, self.suffix


END_OF_DOCUMENT = "<|endoftext|>"
CHATML_TOKENS = ("<|im_start|>", "<|im_end|>")  # of the template for conversations
# Keys of which no tokenizer is made; the tokens of the last are special tokens where they are used.
UNTRAINED = frozenset({"retrain", "chat_template", "vocab_multiple", "fill_in_the_middle_tokens"})

GPT2 = "gpt2"
_CL100K = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# By name, as published: openai/gpt-2, src/encoder.py; the tokenizer.json of Llama 3 (which is
# cl100k_base of openai/tiktoken) and of Qwen2; o200k_base of tiktoken_ext/openai_public.py.
PATTERNS = {
    GPT2: r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "llama3": _CL100K,
    "qwen": _CL100K.replace(r"\p{N}{1,3}", r"\p{N}"),
    "gpt4o": (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
        r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
}
NUMBER = re.compile(r"\|( \?)?\\p\{N\}[^|]*")  # the numbers of a pattern
Digits = Literal[1, 3] | None


def word_regex(pattern: str, digits: Digits = None) -> str:
    """Return the regular expression of a pattern; `digits` leave no blank before them."""
    regex = PATTERNS.get(pattern, pattern)
    number = {None: None, 1: r"|\p{N}", 3: r"|\p{N}{1,3}"}[digits]
    return regex if number is None else NUMBER.sub(lambda _: number, regex)


NUM_BYTES = 256  # tokens that byte-level BPE starts from


class TokenizerConfig(FrozenModel):
    """One tokenizer for the whole corpus: trained on a sample of it, or loaded from a file."""

    path: str | None = Field(
        default=None,
        description="tokenizer.json to load, relative to pipeline.yaml; null: one is trained",
    )
    vocab_size: int = Field(
        default=32_000,
        ge=260,
        le=1 << 24,
        description="tokens of a trained vocabulary, special tokens included",
    )
    min_frequency: int = Field(
        default=2, ge=1, description="minimum number of occurrences of a pair that is merged"
    )
    special_tokens: tuple[str, ...] = Field(
        default=(END_OF_DOCUMENT,), description="ids 0, 1, ... of a trained tokenizer"
    )
    pattern: NonEmpty = Field(
        default=GPT2,
        description=f"what a trained tokenizer takes as a word: {', '.join(PATTERNS)}, or a "
        "regular expression, whose matches and what is between them are words",
        exclude_if=lambda pattern: pattern == GPT2,  # configs without it keep their fingerprints
    )
    digits: Digits = Field(
        default=None,
        description="most digits of a word, instead of those of a named `pattern`",
        exclude_if=lambda digits: digits is None,
    )
    vocab_multiple: int = Field(
        default=1,
        ge=1,
        le=1 << 16,
        description="phases give trainers a `vocab_size` that is a multiple of this; no text is "
        "given the ids that are added",
        exclude_if=lambda multiple: multiple == 1,
    )
    begin_of_document: str | None = Field(
        default=None, description="special token before every document; null: none"
    )
    end_of_document: str = Field(
        default=END_OF_DOCUMENT, description="special token after every document"
    )
    sample_bytes: int = Field(
        default=10_000_000,
        ge=1,
        lt=1 << 31,  # `tokenizers` counts pairs in 32 bits
        description="UTF-8 bytes of the seeded sample that a training reads",
    )
    weights: dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] | None = Field(
        default=None,
        min_length=1,
        description="share of the sample by source, sources not named give none; null: by bytes",
    )
    seed: int = Field(default=0, ge=0, description="seed of the sample")
    retrain: Literal["never", "when_config_changes", "always"] = Field(
        default="never",
        description="when a trained tokenizer is replaced: never, only by `corpus tokenizer "
        "retrain`; when_config_changes, by another key here as well; always, also by other "
        "documents. Another tokenizer encodes everything again",
    )
    fill_in_the_middle_tokens: FillTokens = Field(
        default=FillTokens(),
        description="special tokens of sources with `fill_in_the_middle`; a trained tokenizer has "
        "them if there is such a source",
    )

    chat_template: str | None = Field(
        default=None,
        min_length=1,
        description="Jinja template of conversations (`kind: chat`): a file, relative to "
        "pipeline.yaml, or its text; null: that beside `path`, or ChatML",
        exclude_if=lambda template: template is None,  # configs without it keep their fingerprints
    )

    @field_validator("pattern")
    @classmethod
    def check_pattern(cls, pattern: str) -> str:
        """Refuse an unknown name, and a regular expression that `tokenizers` cannot read."""
        if pattern in PATTERNS:
            return pattern
        names = ", ".join(PATTERNS)
        if re.fullmatch(r"[\w-]+", pattern):
            raise ValueError(f"{pattern!r} is no pattern that is known; the names are {names}")
        from tokenizers import Regex

        try:
            Regex(pattern)
        except Exception as error:  # the package raises bare Exception
            raise ValueError(
                f"{pattern!r} is neither one of {names} nor a regular expression: {error}"
            ) from error
        return pattern

    @model_validator(mode="after")
    def check_split(self) -> Self:
        """Refuse keys of the split into words where they would change nothing."""
        named = [key for key in ("pattern", "digits") if key in self.model_fields_set]
        if self.path is not None and named:
            raise ValueError(
                f"{' and '.join(named)} can be chosen for a trained tokenizer only, and path names "
                f"{self.path!r}, which has its own: take one of them out"
            )
        if self.digits is not None and self.pattern not in PATTERNS:
            raise ValueError(
                f"digits is for the patterns {', '.join(PATTERNS)}: write {self.digits} digits "
                "into the regular expression of pattern, and take digits out"
            )
        return self

    def rows_of(self, vocab_size: int) -> int:
        """Return the next multiple of `vocab_multiple`: the rows of an embedding."""
        return -(-vocab_size // self.vocab_multiple) * self.vocab_multiple

    @model_validator(mode="after")
    def check_special_tokens(self) -> Self:
        """Check that a trained tokenizer has its end token, distinct special tokens and room."""
        if self.path is not None:
            return self
        tokens = self.special_tokens
        if len(set(tokens)) < len(tokens) or "" in tokens:
            raise ValueError(f"special_tokens must differ and not be empty, got {list(tokens)}")
        wanted = {"end_of_document": self.end_of_document}
        if self.begin_of_document is not None:
            wanted["begin_of_document"] = self.begin_of_document
        for key, token in wanted.items():
            if token not in tokens:
                raise ValueError(
                    f"{key} {token!r} is not among special_tokens {list(tokens)}; add it there"
                )
        if self.vocab_size < NUM_BYTES + len(tokens):
            raise ValueError(
                f"vocab_size {self.vocab_size} has no room for {NUM_BYTES} bytes and "
                f"{len(tokens)} special tokens"
            )
        return self

    def with_fill_tokens(self) -> TokenizerConfig:
        """Return the config of a tokenizer that has the tokens of `fill_in_the_middle`, too.

        A loaded tokenizer has those of its file. Raises ValueError if one of them is put around
        documents, or a vocabulary has no room.
        """
        wanted = self.fill_in_the_middle_tokens.all
        for key in ("begin_of_document", "end_of_document"):
            if getattr(self, key) in wanted:
                raise ValueError(
                    f"{key} {getattr(self, key)!r} is among fill_in_the_middle_tokens "
                    f"{list(wanted)}; each needs a token of its own"
                )
        if self.path is not None:
            return self
        missing = [token for token in wanted if token not in self.special_tokens]
        special_tokens = (*self.special_tokens, *missing)
        return self.model_validate(self.model_dump() | {"special_tokens": special_tokens})
