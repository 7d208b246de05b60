"""Documents become sequences in length buckets: nothing cut, nothing lost, padding counted."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from pydantic import ValidationError

from assets.transforms.bucketed import (
    SPAN,
    BucketConfig,
    assign_buckets,
    bucket_names,
    bucket_report,
)

SMALL = BucketConfig(edges=(2, 4))


def tokenized(*lengths: int, dtype: type[pl.DataType] = pl.UInt16) -> pl.DataFrame:
    columns = {
        "doc_id": [f"d{row}" for row in range(len(lengths))],
        "tokens": [list(range(length)) for length in lengths],
    }
    return pl.DataFrame(columns, schema={"doc_id": pl.String, "tokens": pl.List(dtype)})


def test_names_say_the_lengths() -> None:
    assert bucket_names(BucketConfig()) == ["0-128", "129-256", "257-512", "513-1024", "1025-up"]
    assert bucket_names(BucketConfig(edges=(1,))) == ["0-1", "2-up"]


def test_edges_are_inclusive() -> None:
    sequences = assign_buckets(tokenized(1, 2, 3, 4, 5), SMALL)
    assert sequences.select("num_tokens", "bucket").rows() == [
        (1, 0),
        (2, 0),
        (3, 1),
        (4, 1),
        (5, 2),
    ]


def test_one_sequence_per_document_with_its_tokens_and_span() -> None:
    expected = {
        "bucket": pl.Series([0, 0, 1], dtype=pl.UInt8),
        "num_tokens": pl.Series([2, 1, 3], dtype=pl.UInt32),
        "tokens": pl.Series([[0, 1], [0], [0, 1, 2]], dtype=pl.List(pl.UInt16)),
        "spans": pl.Series(
            [
                [{"doc_id": "d1", "start": 0, "length": 2}],
                [{"doc_id": "d2", "start": 0, "length": 1}],
                [{"doc_id": "d0", "start": 0, "length": 3}],
            ],
            dtype=pl.List(SPAN),
        ),
    }
    assert_frame_equal(assign_buckets(tokenized(3, 2, 1), SMALL), pl.DataFrame(expected))


def test_empty_frame_keeps_its_schema() -> None:
    empty = assign_buckets(tokenized(), SMALL)
    assert_frame_equal(empty, assign_buckets(tokenized(1), SMALL).clear())
    assert set(bucket_report(empty, SMALL)) == {"0-2", "3-4", "5-up"}
    assert bucket_report(empty, SMALL)["0-2"] == {"sequences": 0, "tokens": 0, "padding": 0}


def test_wide_tokens_stay_wide() -> None:
    sequences = assign_buckets(tokenized(1, dtype=pl.UInt32), SMALL)
    assert sequences.schema["tokens"] == pl.List(pl.UInt32)


def test_padding_goes_to_the_edge_and_in_the_open_bucket_to_the_longest() -> None:
    sequences = assign_buckets(tokenized(1, 2, 3, 7, 10), SMALL)
    assert bucket_report(sequences, SMALL) == {
        "0-2": {"sequences": 2, "tokens": 3, "padding": 1},
        "3-4": {"sequences": 1, "tokens": 3, "padding": 1},
        "5-up": {"sequences": 2, "tokens": 17, "padding": 3},
    }


def test_report_counts_beyond_32_bits() -> None:
    lengths = pl.Series([3_000_000_000] * 2, dtype=pl.UInt32)
    sequences = pl.DataFrame({"bucket": pl.Series([2, 2], dtype=pl.UInt8), "num_tokens": lengths})
    assert bucket_report(sequences, SMALL)["5-up"]["tokens"] == 6_000_000_000


@pytest.mark.parametrize("edges", [(), (0, 4), (-1,), (4, 4), (4, 2), tuple(range(1, 257))])
def test_bad_edges_are_refused(edges: tuple[int, ...]) -> None:
    with pytest.raises(ValidationError, match="edges"):
        BucketConfig(edges=edges)


def test_last_bucket_index_fits_its_type() -> None:
    config = BucketConfig(edges=tuple(range(1, 256)))
    assert assign_buckets(tokenized(300), config)["bucket"].to_list() == [255]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 12), max_size=20))
def test_no_token_is_lost_and_spans_cover_each_document(lengths: list[int]) -> None:
    sequences = assign_buckets(tokenized(*lengths), SMALL)

    spans = sequences.explode("spans").unnest("spans").sort("doc_id")
    wanted = sorted((f"d{row}", 0, length) for row, length in enumerate(lengths))
    assert spans.select("doc_id", "start", "length").rows() == wanted
    assert sequences["num_tokens"].to_list() == sequences["tokens"].list.len().to_list()
    assert sequences["bucket"].is_sorted()
    report = bucket_report(sequences, SMALL).values()
    assert sum(bucket["tokens"] for bucket in report) == sum(lengths)
