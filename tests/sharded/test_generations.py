"""Generations: sequences that stay keep theirs, and no night loses or doubles one."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from many_examples import many_examples
from prelude import Counter, NDArray, given, np, pytest, st

from assets.sharded.generations import (
    ABSENT,
    REMOVED,
    UNOWNED,
    GenerationRows,
    OwnedSequences,
    PartRows,
    Sequences,
    Size,
    absorbed_places,
    continue_generations,
    indices_of,
    positions_of,
    spans_of,
)
from assets.sharded.shuffle import BucketSize, plan_bucket_shards, rows_of_shards
from corpus_loader.order import SourceOrder, SourceShape
from resources.settings.shards import ShardConfig

NUM_BUCKETS = 2


def sequences_of(numbers: Sequence[int]) -> Sequences:
    """The sequences that these numbers stand for."""
    ids = np.array([(number * 7919 % 1009, number) for number in numbers], np.uint64).reshape(-1, 2)
    return Sequences(ids, np.array(numbers, np.uint32))


def part(name: str, *buckets: Sequence[int]) -> PartRows:
    """A part with these sequences in each bucket; its fingerprint is its content."""
    padded = [*map(list, buckets), *[[] for _ in range(NUM_BUCKETS - len(buckets))]]
    numbers = [number for bucket in padded for number in bucket]
    counts = tuple(map(len, padded))
    return PartRows((name, str(padded)), counts, lambda: sequences_of(numbers))


def unread(rows: PartRows) -> PartRows:
    """The same part, which nobody may read."""

    def fail() -> Sequences:
        raise AssertionError(f"{rows.key} was read")

    return PartRows(rows.key, rows.counts, fail)


class State(NamedTuple):
    """Generations as the ledger keeps them: numbers of sequences, owners, parts."""

    numbers: list[int]
    owners: list[int]
    parts: tuple[tuple[str, str], ...]
    is_exported: bool = False

    def rows(self) -> GenerationRows:
        owners = np.array(self.owners, np.uint32)
        return GenerationRows(
            num_rows=len(owners),
            removed=int((owners == REMOVED).sum()),
            gone=int((owners > UNOWNED).sum()),
            parts=self.parts,
            read=lambda: OwnedSequences(sequences_of(self.numbers), owners),
            is_exported=self.is_exported,
        )

    def live(self) -> list[int]:
        return [n for n, owner in zip(self.numbers, self.owners, strict=True) if owner < UNOWNED]

    def exported(self) -> "State":
        owners = [UNOWNED if owner < UNOWNED else ABSENT for owner in self.owners]
        return State(self.numbers, owners, (), True)


def night(before: list[State], parts: list[PartRows], share: float = 0.25) -> list[State]:
    """The generations after a run over these parts."""
    after = continue_generations([state.rows() for state in before], parts, share)
    keys = tuple(rows.key for rows in parts)
    states = []
    for place, owners in after.owners.items():
        if owners is None:
            states.append(before[place])
        else:
            states.append(State(before[place].numbers, owners.tolist(), keys))
    if after.new is not None:
        numbers = after.new.sequences.tokens.tolist()
        states.append(State(numbers, after.new.owners.tolist(), keys))
    return states


def numbers_in(states: list[State]) -> list[list[int]]:
    return [state.numbers for state in states]


def test_what_is_new_forms_a_generation_bucket_after_bucket() -> None:
    first = night([], [part("a", [1, 2], [3]), part("b", [4], [5])])

    assert numbers_in(first) == [[1, 2, 4, 3, 5]]
    assert first[0].owners == [0, 0, 1, 0, 1]
    assert night(first, []) == []  # a source that lost all has no generation


def test_a_new_part_alone_is_read() -> None:
    old = part("a", range(9))
    first = night([], [old])
    owned = first[0].rows()
    first_rows = GenerationRows(owned.num_rows, 0, 0, owned.parts, lambda: pytest.fail("was read"))

    after = continue_generations([first_rows], [unread(old), part("b", [20, 21])], 0.25)

    assert after.owners == {0: None}
    assert after.new is not None and after.new.sequences.tokens.tolist() == [20, 21]
    assert after.new.owners.tolist() == [1, 1]


def test_a_generation_absorbs_those_at_most_twice_as_large() -> None:
    a, b, c = part("a", range(20)), part("b", [30, 31]), part("c", [40])
    two = night(night([], [a]), [a, b])
    three = night(two, [a, b, c])

    assert numbers_in(two) == [[*range(20)], [30, 31]]
    assert numbers_in(three) == [[*range(20)], [30, 31, 40]]


def test_sequences_that_move_to_another_part_stay() -> None:
    first = night([], [part("a", [1, 2, 3]), part("b", [4, 5])])

    moved = night(first, [part("a", [1, 2]), part("b", [3, 4, 5])])

    assert numbers_in(moved) == [[1, 2, 3, 4, 5]]
    assert moved[0].owners == [0, 0, 1, 1, 1]


def test_removed_sequences_are_marked_until_there_are_too_many() -> None:
    first = night([], [part("a", range(8))])

    marked = night(first, [part("a", range(6))])
    rewritten = night(marked, [part("a", range(5))])

    assert numbers_in(marked) == [[*range(8)]]
    assert marked[0].owners == [0] * 6 + [REMOVED] * 2
    assert numbers_in(rewritten) == [[*range(5)]]
    without = night(night([], [part("a", range(20))]), [part("a", range(19))])
    again = night(without, [part("a", range(20))])  # one that comes back is new
    assert numbers_in(again) == [[*range(20)], [19]]


@pytest.mark.parametrize(
    ("sizes", "num_new", "absorbed"),
    [
        ([], 1, []),
        ([Size(10, 0, 0, False)], 4, []),
        ([Size(10, 0, 0, False)], 5, [0]),
        ([Size(100, 0, 0, False), Size(8, 0, 0, False), Size(2, 0, 0, False)], 2, [1, 2]),
        ([Size(100, 30, 30, False), Size(20, 0, 0, False)], 0, [0, 1]),
        ([Size(100, 30, 30, False), Size(2000, 0, 0, False)], 0, [0]),
        ([Size(100, 0, 0, True), Size(100, 1, 1, True)], 0, [0, 1]),
        ([Size(300, 0, 0, True), Size(100, 1, 1, True)], 0, [1]),
        ([Size(4, 4, 4, False), Size(50, 0, 0, False)], 0, [0]),
    ],
)
def test_spent_generations_are_absorbed_first_and_then_the_small_ones(
    sizes: list[Size], num_new: int, absorbed: list[int]
) -> None:
    assert absorbed_places(sizes, num_new, 0.25) == absorbed


def test_positions_are_those_of_the_whole_identity() -> None:
    ids = np.array([[1, 2], [1, 3], [2, 2]], np.uint64)

    found = positions_of(np.array([[2, 2], [1, 3], [3, 1]], np.uint64), ids)

    assert found.tolist() == [2, 1, -1]


def test_spans_are_by_bucket() -> None:
    owners = np.array([0, 0, 1, REMOVED, 1, 0, 1], np.uint32)

    spans = spans_of(owners, [3, 4])

    assert spans == {0: [range(0, 2), range(5, 6)], 1: [range(2, 3), range(4, 7)]}


def test_rows_that_are_gone_are_not_found() -> None:
    owned = OwnedSequences(sequences_of([5, 6, 7]), np.array([0, REMOVED, 0], np.uint32))

    found = indices_of(sequences_of([7, 6, 5, 4]).ids, owned, [range(3)])

    assert found.tolist() == [2, -1, 0, -1]
    assert indices_of(sequences_of([7]).ids, owned, [range(2)]).tolist() == [-1]


# A night is a list of parts, each a set of numbers: those that stay, come, go and move.
nights = st.lists(
    st.lists(st.sets(st.integers(0, 60), max_size=12), min_size=1, max_size=4),
    min_size=1,
    max_size=8,
)


def parts_of(sets: list[set[int]]) -> list[PartRows]:
    """Parts of a night, in which no sequence is twice; even numbers are in the first bucket."""
    seen: set[int] = set()
    parts = []
    for number, wanted in enumerate(sets):
        mine = sorted(wanted - seen)
        seen |= wanted
        by_bucket = [n for n in mine if n % 2 == 0], [n for n in mine if n % 2]
        parts.append(part(f"{number}", *by_bucket))
    return parts


@pytest.mark.slow
@many_examples(200)
@given(nights)
def test_every_night_holds_every_sequence_once(sets: list[list[set[int]]]) -> None:
    states: list[State] = []
    for each in sets:
        parts = parts_of(each)
        states = night(states, parts)

        live = Counter(number for state in states for number in state.live())
        assert live == Counter(set().union(*each))
        for state in states:
            gone = len(state.numbers) - len(state.live())
            assert gone <= 0.25 * len(state.numbers)
            for number, owner in zip(state.numbers, state.owners, strict=True):
                assert owner >= UNOWNED or number in parts_by_key(parts)[state.parts[owner]]
        assert night(states, [unread(rows) for rows in parts]) == states  # nothing is left to do


def parts_by_key(parts: list[PartRows]) -> dict[tuple[str, str], set[int]]:
    return {rows.key: set(rows.read().tokens.tolist()) for rows in parts}


@pytest.mark.slow
@many_examples(200)
@given(nights, st.integers(0, 7))
def test_an_exported_ledger_gives_the_same_generations(
    sets: list[list[set[int]]], exported_after: int
) -> None:
    states: list[State] = []
    for each in sets[: exported_after + 1]:
        states = night(states, parts_of(each))
    last = parts_of(sets[-1])

    from_ledger = night([state.exported() for state in states], last)
    expected = night(states, last)

    assert numbers_in(from_ledger) == numbers_in(expected)
    assert [state.live() for state in from_ledger] == [state.live() for state in expected]


def test_generations_grow_with_the_logarithm_of_the_nights() -> None:
    states: list[State] = []
    parts: list[PartRows] = []
    written, most = 0, 0
    for number in range(300):
        parts.append(part(f"{number}", [number]))
        before = {id(state.numbers) for state in states}
        states = night(states, parts)
        written += sum(len(s.numbers) for s in states if id(s.numbers) not in before)
        most = max(most, len(states))

    assert most <= math.log2(300) + 1
    assert written / 300 <= 2 * math.log2(300)


def stored(states: Sequence[State]) -> list[int]:
    """The sequences in the order of the shards, oldest generation first, without removed ones."""
    rows: list[int] = []
    for number, state in enumerate(states, start=1):
        size = BucketSize(len(state.numbers), 8 * len(state.numbers))
        plans = plan_bucket_shards("web", {"8": size}, 2, ShardConfig(target_bytes=1024), number)
        is_live = np.array(state.owners) < UNOWNED
        for shard in rows_of_shards(plans, np.ones(len(is_live), np.bool_), is_live):
            rows += [state.numbers[index] for index in shard.indices.tolist()]
    return rows


def drawn(states: Sequence[State]) -> list[int]:
    """The sequences in the order of the loader's first epoch."""
    if not (rows := stored(states)):
        return []
    order = SourceOrder(7, None, SourceShape("web", len(rows), (len(rows),)))
    return [rows[row] for row in order.rows(np.arange(len(rows)))[0].tolist()]


