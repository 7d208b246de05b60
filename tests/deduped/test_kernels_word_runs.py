"""Runs of words, their picks and their places against slices and dictionaries."""

from itertools import pairwise

import numpy as np
import polars as pl
from hypothesis import example, given, settings
from hypothesis import strategies as st

from assets.deduped.kernels.document_rows import first_equal
from assets.deduped.kernels.unit_positions import locate_units
from assets.deduped.kernels.word_runs import (
    NOT_PICKED,
    extend_runs,
    hash_words,
    winnow,
)
from assets.text.buffers import code_point_entries, text_buffers
from assets.text.kernels.hashing import hash_bytes
from assets.text.kernels.hashing import join as join_hashes
from assets.text.kernels.words import join_words

Span = tuple[int, int]
texts = st.text("aé中𝒜. \n", max_size=15)
hash_lists = st.lists(st.integers(0, 3) | st.just(2**64 - 1), max_size=14)


def unit_places(text: str, by_word: bool = True) -> list[Span]:
    """First byte and byte after the last one of each word, or of each character of words."""
    places: list[Span] = []
    at, is_open = 0, False
    for character in text:
        width, is_word, is_han = len(character.encode()), character.isalpha(), character == "中"
        if is_word and is_open and by_word and not is_han:
            places[-1] = (places[-1][0], at + width)
        elif is_word:
            places.append((at, at + width))
        is_open = is_word and not is_han
        at += width
    return places


@given(st.lists(texts, max_size=3))
def test_words_are_hashed_without_and_with_the_blank(contents: list[str]) -> None:
    entries = code_point_entries(False, "keep")
    series = pl.Series([text.replace("中", "") for text in contents], dtype=pl.String)
    joined, starts, _ = join_words(*text_buffers(series), entries)

    hashes = hash_words(joined, starts)

    words = [word for text in series for word in text.split()]
    for row, tail in enumerate(("", " ")):
        expected = [np.frombuffer((word + tail).encode(), np.uint8) for word in words]
        zero = np.uint64(0)
        assert hashes[row].tolist() == [
            int(hash_bytes(word, zero, np.uint64(len(word)))) for word in expected
        ]


def hash_of_run(hashes: list[int], words: int, wanted: int) -> int:
    """The hash of a run of `wanted` words: those of its first and last shorter run, joined."""
    if wanted <= words:
        return hashes[0]
    shorter = words
    while 2 * shorter < wanted:
        shorter *= 2
    step = wanted - shorter
    first, last = (hash_of_run(part, words, shorter) for part in (hashes, hashes[step:]))
    return int(join_hashes(np.uint64(first), np.uint64(last)))


@given(hash_lists, st.integers(1, 4), st.integers(0, 9))
@example([1, 2, 3, 0, 1, 2, 3, 3], 1, 7)
@example([1, 2, 3, 0, 1, 2, 3, 3], 3, 3)
def test_longer_runs_are_hashed_from_the_shorter_ones(
    hashes: list[int], words: int, more: int
) -> None:
    extended = np.array(hashes, np.uint64)

    extend_runs(extended, words, words + more)

    count = len(hashes) - more  # later ones have no meaning
    assert extended.tolist()[: max(0, count)] == [
        hash_of_run(hashes[i:], words, words + more) for i in range(count)
    ]


@settings(max_examples=300)
@given(st.lists(hash_lists, max_size=3), st.integers(1, 6), st.integers(1, 6))
@example([[1, 1, 1, 1, 1]], 2, 2)
@example([[0, 1, 2, 0]], 4, 4)
def test_picks_are_the_least_hashes_of_each_run(
    per_text: list[list[int]], run_words: int, width: int
) -> None:
    width = min(width, run_words)
    flat = [value for hashes in per_text for value in hashes]
    offsets = np.cumsum([0, *map(len, per_text)])
    expected: list[int] = []
    for start, stop in pairwise(offsets):
        kept = -1
        for i in range(int(start), int(stop)):
            if i + run_words > stop:
                expected.append(NOT_PICKED)
                continue
            window = range(i, i + width)
            least = min(flat[k] for k in window)
            is_kept = kept in window and flat[kept] == least
            kept = kept if is_kept else max(k for k in window if flat[k] == least)
            expected.append(kept)

    picks = winnow(np.array(flat, np.uint64), offsets.astype(np.int64), run_words, width)

    assert picks.tolist() == expected


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2) | st.just(2**63)), max_size=40))
@example([(2**40 * i, 0) for i in range(9)] * 2)
def test_equal_columns_have_the_number_of_the_first(columns: list[Span]) -> None:
    hashes = np.ascontiguousarray(np.array(columns, np.uint64).reshape(-1, 2).T)

    assert first_equal(hashes).tolist() == [columns.index(column) for column in columns]
    assert first_equal(hashes[:1].copy()).tolist() == [
        [first for first, _ in columns].index(first) for first, _ in columns
    ]


@settings(max_examples=300)
@given(st.lists(texts, max_size=3), st.booleans(), st.data())
@example(["a中b. é", "中中 a"], True, None)
@example(["a中b. é", "", "中中 a"], False, None)
def test_units_are_located_in_their_texts(
    contents: list[str], by_word: bool, data: st.DataObject | None
) -> None:
    places = {
        (row, unit): place
        for row, text in enumerate(contents)
        for unit, place in enumerate(unit_places(text, by_word))
    }
    wanted = sorted(places)
    if data is not None and places:
        wanted = sorted(data.draw(st.sets(st.sampled_from(wanted))))
    buffers = text_buffers(pl.Series(contents, dtype=pl.String))
    pairs = np.array(wanted, np.int64).reshape(-1, 2)

    located = locate_units(*buffers, code_point_entries(), pairs, by_word)

    assert [tuple(place) for place in located.tolist()] == [places[pair] for pair in wanted]
