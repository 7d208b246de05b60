"""Bins and sums of scores."""

import polars as pl

from assets.report.histograms import add_summaries, bin_of, counted, is_share


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
