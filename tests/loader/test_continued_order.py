"""Orders that go on where an earlier phase stopped: nothing is drawn twice, nothing left out."""

from dataclasses import replace

from prelude import given, np, pytest, settings, st

from corpus_loader.order import PhaseOrder, SourceShape

COUNTS = st.lists(st.integers(0, 60), min_size=3, max_size=3).filter(any)


def order_of(counts: list[int], block: int = 4, window: int | None = None) -> PhaseOrder:
    """A phase over three sources of 30, 7 and 50 rows."""
    rows = ((20, 10), (7,), (25, 20, 5))
    shapes = [SourceShape(f"s{i}", count, rows[i]) for i, count in enumerate(counts)]
    return PhaseOrder(3, block, window, tuple(shapes))


def going_on(order: PhaseOrder, position: int, counts: list[int], block: int) -> PhaseOrder:
    """A phase with other counts and blocks that goes on from a position of an order."""
    starts = order.starts_after(position).tolist()
    shapes = zip(order.sources, counts, starts, strict=True)
    sources = tuple(replace(shape, samples=n, start=start) for shape, n, start in shapes)
    return replace(order, batch_samples=block, sources=sources)


def drawn(order: PhaseOrder, stop: int) -> list[tuple[int, int, int]]:
    """(source, epoch, row) of the first positions of an order."""
    found = order.samples(np.arange(stop))
    columns = (found.source, found.epoch, found.row)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def first_of_each(order: PhaseOrder, counts: list[int]) -> set[tuple[int, int, int]]:
    """(source, epoch, row) of the first samples of each source, drawn one by one."""
    whole = set()
    for number, (shape, count) in enumerate(zip(order.sources, counts, strict=True)):
        only = replace(shape, samples=max(1, count), start=0)
        alone = replace(order, sources=(only,))
        whole |= {(number, *rest) for _, *rest in drawn(alone, count)}  # type: ignore[misc]
    return whole


@settings(max_examples=100)
@given(
    st.lists(st.tuples(COUNTS, st.integers(1, 9), st.floats(0, 2)), min_size=2, max_size=4),
    st.sampled_from([None, 1, 2]),
)
def test_a_chain_of_phases_draws_the_first_samples_of_each_source_once(
    chain: list[tuple[list[int], int, float]], window: int | None
) -> None:
    (counts, block, share), *others = chain
    order = order_of(counts, block, window)
    seen: list[tuple[int, int, int]] = []
    for counts, next_block, next_share in [*others, ([1, 1, 1], 1, 0.0)]:
        epoch, place = divmod(int(share * len(order)), len(order))
        stop = epoch * len(order) + place // block * block
        seen += drawn(order, stop)
        order = going_on(order, stop, counts, next_block)
        block, share = next_block, next_share
    assert len(seen) == len(set(seen))
    assert set(seen) == first_of_each(order, order.starts.tolist())


@settings(max_examples=60)
@given(COUNTS, COUNTS, st.integers(1, 9))
def test_any_position_computed_alone_equals_the_sequence(
    first: list[int], then: list[int], block: int
) -> None:
    order = order_of(first, block)
    order = going_on(order, len(order), then, block)
    whole = drawn(order, 2 * len(order))
    for position in range(0, 2 * len(order), 7):
        found = order.samples([position])
        one = (int(found.source[0]), int(found.epoch[0]), int(found.row[0]))
        assert one == whole[position]


def test_the_samples_of_an_order_that_goes_on() -> None:
    order = going_on(order_of([20, 5, 9]), 24, [9, 4, 1], 7)
    assert order.starts.tolist() == [14, 4, 6]
    assert drawn(order, 14) == [
        *((1, 0, 3), (1, 0, 5), (0, 0, 7), (0, 0, 18), (0, 0, 5), (2, 0, 48), (0, 0, 23)),
        *((0, 0, 19), (0, 0, 11), (1, 0, 6), (0, 0, 0), (1, 1, 5), (0, 0, 13), (0, 0, 9)),
    ]


def test_positions_inside_a_block_are_refused() -> None:
    with pytest.raises(ValueError, match=r"10 is inside a block of 4 samples. Give 8, and 2 sam"):
        order_of([20, 5, 9]).starts_after(10)
    with pytest.raises(ValueError, match=r"33 .* Give 32, .* or 34, and 1 are passed over"):
        order_of([20, 5, 9]).starts_after(33)
    with pytest.raises(ValueError, match="no position -1 in a phase of 34"):
        order_of([20, 5, 9]).starts_after(-1)
    with pytest.raises(ValueError, match="'s' starts at -1"):
        PhaseOrder(3, 4, None, (SourceShape("s", 1, (5,), -1),))
