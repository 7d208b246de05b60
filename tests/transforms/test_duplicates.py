"""Clusters and survivors."""

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from assets.transforms.duplicates import choose_survivors, cluster_documents

keys = st.none() | st.integers(0, 9)
Row = tuple[int | None, int | None, int | None]
key_rows = st.lists(st.tuples(keys, keys, keys), max_size=40)


def hashes(values: Iterable[int | None]) -> pl.Series:
    return pl.Series([None if v is None else v.to_bytes(16) for v in values], dtype=pl.Binary)


def band(values: Iterable[int | None]) -> pl.Series:
    return pl.Series(list(values), dtype=pl.UInt64)


def clusters(rows: Sequence[Row]) -> list[int]:
    columns = [[row[k] for row in rows] for k in range(3)]
    labels = cluster_documents(hashes(columns[0]), (band(c) for c in columns[1:]))
    return [int(label) for label in labels]


def components(rows: list[Row]) -> list[int]:
    labels = list(range(len(rows)))
    for _ in rows:
        for i, one in enumerate(rows):
            for j, other in enumerate(rows):
                if any(a == b and a is not None for a, b in zip(one, other, strict=True)):
                    labels[i] = labels[j] = min(labels[i], labels[j])
    return labels


def members(**columns: list[Any]) -> pl.DataFrame:
    schema: dict[str, Any] = {
        "cluster": pl.Int64,
        "doc_id": pl.String,
        "num_chars": pl.UInt32,
        "text_hash": pl.Binary,
        "signature": pl.Array(pl.UInt32, 4),
    }
    return pl.DataFrame(columns, schema_overrides=schema)


@given(key_rows)
@settings(deadline=None, max_examples=50)
def test_clusters_equal_the_reference(
    rows: list[Row],
) -> None:
    assert clusters(rows) == components(rows)


@given(key_rows, st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=50)
def test_input_order_does_not_change_the_clusters(rows: list[Row], random: Random) -> None:
    order = list(range(len(rows)))
    random.shuffle(order)

    labels, moved = clusters(rows), clusters([rows[i] for i in order])

    pairs = {(labels[i], label) for i, label in zip(order, moved, strict=True)}
    assert len(pairs) == len(set(labels)) == len(set(moved))


def test_a_chain_of_bands_is_one_cluster() -> None:
    rows = [(None, 5, None), (None, 6, 8), (None, 5, 9), (None, 7, 9), (None, 6, None)]

    assert clusters(rows) == [0, 1, 0, 0, 1]


def test_null_hash_and_a_hash_of_zeros_stay_apart() -> None:
    assert clusters([(None, 1, 2), (0, 3, 4), (None, 5, 6), (0, 7, 8)]) == [0, 1, 2, 1]


def test_all_128_bits_of_a_hash_count() -> None:
    values = [1, 1 << 64, 1 + (1 << 127), 1]

    assert cluster_documents(hashes(values), []).tolist() == [0, 1, 2, 0]


def test_hashes_that_share_a_half_are_told_apart_in_linear_time() -> None:
    values = [number << shift for shift in (0, 64) for number in range(1, 100_001)]

    labels = cluster_documents(hashes(values), [])

    assert labels.tolist() == list(range(200_000))


def test_no_documents_have_no_clusters() -> None:
    assert cluster_documents(hashes([]), [band([])]).tolist() == []


def test_hash_of_another_size_says_what_to_do() -> None:
    with pytest.raises(ValueError, match=r"16 bytes, found sizes=\[3\]. Materialize `signatures`"):
        cluster_documents(pl.Series([b"abc", None]), [])


def test_band_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="Band 1 has 1 rows and text_hashes 2"):
        cluster_documents(hashes([1, 2]), [band([1, 2]), band([1])])


def test_longest_then_first_id_survives() -> None:
    frame = members(
        cluster=[7, 7, 7, 9, 9],
        doc_id=["a", "c", "b", "e", "d"],
        num_chars=[5, 9, 9, 1, 1],
        text_hash=[b"1", b"2", b"2", b"3", b"4"],
        signature=[[1, 2, 3, 9], [1, 2, 3, 4], [1, 2, 3, 4], [5, 5, 5, 5], [5, 6, 6, 6]],
        source=["web", "web", "books", "code", "web"],
    )

    result = choose_survivors(frame)

    expected = pl.DataFrame(
        {
            "doc_id": ["a", "c", "e"],
            "kept_doc_id": ["b", "b", "d"],
            "cluster_id": ["a", "a", "d"],
            "cluster_size": pl.Series([3, 3, 2], dtype=pl.UInt32),
            "similarity": pl.Series([0.75, 1.0, 0.25], dtype=pl.Float32),
            "method": ["minhash", "exact", "minhash"],
            "source": ["web", "web", "code"],
        }
    )
    assert_frame_equal(result, expected)
    assert_frame_equal(choose_survivors(frame.reverse()), expected)


def test_no_members_remove_nothing() -> None:
    empty = members(cluster=[], doc_id=[], num_chars=[], text_hash=[], signature=[])

    result = choose_survivors(empty)

    assert result.is_empty()
    assert result.schema["similarity"] == pl.Float32
    assert result.schema["cluster_size"] == pl.UInt32


def test_copies_without_words_or_hashes_are_compared_by_what_they_have() -> None:
    frame = members(
        cluster=[0, 0, 2, 2],
        doc_id=["a", "b", "c", "d"],
        num_chars=[2, 2, 2, 2],
        text_hash=[b"1", b"1", None, None],
        signature=[None, None, [1, 2, 3, 4], [1, 2, 3, 4]],
    )

    result = choose_survivors(frame).select("method", "similarity")

    assert result.rows() == [("exact", 1.0), ("minhash", 1.0)]


def test_repeated_doc_id_is_refused() -> None:
    frame = members(
        cluster=[0, 0],
        doc_id=["a", "a"],
        num_chars=[1, 1],
        text_hash=[b"1", b"1"],
        signature=[[1, 1, 1, 1], [1, 1, 1, 1]],
    )

    with pytest.raises(ValueError, match="doc_id 'a' occurs more than once"):
        choose_survivors(frame)
