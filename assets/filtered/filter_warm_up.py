"""Call every kernel that a filter config needs, each once, on a tiny text.

Kernels are compiled, or loaded from disk, at their first call; these calls take that out of the
first part. Each may run in a process of its own.
"""

from collections.abc import Callable, Iterator
from functools import partial

import polars as pl

from assets.filtered.filter_data import FilterData
from assets.filtered.language.detect_language import detect_language
from assets.filtered.normalize import normalize_text
from assets.filtered.rules.rules import rules_for
from assets.filtered.score_counts import BASE, PROVIDERS, provide, texts_left
from assets.filtered.scores import counts_behind, scores_of
from resources.settings.filtering.filters import FilterConfig

TEXT = (
    "The river rose\u00a0– twice.\nIt fell again (1999), then rose: ask me@example.org, not "
    "me@example.png, or 93.184.216.34.\n"
)


def filter_warm_ups(config: FilterConfig, data: FilterData) -> Iterator[Callable[[], object]]:
    """Yield one call per pass over the texts that the config asks for."""
    documents = pl.DataFrame({name: [TEXT] for name in BASE}).with_columns(
        lang=pl.lit("en"), detected_lang=pl.lit("en"), lang_score=pl.lit(1.0)
    )
    scores = (rule.score for rule in rules_for(config.rules, data.custom))
    wanted = counts_behind(scores, scores_of(config.rules))
    wanted |= texts_left(config)
    if data.classifier is None:  # not trained yet
        wanted.discard("quality_score")
    if data.scale is None:
        wanted.discard("quality_percentile")
    yield partial(detect_language, documents["text"], config.language)
    yield partial(normalize_text, documents["text"], config.normalize)
    for columns, _ in PROVIDERS:
        if needed := columns & wanted:
            yield partial(provide, documents, needed, config, data)
