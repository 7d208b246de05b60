"""Bins and sums of scores."""

import polars as pl

from assets.report.histograms import add_summaries, bin_of, counted, histograms, is_share


def test_a_share_falls_into_one_of_forty_bins() -> None:
    values = pl.Series([-0.1, 0.0, 0.024, 0.025, 0.999, 1.0, 7.0, None])

    assert bin_of("short_line_share", values).to_list() == [0, 0, 0, 1, 39, 39, 39, None]


def test_other_scores_have_two_bins_per_octave() -> None:
    assert bin_of("word_count", pl.Series([-3, 0, 1, 2, 3, 7, 8])).to_list() == [
        0,
        0,
        2,
        3,
        4,
        6,
        6,
    ]
    assert not is_share("word_count") and is_share("lang_score") and is_share("hash_ratio")


def test_counts_add_up_by_name() -> None:
    values = counted(pl.Series([2, 1, 2, None]))

    assert list(values.items()) == [("1", 1), ("2", 2)]
    assert add_summaries([{"a": values}, {"a": {"2": 3}, "b": {}}, {}]) == {
        "a": {"1": 1, "2": 5},
        "b": {},
    }


def test_histograms_of_several_scores_count_the_bins_of_each() -> None:
    table = pl.DataFrame(
        {"a_share": [0.0, 0.5, None, 1.0], "words": [0.0, 2**40, 7.0, 7.0], "none": [None] * 4},
        schema_overrides={"none": pl.Float64},
    )

    found = histograms(table, ["words", "a_share", "none"])

    assert list(found) == ["words", "a_share", "none"]
    assert found == {name: counted(bin_of(name, table[name])) for name in found}
    assert list(found["words"]) == ["0", "6", "80"]
    assert histograms(table.head(0), ["words"]) == {"words": {}}


def test_nulls_count_under_the_name_that_is_given() -> None:
    values = pl.Series(["zh", None, "en", None])

    assert list(counted(values, missing="none").items()) == [("en", 1), ("none", 2), ("zh", 1)]
    assert counted(values.drop_nulls(), missing="none") == {"en": 1, "zh": 1}
