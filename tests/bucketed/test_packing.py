"""Segments side by side: each in a sequence, none over its length, hardly any space left."""

from random import Random

from prelude import given, np, pytest, settings, st

from assets.bucketed.document_chunks import Int64s
from assets.bucketed.kernels.copy_tokens import copy_pieces, sort_by_key
from assets.bucketed.kernels.packing_plan import FIRST, LENGTH, PIECES, SEQUENCES, plan_sequences
from assets.bucketed.packing import (
    NO_LIMIT,
    GroupedPacking,
    number_by_first_segment,
    pack_segments,
    packing_keys,
    sum_tokens,
)
from corpus_loader.permutation import UInt64s, mix64

CAPACITY = 12
lengths_lists = st.lists(st.integers(1, CAPACITY), max_size=60)


def names(number: int) -> UInt64s:
    """Names of segments."""
    return mix64(np.arange(1, number + 1, dtype=np.uint64))


def packed(lengths: list[int], capacity: int, **options: int | None) -> list[list[int]]:
    """The lengths in each sequence, sorted."""
    limits = {"max_segments": None, **options}
    given = np.array(lengths, np.int64), packing_keys(names(len(lengths)), 0), capacity
    sequence = pack_segments(*given, **limits)  # type: ignore[arg-type]
    found: list[list[int]] = [[] for _ in range(max(sequence, default=-1) + 1)]
    for length, number in zip(lengths, sequence, strict=True):
        found[number].append(length)
    return sorted(sorted(each) for each in found)


def test_padding_of_segments_to_a_multiple_is_half_of_it_each() -> None:
    lengths = np.random.Generator(np.random.PCG64(0)).integers(1, 1500, 20_000)
    sequences = {
        multiple: pack_segments(
            lengths, packing_keys(names(20_000), 0), 2048, max_segments=None, multiple=multiple
        )
        for multiple in (1, 8)
    }
    stored = {multiple: 2048 * (each.max() + 1) for multiple, each in sequences.items()}
    assert (stored[8] - stored[1]) / 20_000 < 3.7  # (8 - 1) / 2
    padded = np.bincount(sequences[8], -(-lengths // 8) * 8)
    assert padded.max() <= 2048


def best_fit_decreasing(lengths: list[int], capacity: int) -> int:
    """Sequences that best-fit-decreasing needs, one piece at a time."""
    spaces: list[int] = []
    for length in sorted(lengths, reverse=True):
        fitting = [place for place, space in enumerate(spaces) if space >= length]
        if not fitting:
            spaces.append(capacity)
            fitting = [len(spaces) - 1]
        spaces[min(fitting, key=lambda place: spaces[place])] -= length
    return len(spaces)


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ([], []),
        ([12], [[12]]),
        ([7, 5], [[5, 7]]),
        ([8, 4, 3, 1], [[1, 3], [4, 8]]),
        ([6, 5, 4, 3, 2, 2, 2], [[2, 4, 6], [2, 2, 3, 5]]),
        ([6, 5, 5, 3, 3, 2], [[2, 5, 5], [3, 3, 6]]),
        ([1] * 30, [[1] * 6, [1] * 12, [1] * 12]),
    ],
    ids=["none", "full", "pair", "single fills", "even", "pair fills", "tiny"],
)
def test_sequences_are_filled(lengths: list[int], expected: list[list[int]]) -> None:
    assert packed(lengths, CAPACITY) == sorted(expected)


def test_a_limit_spreads_short_pieces_over_the_sequences() -> None:
    lengths = [8] * 10 + [2] * 20

    assert packed(lengths, CAPACITY, max_segments=3) == [[2, 2, 8]] * 10
    assert packed(lengths, CAPACITY, max_segments=2) == [[2, 2]] * 5 + [[2, 8]] * 10


@settings(max_examples=100)
@given(lengths_lists, st.none() | st.integers(1, 5))
def test_every_piece_is_in_a_sequence_that_holds_it(
    lengths: list[int], max_segments: int | None
) -> None:
    found = packed(lengths, CAPACITY, max_segments=max_segments)

    assert sorted(length for each in found for length in each) == sorted(lengths)
    assert all(0 < sum(each) <= CAPACITY for each in found)
    assert all(len(each) <= (max_segments or CAPACITY) for each in found)


@settings(max_examples=50)
@given(st.lists(st.integers(0, 9), min_size=CAPACITY, max_size=CAPACITY), st.integers(1, 50))
def test_a_plan_places_each_length_as_often_as_it_occurs(counts: list[int], times: int) -> None:
    histogram = np.array([0, *counts], np.int64) * times

    runs = plan_sequences(histogram, NO_LIMIT)

    placed = np.zeros_like(histogram)
    np.add.at(placed, runs[:, LENGTH], runs[:, SEQUENCES] * runs[:, PIECES])
    assert placed.tolist() == histogram.tolist()
    used = np.zeros(int((runs[:, FIRST] + runs[:, SEQUENCES]).max(initial=0)), np.int64)
    for length, first, sequences, segments in runs:
        used[first : first + sequences] += length * segments
    assert (used > 0).all()
    assert (used <= CAPACITY).all()


def lognormal(number: int) -> list[int]:
    lengths = np.random.Generator(np.random.PCG64(1)).lognormal(5, 1, number)
    return np.clip(lengths, 1, 512).astype(int).tolist()