@pytest.mark.slow
@many_examples(100)
@given(nights)
def test_the_loader_draws_every_sequence_of_the_last_night_once(sets: list[list[set[int]]]) -> None:
    states: list[State] = []
    for each in sets:
        states = night(states, parts_of(each))

    assert sorted(drawn(states)) == sorted(set().union(*sets[-1]))


def eight_nights() -> list[State]:
    """A window of 8,000 sequences, which loses 100 every night, while one of 300 comes."""
    states: list[State] = []
    for number in range(8):
        old = [n for n in range(8_000) if n % 800 >= 100 or n // 800 >= number]
        new = [range(8_000 + 300 * k, 8_300 + 300 * k) for k in range(number)]
        parts = [part("old", old), *(part(f"new-{k}", list(each)) for k, each in enumerate(new))]
        states = night(states, parts)
    return states


def night_of(sequences: list[int]) -> NDArray[np.int64]:
    """The night in which each of the sequences came."""
    return np.maximum(0, (np.array(sequences) - 8_000) // 300 + 1)


def chi2_per_freedom(nights: NDArray[np.int64]) -> float:
    """chi2/dof of the nights in 16 stretches of an order: 1 where it is random."""
    stretches = np.array_split(nights, 16)
    shares = np.bincount(nights) / len(nights)
    counts = np.array([np.bincount(each, minlength=len(shares)) for each in stretches])
    expected = counts.sum(axis=1, keepdims=True) * shares
    return float(((counts - expected) ** 2 / expected).sum() / (15 * (len(shares) - 1)))


def test_the_sequences_of_each_night_are_spread_over_the_order() -> None:
    states = eight_nights()
    nights = night_of(drawn(states))
    places = (np.arange(len(nights)) + 0.5) / len(nights)

    sizes = [(len(state.numbers), len(state.live())) for state in states]
    assert sizes == [(8_000, 7_300), (1_500, 1_500), (600, 600)]
    means = [round(float(places[nights == number].mean()), 3) for number in range(8)]
    assert means == [0.501, 0.494, 0.497, 0.518, 0.472, 0.486, 0.502, 0.517]
    assert round(chi2_per_freedom(nights), 3) == 1.024
    assert round(chi2_per_freedom(night_of(stored(states)))) == 167  # shard after shard
