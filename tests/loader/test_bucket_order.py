"""Batches of one bucket: every row once, blocks of one bucket each, a mix that holds."""

from fractions import Fraction

from loader_corpus import steps_of
from prelude import Counter, given, np, pytest, settings, st

from corpus_loader.bucket_order import (
    BucketedSource,
    BucketedSourceOrder,
    OneBucketOrder,
    by_length,
)
from corpus_loader.order import Samples, SourceShape
from corpus_loader.split import Split
from corpus_loader.weighted_round_robin import LARGEST_ERROR, Turns

BUCKETS = ("64", "128", "256")
SHARD = st.tuples(st.sampled_from(BUCKETS), st.integers(0, 40))
SOURCE = st.tuples(st.lists(SHARD, min_size=1, max_size=6), st.floats(0, 2.5))


def order_of(
    sources: list[tuple[list[tuple[str, int]], float]], block: int = 4, window: int | None = None
) -> OneBucketOrder:
    """An order over s0, s1, ...: the shards of each, (bucket, rows), and its epochs."""
    bucketed = []
    for number, (shards, epochs) in enumerate(sources):
        rows = tuple(count for _, count in shards)
        shape = SourceShape(f"s{number}", round(sum(rows) * epochs), rows)
        bucketed.append(BucketedSource(shape, tuple(bucket for bucket, _ in shards)))
    return OneBucketOrder(5, block, window, tuple(bucketed))


def everything(order: OneBucketOrder, epoch: int = 0) -> Samples:
    """All samples of an epoch of a phase."""
    return order.samples(np.arange(len(order)) + epoch * len(order))


def buckets_of(order: OneBucketOrder, found: Samples) -> list[str]:
    """The bucket of each sample."""
    names = []
    for source, row in zip(found.source.tolist(), found.row.tolist(), strict=True):
        each = order.bucketed[source]
        ends = np.cumsum(each.shape.shard_rows)
        names.append(each.shard_buckets[int(np.searchsorted(ends, row, side="right"))])
    return names


ORDERS = st.builds(
    order_of,
    st.lists(SOURCE, min_size=1, max_size=4),
    st.integers(1, 9),
    st.sampled_from([None, 1, 2]),
).filter(len)


@settings(max_examples=150)
@given(ORDERS)
def test_whole_blocks_are_of_one_bucket_and_rests_go_from_short_to_long(
    order: OneBucketOrder,
) -> None:
    names = buckets_of(order, everything(order))
    whole = order.blocks.total * order.batch_samples

    for start in range(0, whole, order.batch_samples):
        assert len(set(names[start : start + order.batch_samples])) == 1
    assert names[whole:] == sorted(names[whole:], key=int)
    counts = Counter(names[whole:])
    assert all(count < order.batch_samples for count in counts.values())


@settings(max_examples=100)
@given(ORDERS)
def test_every_source_gives_its_samples_and_every_row_of_it_once_an_epoch(
    order: OneBucketOrder,
) -> None:
    found = everything(order)
    for number, source in enumerate(order.sources):
        rows = found.row[found.source == number]
        assert rows.size == source.samples
        times = np.bincount(rows, minlength=source.rows)
        epochs = source.samples // source.rows if source.rows else 0
        assert times.size == source.rows
        assert np.isin(times, (epochs, epochs + 1)).all()


@settings(max_examples=60)
@given(ORDERS)
def test_the_next_epoch_of_a_phase_goes_on_where_each_bucket_of_a_source_stands(
    order: OneBucketOrder,
) -> None:
    seen: Counter[tuple[int, int, int]] = Counter()
    for epoch in range(3):
        found = everything(order, epoch)
        columns = (found.source.tolist(), found.row.tolist(), found.epoch.tolist())
        seen.update(zip(*columns, strict=True))
    assert max(seen.values()) == 1  # no row twice in one pass through its bucket


@settings(max_examples=60)
@given(ORDERS, st.data())
def test_any_position_is_found_by_itself(order: OneBucketOrder, data: st.DataObject) -> None:
    wanted = data.draw(st.lists(st.integers(0, 3 * len(order) - 1), min_size=1, max_size=9))
    together = order.samples(wanted)
    for number, position in enumerate(wanted):
        alone = order.samples([position])
        for name in ("source", "row", "epoch"):
            assert getattr(alone, name)[0] == getattr(together, name)[number]