def test_documents_need_no_more_sequences_than_best_fit_decreasing() -> None:
    lengths = lognormal(2000)

    needed = len(packed(lengths, 512))

    assert needed == -(-sum(lengths) // 512)
    assert needed <= best_fit_decreasing(lengths, 512)
    # A limit near the mean costs few: 858 if the longest go first.
    assert len(packed(lengths, 512, max_segments=4)) == 774


def test_long_documents_are_not_left_without_short_ones() -> None:
    """Pairs that fill exactly would use up the short ones: 4,442 sequences, 35 more."""
    drawn = np.random.Generator(np.random.PCG64(1)).lognormal(7, 0.7, 6000)
    lengths = np.clip(drawn, 1, 2048).astype(int).tolist()

    assert len(packed(lengths, 2048)) <= best_fit_decreasing(lengths, 2048)


def test_a_plan_costs_the_same_for_a_thousand_times_the_pieces() -> None:
    histogram = np.bincount(lognormal(2000), minlength=513)

    once = len(plan_sequences(histogram, NO_LIMIT))
    assert len(plan_sequences(histogram * 1000, NO_LIMIT)) < 3 * once


def test_golden_assignment() -> None:
    """If this changes, every packed corpus is made anew: raise the stage's code version."""
    lengths = np.array([7, 5, 5, 5, 7, 12, 3, 4, 5, 7], np.int64)

    sequence = pack_segments(lengths, packing_keys(names(10), 0), CAPACITY, max_segments=None)

    assert sequence.tolist() == [1, 1, 4, 3, 3, 0, 4, 4, 2, 2]


def test_another_seed_gives_other_neighbours_in_as_many_sequences() -> None:
    lengths = np.array([5, 7] * 20, np.int64)

    one, other = (
        pack_segments(lengths, packing_keys(names(40), seed), 12, max_segments=None)
        for seed in (0, 1)
    )

    assert one.tolist() != other.tolist()
    assert one.max() == other.max() == 19


def test_sequences_are_numbered_by_bucket_then_by_first_piece() -> None:
    sequence = np.array([2, 0, 1, 2, 3])
    buckets = np.array([1, 0, 0, 1], np.uint8)

    numbered, ordered = number_by_first_segment(sequence, buckets)

    assert numbered.tolist() == [0, 2, 1, 0, 3]
    assert ordered.tolist() == [0, 0, 1, 1]


@settings(max_examples=50)
@given(st.lists(st.integers(0, 5), max_size=30))
def test_a_counting_sort_is_a_stable_sort(keys: list[int]) -> None:
    order = np.arange(len(keys), dtype=np.uint32)[::-1].copy()

    by_key, starts = sort_by_key(np.array(keys, np.uint32), order, 6)

    assert by_key.tolist() == sorted(order.tolist(), key=lambda place: keys[place])
    assert starts.tolist() == [sum(key < bound for key in keys) for bound in range(7)]


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32])
def test_pieces_are_copied_to_their_places(dtype: type) -> None:
    target = np.full(6, 9, dtype)
    columns = (np.array(column) for column in ([3, 0], [2, 1], [0, 5]))

    copy_pieces(np.arange(5, dtype=dtype), *columns, target)

    assert target.tolist() == [3, 4, 9, 9, 9, 0]


def as_sets(sequence: Int64s, named: UInt64s) -> set[frozenset[int]]:
    """Names of the segments in each sequence."""
    order = np.argsort(sequence, kind="stable")
    edges = np.cumsum(np.bincount(sequence))[:-1]
    return {frozenset(each.tolist()) for each in np.split(named[order], edges)}


@settings(max_examples=150)
@given(lengths_lists, st.none() | st.integers(1, 5), st.integers(1, 60), st.randoms())
def test_groups_place_every_segment_once_whatever_their_order(
    lengths: list[int], limit: int | None, group_tokens: int, random: Random
) -> None:
    named, found = names(len(lengths)), []
    for order in (list(range(len(lengths))), random.sample(range(len(lengths)), len(lengths))):
        mixed = np.array(lengths, np.int64)[order]
        packing = GroupedPacking(mixed, named[order], CAPACITY, limit or NO_LIMIT)
        packing.group_tokens = group_tokens
        left = packing.pack(range(len(lengths)), 0, 64)
        sequence = packing.sequences()

        used = sum_tokens(sequence, mixed)
        assert len(left) == 0 and (sequence >= 0).all()
        assert ((used > 0) & (used <= CAPACITY)).all() and used.sum() == sum(lengths)
        assert (np.bincount(sequence) <= (limit or CAPACITY)).all()
        assert len(used) == packing.count
        found.append(as_sets(sequence, named[order]) if lengths else set())
    assert found[0] == found[1]


@pytest.mark.parametrize(("number", "capacity"), [(33_000, 2048), (33_000, 8192), (500, 2048)])
def test_a_document_that_comes_or_goes_leaves_nearly_all_sequences_alone(
    number: int, capacity: int
) -> None:
    is_small = number == 500
    drawn = np.random.Generator(np.random.PCG64(1 + is_small)).lognormal(6.2, 1.2, number)
    lengths, named = np.clip(drawn, 1, capacity).astype(np.int64), names(number)
    whole = pack_segments(lengths, packing_keys(named, 0), capacity, max_segments=None)
    sequences = as_sets(whole, named)
    kept = []
    for row in range(0, 500, 50) if is_small else (0, 7_777, 32_999):
        fewer, others = np.delete(lengths, row), np.delete(named, row)
        now = as_sets(
            pack_segments(fewer, packing_keys(others, 0), capacity, max_segments=None), others
        )
        kept.append(len(now & sequences) / len(sequences))

    least = -(-int(lengths.sum()) // capacity)
    assert len(sequences) > 150 if is_small else least <= len(sequences) <= least + 1
    assert np.mean(kept) > 0.8 if is_small else min(kept) >= 0.95
