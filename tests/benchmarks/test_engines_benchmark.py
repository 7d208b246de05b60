"""The comparison of engines: the rows it is made of, the equal results, and where lines cross."""

import sys
from pathlib import Path

import pytest
import xxhash

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

from engine_plots import crossover, line_chart
from engines import RowFunction, is_prose, make_folder, run_row_function, run_stages
from small_tokenizer import trained
from wikitext_rows import wikitext_rows

ROWS = 2500
GOLDEN = "60a1b7bdadd4885f"


def test_rows_are_the_same_in_every_version() -> None:
    rows = list(wikitext_rows(ROWS))
    assert len(rows) == ROWS
    assert xxhash.xxh3_64_hexdigest("\n".join(rows).encode()) == GOLDEN


def test_a_row_does_not_depend_on_how_many_are_asked_for() -> None:
    assert list(wikitext_rows(1300)) == list(wikitext_rows(ROWS))[:1300]
    assert list(wikitext_rows(10, seed=1)) != list(wikitext_rows(10))


def test_rows_are_headings_and_paragraphs_of_the_size_of_wikitext() -> None:
    rows = list(wikitext_rows(ROWS))
    assert 0.2 < sum(row.startswith(" = ") for row in rows) / ROWS < 0.3
    assert 400 < sum(len(row.encode()) for row in rows) / ROWS < 540


@pytest.mark.parametrize(
    ("text", "is_kept"),
    [
        ("ten words that are neither very short nor too long", True),
        ("nine words that are neither very short nor long", False),
        ("a b c d e f g h i j k", False),
        ("1 2 3 four five sixes seven eight nines tens eleven", False),
        ("", False),
    ],
)
def test_rows_are_filtered_by_words(text: str, is_kept: bool) -> None:
    assert is_prose(text) == is_kept


def test_the_function_and_the_stages_keep_the_same_rows_and_tokens(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(trained(), encoding="utf-8")
    folder = make_folder(tmp_path / "rows", wikitext_rows(600), 600, tmp_path)
    mine, ours = run_row_function("python", folder), run_stages("in_process", folder)
    assert (mine.kept, mine.tokens) == (ours.kept, ours.tokens)
    assert 400 < ours.kept < 500


def test_a_rejected_row_has_no_ids(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(trained(), encoding="utf-8")
    function = RowFunction(tmp_path / "tokenizer.json")
    rejected, kept = function.map(
        [" = Title = ", "ten words that are neither very short nor long now"]
    )
    assert rejected is None
    assert kept is not None and kept[-1] == function.end


def test_lines_cross_between_the_sizes_that_both_have() -> None:
    start, steep = [(1, 10.0), (100, 10.0), (10_000, 10.0)], [(1, 1.0), (100, 100.0)]
    assert crossover(start, steep) == 10.0
    assert crossover(steep, start) is None


def test_a_line_that_is_always_below_crosses_nowhere() -> None:
    assert crossover([(1, 1.0), (10, 2.0)], [(1, 2.0), (10, 3.0)]) is None


def test_names_in_a_chart_are_escaped() -> None:
    chart = line_chart("a < b", "rows", {"<way>": [(1.0, 1.0), (10.0, 100.0)]})
    assert "a &lt; b" in chart and "&lt;way&gt;" in chart
    assert "<svg" in chart and chart.endswith("</svg>\n")