@settings(max_examples=60)
@given(ORDERS)
def test_the_blocks_of_a_prefix_hold_the_buckets_at_their_shares(order: OneBucketOrder) -> None:
    names = buckets_of(order, everything(order))[:: order.batch_samples][: order.blocks.total]
    for bucket in set(names):
        had = np.cumsum(np.array(names) == bucket)
        share = np.arange(1, len(names) + 1) * (had[-1] / len(names))
        assert np.abs(had - share).max() < LARGEST_ERROR


@settings(max_examples=60)
@given(ORDERS)
def test_each_block_holds_the_sources_of_its_bucket_to_within_two(order: OneBucketOrder) -> None:
    found = everything(order)
    names = buckets_of(order, found)
    size = order.batch_samples
    for start in range(0, order.blocks.total * size, size):
        drawn = np.array([each.samples.get(names[start], 0) for each in order.bucketed])
        there = np.bincount(found.source[start : start + size], minlength=drawn.size)
        assert np.abs(there - drawn * (size / drawn.sum())).max() < 2


@settings(max_examples=60)
@given(SOURCE.filter(lambda source: any(rows for _, rows in source[0])), st.integers(0, 300))
def test_samples_are_counted_as_the_phase_draws_them(
    source: tuple[list[tuple[str, int]], float], count: int
) -> None:
    shards = source[0]
    phase = order_of([(shards, count / sum(rows for _, rows in shards))], window=2)
    assert phase.sources[0].samples == count
    counting = BucketedSourceOrder(5, 2, phase.bucketed[0])

    rows, epoch = counting.rows(np.arange(count))
    drawn = everything(phase)

    assert sorted(zip(rows.tolist(), epoch.tolist(), strict=True)) == sorted(
        zip(drawn.row.tolist(), drawn.epoch.tolist(), strict=True)
    )


@settings(max_examples=100)
@given(SOURCE.filter(lambda source: any(rows for _, rows in source[0])), st.integers(0, 300))
def test_each_bucket_of_a_source_has_its_share_of_the_samples(
    source: tuple[list[tuple[str, int]], float], count: int
) -> None:
    shards = source[0]
    rows = sum(number for _, number in shards)
    [bucketed] = order_of([(shards, count / rows)]).bucketed
    assert sum(bucketed.samples.values()) == count
    for bucket, samples in bucketed.samples.items():
        share = Fraction(count * sum(bucketed.rows_of(bucket)), rows)
        assert abs(samples - share) < (LARGEST_ERROR if count % rows else Fraction(1, 10**9))


STEPS = st.sampled_from([(1, 8), (2, 4), (4, 1), (1, 2), (2, 2), (8, 1), (1, 1)])


@settings(max_examples=100)
@given(
    ORDERS.map(lambda order: OneBucketOrder(order.seed, 8, None, order.bucketed)),
    st.lists(st.tuples(STEPS, st.integers(0, 6)), min_size=1, max_size=4),
)
def test_no_step_of_a_run_that_changes_its_ranks_crosses_a_block(
    order: OneBucketOrder, runs: list[tuple[tuple[int, int], int]]
) -> None:
    cursor, seen = 0, []
    whole = order.blocks.total * 8
    for (ranks, batch_size), steps in [*runs, ((2, 4), 10_000)]:
        if cursor >= len(order) or len(order) < ranks:
            continue
        splits = [
            Split(len(order), rank, ranks, batch_size, "short", aligned_samples=8)
            for rank in range(ranks)
        ]
        for number, step in enumerate(zip(*(steps_of(s, cursor) for s in splits), strict=True)):
            if number == steps:
                break
            positions = [p for each in step for p in each.own]
            assert positions[0] // 8 == positions[-1] // 8 or positions[-1] >= whole
            seen += positions
            assert {each.cursor for each in step} == {positions[-1] + 1}
        cursor = seen[-1] + 1 if seen else 0
    assert seen == list(range(len(seen)))
    assert len(seen) == len(order) or len(order) < 2


