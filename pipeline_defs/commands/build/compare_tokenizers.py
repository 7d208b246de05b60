"""`corpus tokenizer compare`: text per token by language, of the corpus's tokenizer and others.

All encode the sample that a training now would read. Patterns are trained on it, with as many
entries, so that only the split into words differs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import polars as pl
from cyclopts import Parameter
from pydantic import ValidationError

from assets.tokenized.tokenized_records import TextFit, TokenizerNumbers
from assets.tokenized.tokenizer import (
    MOST_FILE_BYTES,
    TokenizerError,
    read_added_tokens,
    token_facts,
    train_bpe,
)
from assets.tokenized.tokenizer_asset import (
    Sample,
    draw_sample,
    fit_to_sample,
    load_tokenizer,
    sources_now,
)
from assets.tokenized.tokenizer_fit import sum_fits
from pipeline_defs.commands.answers import answer
from pipeline_defs.commands.build.tokenizer_verbs import published
from pipeline_defs.commands.terminal import Json
from pipeline_defs.load_corpus import load_corpus
from resources.errors import UsageError
from resources.settings.named_files import NamedFileError, read_named_file
from resources.settings.tokenizer import PATTERNS, TokenizerConfig
from resources.tasks import GLOBAL

PUBLISHED = "published"
CANDIDATE = Annotated[
    str,
    Parameter(
        help=f"Others to compare: {', '.join(PATTERNS)}, a regular expression, or the path of a "
        "tokenizer.json. By default the first four."
    ),
]


def compare(*others: CANDIDATE, json: Json = False) -> int:
    """Print bytes per token by language; the first is what the others are compared with."""
    corpus = load_corpus()
    config, (numbers, text) = corpus.settings.tokenizer, published(corpus)
    try:
        sample, _ = draw_sample(sources_now(corpus)[1], config)
        fits = {PUBLISHED: fit_to_sample(text, numbers, sample)} if numbers is not None else {}
        for other in others or PATTERNS:
            fits[other] = fit_of(other, config, numbers, sample)
    except (TokenizerError, NamedFileError) as error:
        raise UsageError(str(error)) from None
    answer("tokens of the sample", compared(fits), "The sample has no text.", json=json)
    return 0


def fit_of(
    other: str, config: TokenizerConfig, numbers: TokenizerNumbers | None, sample: Sample
) -> list[TextFit]:
    """Return the fit of another tokenizer: that of a file, or one that is trained on the sample."""
    if other.endswith(".json"):
        return fit_of_file(Path(other), config, sample)
    keys: dict[str, Any] = {
        "pattern": other,
        "digits": config.digits if other in PATTERNS else None,
    }
    try:
        TokenizerConfig.model_validate(keys)
    except ValidationError as error:
        raise UsageError(f"{other!r}: {error.errors()[0]['msg']}") from None
    if config.path is not None:  # its file has other keys than those of the config
        marks = (config.end_of_document, config.begin_of_document)
        keys |= {"path": None, "special_tokens": tuple(mark for mark in marks if mark)}
        keys |= {"vocab_size": numbers.vocab_size} if numbers is not None else {}
    trained = config.model_copy(update=keys)
    text = train_bpe((documents["text"] for _, documents in sample), trained)
    return fit_to_sample(text, token_facts(text, trained), sample)


def fit_of_file(path: Path, config: TokenizerConfig, sample: Sample) -> list[TextFit]:
    """Return the fit of a tokenizer.json, with any of its special tokens around documents."""
    try:
        special = read_added_tokens(read_named_file(path, MOST_FILE_BYTES)).special()
    except (msgspec.DecodeError, UnicodeDecodeError):
        special = []  # `load_tokenizer` says what is wrong
    marks = {"end_of_document": next(iter(special), ""), "begin_of_document": None}
    text, facts, _ = load_tokenizer(path, config.model_copy(update=marks))
    return fit_to_sample(text, facts, sample)


def compared(fits: Mapping[str, Sequence[TextFit]]) -> pl.DataFrame:
    """Return a row per language and tokenizer, all languages first, then those with most text."""
    return pl.DataFrame([*rows_of(fits)])


def rows_of(fits: Mapping[str, Sequence[TextFit]]) -> Iterator[dict[str, object]]:
    """Yield the rows; a language without a token of some tokenizer has none of it."""
    first = [*next(iter(fits.values()))]
    sizes = {each.language: 0 for of_one in fits.values() for each in of_one}
    for each in first:
        sizes[each.language] += each.text_bytes
    for language in [GLOBAL, *sorted(sizes, key=lambda name: (-sizes[name], name))]:
        base = 0
        for name, of_one in fits.items():
            fit = sum_fits(each for each in of_one if language in (GLOBAL, each.language))
            if fit.tokens:
                base = base or fit.tokens
                yield {
                    "language": language,
                    "tokenizer": name,
                    "text_bytes": fit.text_bytes,
                    "tokens": fit.tokens,
                    "bytes_per_token": fit.bytes_per_token,
                    "fewer_tokens_share": 1 - fit.tokens / base,
                }
