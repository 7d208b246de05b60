"""Custom rules are tried in two processes: the same documents have the same scores in both."""

from prelude import Path, pytest, sys

from assets.filtered.filter_files import FilterFileError, digests_of, scores_of, try_custom_rules
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


READING = """
import json
from pathlib import Path
import polars as pl
from assets.filtered.rules import CustomRule
HERE = Path(__file__).parent
{reading}
RULES = [CustomRule("own", pl.col("text").is_in({words}), maximum=0)]
"""
WAYS = {
    "python": ("WORDS = (HERE / 'words.csv').read_text().split()", "WORDS"),
    "polars": ("WORDS = pl.read_csv(HERE / 'words.csv')['word']", "WORDS.to_list()"),
    "lazy polars": ("WORDS = pl.scan_csv(source=str(HERE / 'w*.csv')).collect()", "['a']"),
    "module": ("import sys; sys.path.insert(0, str(HERE)); import words", "words.WORDS"),
}


def reading_rules(folder: Path, way: str, word: str = "One text.") -> str:
    """Write rules that read another file; return its name."""
    reading, words = WAYS[way]
    (folder / "rules.py").write_text(READING.format(reading=reading, words=words))
    (folder / "words.csv").write_text(f"word\n{word}\n")
    (folder / "words.py").write_text(f"WORDS = [{word!r}]\n")
    return "words.py" if way == "module" else "words.csv"


@pytest.mark.parametrize("way", WAYS)
def test_a_file_that_rules_open_must_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    name = reading_rules(tmp_path, way)

    with pytest.raises(FilterFileError, match=rf"opens '{name}'.*custom_files: \[{name}\]"):
        try_custom_rules(FilterConfig(custom="rules.py"), tmp_path, ROWS)
    try_custom_rules(FilterConfig(custom="rules.py", custom_files=(name,)), tmp_path, ROWS)


def test_a_named_file_is_in_the_fingerprint_and_is_read_again(tmp_path: Path) -> None:
    name = reading_rules(tmp_path, "polars")
    config = FilterConfig(custom="rules.py", custom_files=(name,))
    before = digests_of(config, tmp_path)
    assert scores_of(config.model_dump_json(), str(tmp_path), ROWS) == {"own": [1.0, 0.0, 0.0]}

    reading_rules(tmp_path, "polars", "Two texts.")

    assert digests_of(config, tmp_path) != before
    assert scores_of(config.model_dump_json(), str(tmp_path), ROWS) == {"own": [0.0, 1.0, 0.0]}


def test_a_named_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    reading_rules(tmp_path, "polars")

    with pytest.raises(FilterFileError, match=r"filters\.custom_files\.gone\.txt: no file"):
        digests_of(FilterConfig(custom="rules.py", custom_files=("gone.txt",)), tmp_path)
