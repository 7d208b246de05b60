"""Custom rules are tried in two processes: the same documents have the same scores in both."""

from __future__ import annotations

from pathlib import Path

import pytest

from assets.filtered.filter_files import FilterFileError, try_custom_rules
from resources.settings.filtering.filters import FilterConfig

RULE = """
import random
import time
import polars as pl
from assets.filtered.rules import CustomRule
RULES = [
    CustomRule("length", pl.col("text").str.len_chars(), minimum=1, keeps=["a"]),
    CustomRule("own", pl.col("text").map_elements({score}, return_dtype=pl.Float64), maximum=9e99),
]
"""
ROWS: list[dict[str, str | None]] = [
    {"text": text, "lang": "en", "license": None, "url": None, "meta": "{}"}
    for text in ("One text.", "Two texts.", "")
]


def try_score(folder: Path, score: str) -> None:
    (folder / "rules.py").write_text(RULE.replace("{score}", score))
    try_custom_rules(FilterConfig(custom="rules.py"), folder, ROWS)


def test_a_rule_that_hashes_texts_is_refused(tmp_path: Path) -> None:
    said = r"custom rule 'own' gives \d of 3 documents another score in a second process, first"
    with pytest.raises(FilterFileError, match=said):
        try_score(tmp_path, "lambda text: float(hash(text) % 1_000_003)")


def test_a_rule_whose_scores_stay_is_taken(tmp_path: Path) -> None:
    try_score(tmp_path, "lambda text: len(set(text)) / 3")


def test_a_rule_that_raises_is_left_to_the_parts(tmp_path: Path) -> None:
    try_score(tmp_path, "lambda text: 1 / len(text)")
