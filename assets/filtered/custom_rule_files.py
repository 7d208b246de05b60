"""Try custom rules in two processes: the same documents must have the same scores.

A rule is Python: it may draw numbers, ask the clock, or hash a text, which Python does in another
way in each process. Then every build would keep other documents.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from assets.filtered.filter_files import FilterFileError, custom_rules
from assets.filtered.rules.custom import CUSTOM_COLUMNS, custom_scores
from resources.engine.fresh_process import call_in_fresh_process
from resources.settings.filtering.filters import FilterConfig

TRIED_DOCUMENTS = 64
TRIED_CHARACTERS = 5_000  # of each
SHOWN_CHARACTERS = 60

Scores = dict[str, list[float | None]]


def read_tried(path: Path) -> list[dict[str, str | None]]:
    """Read some documents of a raw part, and the beginning of their texts."""
    documents = pl.scan_parquet(path).select(list(CUSTOM_COLUMNS)).head(TRIED_DOCUMENTS)
    text = pl.col("text").str.slice(0, TRIED_CHARACTERS)
    return documents.with_columns(text).collect().to_dicts()


def scores_of(config_json: str, folder: str, rows: list[dict[str, str | None]]) -> Scores:
    """Return the scores that the custom rules of a FilterConfig give to documents, by rule."""
    documents = pl.DataFrame(rows, schema=CUSTOM_COLUMNS)
    config = FilterConfig.model_validate_json(config_json)
    scores = custom_scores(documents, custom_rules(config, Path(folder)))
    return {name.removeprefix("custom_"): scores[name].to_list() for name in scores.columns}


def try_custom_rules(config: FilterConfig, folder: Path, rows: list[dict[str, str | None]]) -> None:
    """Raise FilterFileError if a rule gives a document another score in a second process.

    A rule that raises here is not tried: the part that it fails says where, and is tried again.
    """
    arguments = config.model_dump_json(), str(folder), rows
    try:
        here = scores_of(*arguments)
    except Exception:  # noqa: BLE001  a rule may raise anything
        return
    there = call_in_fresh_process(scores_of, *arguments)
    for name, scores in here.items():
        pairs = zip(rows, scores, there[name], strict=True)
        different = [(row, one, other) for row, one, other in pairs if one != other]
        if different:
            row, one, other = different[0]
            raise FilterFileError(
                f"filters: custom rule {name!r} gives {len(different)} of "
                f"{len(rows)} documents another score in a second process, first {one} and "
                f"{other} to {(row['text'] or '')[:SHOWN_CHARACTERS]!r}: every build would keep "
                "other documents. Leave out random numbers, `hash`, the clock, and the order of "
                "sets."
            )