@pytest.mark.parametrize("last", ["drop", "pad", "short"])
def test_the_rest_of_a_step_is_split_evenly_after_a_resume(last: str) -> None:
    splits = [Split(40, rank, 2, 4, last, aligned_samples=16) for rank in range(2)]  # type: ignore[arg-type]
    steps = [steps_of(split, 13) for split in splits]

    expected = [([13], 16), ([16, 17, 18, 19], 24), ([24, 25, 26, 27], 32), ([32, 33, 34, 35], 40)]
    assert [(s.own, s.cursor) for s in steps[0]] == expected
    assert [(s.own, s.cursor) for s in steps[1]] == [
        ([14, 15], 16), ([20, 21, 22, 23], 24), ([28, 29, 30, 31], 32), ([36, 37, 38, 39], 40)
    ]  # fmt: skip
    assert splits[0].steps_left(13) == 4
    assert len(steps[0][0].positions) == (4 if last == "pad" else 1)
    others = steps_of(splits[0], 13, skip=1, every=2)  # the second of two workers
    assert [s.own[0] for s in others] == [16, 32]
    crossing = steps_of(Split(40, 0, 1, 12, last, aligned_samples=16), 13)  # type: ignore[arg-type]
    # Steps that do not divide a block are not aligned.
    assert crossing[0].own == list(range(13, 25))


def test_buckets_are_ordered_by_the_length_that_they_name() -> None:
    assert by_length(["1025-up", "0-128", "129-256"]) == ["0-128", "129-256", "1025-up"]
    assert by_length(["128", "64", "all", "1024"]) == ["all", "64", "128", "1024"]


def test_orders_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="batch_samples is 0"):
        order_of([([("64", 3)], 1)], block=0)
    none = BucketedSource(SourceShape("s0", 3, ()), ())
    with pytest.raises(ValueError, match=r"\['s0'\], which have no rows"):
        OneBucketOrder(5, 4, None, (none,))
    with pytest.raises(ValueError, match="position -1 of a phase of 3"):
        order_of([([("64", 3)], 1)]).samples([0, -1])
    assert order_of([([("64", 3)], 1)]).samples([]).row.size == 0


def test_long_phases_are_looked_up_anywhere() -> None:
    shards = [("64", 10**11), ("128", 3 * 10**11), ("256", 10**9)]
    order = order_of([(shards, 2.3), (shards[1:], 1.1)], block=512)
    positions = np.array([0, 10**11, len(order) - 1, 3 * len(order) + 7])
    found = order.samples(positions)
    assert len(set(zip(found.source.tolist(), found.row.tolist(), strict=True))) == 4


FIBONACCI = [1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89]
COUNTS = st.lists(st.integers(0, 300), min_size=1, max_size=12).filter(any)
SKEWED = st.lists(st.sampled_from([1, 2, 3, 7, 50, 1000, 3000]), min_size=2, max_size=8)


def largest_error(counts: list[int]) -> float:
    """The largest distance of a member's turns from its share, over all prefixes."""
    total = sum(counts)
    member, _ = Turns(counts).lookup(np.arange(total))
    had = np.cumsum(np.eye(len(counts))[member], axis=0)
    shares = np.arange(1, total + 1)[:, None] * np.array(counts) / total
    return float(np.abs(had - shares).max())


@settings(max_examples=150)
@given(COUNTS | SKEWED)
def test_every_prefix_is_near_the_shares(counts: list[int]) -> None:
    assert largest_error(counts) < LARGEST_ERROR


@pytest.mark.parametrize(("counts", "error"), [([7], 0), ([100] * 8, 1), (FIBONACCI, 1.2)])
def test_equal_and_worst_counts_are_near_too(counts: list[int], error: float) -> None:
    assert largest_error(counts) <= error


@settings(max_examples=100)
@given(COUNTS | SKEWED, st.data())
def test_turns_are_numbered_and_counted_exactly(counts: list[int], data: st.DataObject) -> None:
    turns, total = Turns(counts), sum(counts)
    member, number = turns.lookup(np.arange(total))

    for each, count in enumerate(counts):
        assert number[member == each].tolist() == list(range(count))
    some = data.draw(st.integers(0, total))
    assert turns.before(some) == np.bincount(member[:some], minlength=len(counts)).tolist()
    assert turns.before(total) == counts


def test_turns_are_found_by_themselves_beyond_int64() -> None:
    counts = [10**12, 3 * 10**11, 7, 0]
    turns = Turns(counts)
    places = np.array([10**12, 0, 5 * 10**11, turns.total - 1])

    member, number = turns.lookup(places)

    for place, each, index in zip(*map(np.ndarray.tolist, (places, member, number)), strict=True):
        assert turns.before(place)[each] == index
        assert turns.before(place + 1)[each] == index + 1
    assert turns.before(turns.total) == counts


def test_members_without_turns_are_passed_over() -> None:
    member, number = Turns([0, 2, 0, 1]).lookup(np.arange(3))
    assert (member.tolist(), number.tolist()) == ([1, 3, 1], [0, 0, 1])
    assert Turns([0, 0]).total == 0
