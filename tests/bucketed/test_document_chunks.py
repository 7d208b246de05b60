"""Documents in segments: each token in one piece, or counted as repeated or cut off."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assets.bucketed.document_chunks import (
    Segments,
    cut_stream,
    powers_of_two,
    split,
    truncate,
    whole,
)

Ways = Callable[[np.ndarray], Segments]


def rows(segments: Segments) -> list[tuple[int, ...]]:
    return list(zip(*(column.tolist() for column in segments), strict=True))


def tokens(*counts: int) -> np.ndarray:
    return np.array(counts, np.int64)


def test_whole_documents_without_the_empty_ones() -> None:
    assert rows(whole(tokens(3, 0, 2))) == [(0, 0, 3), (2, 0, 2)]


def test_truncated_documents_keep_their_beginning() -> None:
    assert rows(truncate(tokens(3, 0, 9), 4)) == [(0, 0, 3), (2, 0, 4)]


@pytest.mark.parametrize(
    ("count", "overlap", "expected"),
    [
        (4, 0, [(0, 4)]),
        (5, 0, [(0, 4), (4, 1)]),
        (8, 0, [(0, 4), (4, 4)]),
        (4, 1, [(0, 4)]),
        (5, 1, [(0, 4), (3, 2)]),
        (7, 1, [(0, 4), (3, 4)]),
        (8, 3, [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]),
    ],
)
def test_long_documents_are_split_into_full_pieces_and_a_rest(
    count: int, overlap: int, expected: list[tuple[int, int]]
) -> None:
    segments = rows(split(tokens(0, count), 4, overlap))
    assert segments == [(1, start, length) for start, length in expected]


def test_a_stream_is_cut_wherever_a_sequence_ends() -> None:
    segments, cut = cut_stream(tokens(3, 0, 6, 1), 4)

    assert rows(segments) == [(0, 0, 3), (2, 0, 1), (2, 1, 4), (2, 5, 1), (3, 0, 1)]
    assert cut.tolist() == [0, 0, 1, 2, 2]


def test_powers_of_two_from_the_longest_down_and_a_rest() -> None:
    segments = powers_of_two(tokens(8 + 8 + 4 + 1, 0, 2, 3), 8, 2)

    assert rows(segments) == [
        (0, 0, 8),
        (0, 8, 8),
        (0, 16, 4),
        (0, 20, 1),
        (2, 0, 2),
        (3, 0, 2),
        (3, 2, 1),
    ]


@settings(max_examples=50)
@given(
    st.lists(st.integers(0, 70), max_size=20),
    st.sampled_from(
        [
            whole,
            lambda counts: split(counts, 8),
            lambda counts: cut_stream(counts, 8)[0],
            lambda counts: powers_of_two(counts, 16, 4),
            lambda counts: powers_of_two(counts, 1, 1),
        ]
    ),
)
def test_pieces_lie_end_to_end_and_cover_each_document(counts: list[int], cut: Ways) -> None:
    segments = rows(cut(tokens(*counts)))

    covered = [0] * len(counts)
    for document, start, length in segments:
        assert start == covered[document]
        assert length > 0
        covered[document] += length
    assert covered == counts
    assert [document for document, _, _ in segments] == sorted(
        document for document, _, _ in segments
    )


def test_a_document_of_ten_million_tokens() -> None:
    assert len(split(tokens(10_000_000), 2048).lengths) == 4883
    assert split(tokens(10_000_000), 2048).lengths[-1] == 10_000_000 - 4882 * 2048
    assert len(powers_of_two(tokens(10_000_000), 1 << 20, 64).lengths) == 9 + 6
