"""Kernels of packing against sorted lists, slices and sets."""

from random import Random

from prelude import NDArray, example, given, np, pytest, settings, st

from assets.bucketed.kernels.copy_tokens import copy_pieces, sort_by_key
from assets.bucketed.kernels.packing_plan import (
    FIRST,
    LENGTH,
    PIECES,
    SEQUENCES,
    assign_sequences,
    plan_sequences,
)

CAPACITY = 12
lengths_lists = st.lists(st.integers(1, CAPACITY), max_size=40)


def plain_plan(lengths: list[int], limit: int) -> list[list[int]]:
    """Sequences one by one: the longest, then what fills, a pair that fills, else what fits."""
    left, sequences = sorted(lengths), []
    while left:
        mean = -(-len(left) * CAPACITY // sum(left))
        wanted = min(mean, limit) if 2 * mean > limit else 0
        has_pairs = len(left) * CAPACITY >= 3 * sum(left)
        taken = [left.pop()]
        while length := next_length(
            left, CAPACITY - sum(taken), limit - len(taken), wanted - len(taken), has_pairs
        ):
            left.remove(length)
            taken.append(length)
        sequences.append(sorted(taken))
        while left and contains(left, taken):  # as often as the lengths last
            for length in taken:
                left.remove(length)
            sequences.append(sorted(taken))
    return sequences


def contains(left: list[int], taken: list[int]) -> bool:
    return all(left.count(length) >= taken.count(length) for length in taken)


def next_length(left: list[int], space: int, segments: int, wanted: int, has_pairs: bool) -> int:
    """The length to add, 0 for none."""

    def longest(bound: int) -> int:
        return max((length for length in left if length <= bound), default=0)

    if wanted > 2 and segments > 0 and longest(space // wanted):
        return longest(space // wanted)
    if segments <= 0 or space <= 0:
        return 0
    pairs = [
        (short, space - short)
        for short in sorted({length for length in left if 2 * length <= space}, reverse=True)
        if left.count(space - short) > (2 * short == space)
    ]
    best = longest(space)
    if best == space or 2 * best < space or segments < 2 or not pairs or not has_pairs:
        return best
    return pairs[0][1]


def placed(runs: NDArray[np.int64]) -> list[list[int]]:
    """The lengths in each sequence of a plan, sorted."""
    count = int((runs[:, FIRST] + runs[:, SEQUENCES]).max(initial=0))
    sequences: list[list[int]] = [[] for _ in range(count)]
    for run in runs.tolist():
        for number in range(run[FIRST], run[FIRST] + run[SEQUENCES]):
            sequences[number] += [run[LENGTH]] * run[PIECES]
    return [sorted(lengths) for lengths in sequences]


@settings(max_examples=300)
@given(lengths_lists, st.just(1 << 40) | st.integers(1, 5))
@example([6, 5, 5, 3, 3, 2], 1 << 40)
@example([8] * 10 + [2] * 20, 3)
@example([*range(1, 13)] * 3, 4)
@example([5, 5, 5, 4, 3], 1 << 40)
def test_plans_equal_packing_one_sequence_at_a_time(lengths: list[int], limit: int) -> None:
    histogram = np.bincount(np.array(lengths, np.int64), minlength=CAPACITY + 1)

    runs = plan_sequences(histogram, limit)

    assert placed(runs) == plain_plan(lengths, limit)


@given(lengths_lists, st.just(1 << 40) | st.integers(1, 5))
def test_assigned_segments_are_those_of_the_plan(lengths: list[int], limit: int) -> None:
    histogram = np.bincount(np.array(lengths, np.int64), minlength=CAPACITY + 1)
    runs = plan_sequences(histogram, limit)
    order = np.argsort(lengths, kind="stable").astype(np.uint32)
    starts = np.append(0, np.cumsum(histogram))

    sequence = assign_sequences(runs, order, starts)

    found: list[list[int]] = [[] for _ in placed(runs)]
    for segment, number in enumerate(sequence):
        found[number].append(lengths[segment])
    assert [sorted(lengths) for lengths in found] == placed(runs)
    for length in set(lengths):  # the runs take the segments of a length in order
        numbers = [sequence[segment] for segment in order if lengths[segment] == length]
        taken = [
            run[FIRST] + i
            for run in runs.tolist()
            if run[LENGTH] == length
            for i in range(run[SEQUENCES])
            for _ in range(run[PIECES])
        ]
        assert numbers == taken


@given(st.lists(st.integers(0, 5), max_size=30), st.randoms(use_true_random=False))
def test_places_are_sorted_by_key(keys: list[int], random: Random) -> None:
    order = list(range(len(keys)))
    random.shuffle(order)

    by_key, starts = sort_by_key(np.array(keys, np.uint32), np.array(order, np.uint32), 6)

    assert by_key.tolist() == sorted(order, key=lambda place: keys[place])
    assert starts.tolist() == [sum(key < bound for key in keys) for bound in range(7)]


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 10)), max_size=5), st.booleans())
def test_tokens_are_copied_to_their_places(spans: list[tuple[int, int]], is_wide: bool) -> None:
    dtype = np.uint32 if is_wide else np.uint16
    source = np.arange(60_000, 60_030, dtype=dtype)
    starts, lengths = (np.array([span[i] for span in spans], np.int64) for i in range(2))
    places = np.append(0, np.cumsum(lengths + 1)).astype(np.int64)  # a gap of one
    target = np.zeros(places[-1], dtype)

    copy_pieces(source, starts, lengths, places[:-1].copy(), target)

    expected = [[*source[start : start + length].tolist(), 0] for start, length in spans]
    assert target.tolist() == [token for tokens in expected for token in tokens]


@pytest.mark.parametrize("limit", [1, 2, 1 << 40])
def test_an_empty_histogram_has_no_plan(limit: int) -> None:
    assert plan_sequences(np.zeros(5, np.int64), limit).shape == (0, 4)
