"""Weights that change over a phase: exact counts, near the line at every block, any position."""

from many_examples import many_examples
from prelude import Any, given, np, pairwise, pytest, st, time

from corpus_loader.interleave import ChangingInterleaving, Interleaving
from corpus_loader.order import PhaseOrder, Samples, SourceShape

Case = tuple[list[int], int, list[float], list[list[float]]]
COUNTS = st.sampled_from([1, 1, 2, 3, 17, 300, 2000])
WEIGHT = st.sampled_from([0.0, 0.1, 0.3, 1.0]) | st.floats(0, 1, width=16)
SWAPPED = ([0.0, 1.0], [[0.8, 0.2], [0.2, 0.8]])


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """(counts, block, knots, weights), whether or not counts are what the weights ask for."""
    counts = draw(st.lists(COUNTS, min_size=1, max_size=7))
    inner = draw(st.sets(st.sampled_from([0.01, 0.1, 0.25, 0.5, 0.9, 0.999]), max_size=2))
    knots = sorted({0.0, 1.0, *inner})
    some = st.lists(WEIGHT, min_size=len(knots), max_size=len(knots)).filter(any)
    return counts, draw(st.integers(1, 40)), knots, [draw(some) for _ in counts]


def ideal(
    counts: list[int], knots: list[float], weights: list[list[float]], end: np.ndarray
) -> np.ndarray:
    """[ends, sources]: the ideal numbers at positions, from sums over a fine grid."""
    x = np.unique(np.concatenate([np.linspace(0, 1, 40_001), knots]))
    curves = []
    for count, given_weights in zip(counts, weights, strict=True):
        rate = np.interp(x, knots, given_weights)
        sums = np.concatenate([[0], np.cumsum(np.diff(x) * (rate[1:] + rate[:-1]) / 2)])
        curves.append(count * sums / sums[-1])
    reached = np.sum(curves, axis=0)
    return np.stack([np.interp(end, reached, curve) for curve in curves], axis=1)


def counts_of_blocks(found: Interleaving) -> np.ndarray:
    """[blocks, sources]: samples of each source in each block."""
    blocks = -(-found.total // found.block_size)
    return np.diff(found.blocks(np.arange(blocks))[0], axis=1)


def planned(found: ChangingInterleaving, position: np.ndarray) -> np.ndarray:
    """Samples that each source ideally gives in the first positions: [positions, sources]."""
    return np.stack([np.interp(position, found.ends, one) for one in found.ideal.T], axis=1)


@pytest.mark.slow
@many_examples(150)
@given(cases())
def test_every_step_ends_within_one_sample_of_the_ideal(case: Case) -> None:
    counts, block, knots, weights = case
    found = ChangingInterleaving(counts, block, knots, weights)
    drawn = np.diff(found.upto_end, axis=1)

    assert drawn[-1].tolist() == counts
    assert drawn.sum(axis=1).tolist() == found.ends.tolist()
    assert (np.diff(drawn, axis=0) >= 0).all()
    assert np.abs(drawn - found.ideal).max() < 1
    assert np.abs(found.ideal.sum(axis=1) - found.ends).max() < 1e-3
    assert np.abs(found.ideal - ideal(counts, knots, weights, found.ends)).max() < 0.2


@pytest.mark.slow
@many_examples(150)
@given(cases(), st.sampled_from([1, 2, 7, 4096]))
def test_blocks_are_within_two_samples_of_the_share_of_their_step(case: Case, steps: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("corpus_loader.interleave.MOST_STEPS", steps)
        found = ChangingInterleaving(case[0], *case[1:])
    counts = counts_of_blocks(found)

    assert (counts >= 0).all() and counts.sum(axis=0).tolist() == case[0]
    borders = np.minimum(np.arange(len(counts) + 1) * case[1], found.total)
    assert counts.sum(axis=1).tolist() == np.diff(borders).tolist()
    assert np.abs(counts - np.diff(planned(found, borders), axis=0)).max() < 2


@pytest.mark.slow
@many_examples(60)
@given(cases())
def test_the_samples_of_a_source_come_in_their_order_at_any_position(case: Case) -> None:
    counts, block, knots, weights = case
    found = ChangingInterleaving(counts, block, knots, weights)
    places = np.arange(found.total)
    source, index = found.lookup(places // block, places % block)
    for number, count in enumerate(counts):
        assert index[source == number].tolist() == list(range(count))
    for place in range(0, found.total, 1 + found.total // 20):
        alone = found.lookup(np.array([place // block]), np.array([place % block]))
        assert (alone[0][0], alone[1][0]) == (source[place], index[place])


def test_shares_go_along_the_line() -> None:
    knots, weights = [0.0, 0.5, 1.0], [[0.9, 0.1, 0.5], [0.1, 0.9, 0.5]]
    counts = counts_of_blocks(ChangingInterleaving([40_000, 60_000], 100, knots, weights))

    middle = (np.arange(1000) + 0.5) / 1000
    line = np.interp(middle, knots, weights[0]) * 100
    assert np.abs(counts[:, 0] - line).max() < 2
    reached = np.cumsum(counts[:, 0]) - np.cumsum(line)
    assert np.abs(reached).max() < 1.1


def test_few_steps_are_off_the_line_by_half_of_what_it_changes_in_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("corpus_loader.interleave.MOST_STEPS", 10)
    found = ChangingInterleaving([50_000, 50_000], 100, *SWAPPED)

    middle = (np.arange(1000) + 0.5) / 1000
    line = np.interp(middle, [0.0, 1.0], [80.0, 20.0])
    assert 2.9 < np.abs(np.diff(planned(found, np.arange(1001) * 100)[:, 0]) - line).max() < 3.1
    assert np.abs(counts_of_blocks(found)[:, 0] - line).max() < 2 + 3


def test_weights_are_shares_of_tokens_where_samples_differ_in_length() -> None:
    """Samples of the first source have ten tokens, of the second one: half of all are of each."""
    found = ChangingInterleaving([5_000, 50_000], 50, [0.0, 1.0], [[0.8, 0.2], [0.2, 0.8]])

    reached = planned(found, np.arange(0, 55_001, 50))
    tokens = reached @ np.array([10, 1])
    of_first = 10 * np.diff(reached[:, 0]) / np.diff(tokens)
    line = 0.8 - 0.6 * (tokens[1:] + tokens[:-1]) / 2 / 100_000
    assert np.abs(of_first - line).max() < 1e-3


def order_of(size: int, block: int = 512, **shape: Any) -> PhaseOrder:
    """A phase of two sources that swap their shares."""
    sources = tuple(
        SourceShape(f"s{i}", size // 2, (1000, 500), weights=weights, **shape)
        for i, weights in enumerate([(0.8, 0.2), (0.2, 0.8)])
    )
    return PhaseOrder(3, block, None, sources, (0.0, 1.0))


def list_of(samples: Samples) -> list[tuple[int, int, int]]:
    columns = (samples.source, samples.row, samples.epoch)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize("size", [10**6, 10**9, 10**12])
def test_long_phases_are_looked_up_anywhere(size: int) -> None:
    order = order_of(size)
    positions = np.array([0, 1, size // 2, size - 2, size - 1, 7 * size + 5])
    found = list_of(order.samples(positions))
    assert [list_of(order.samples([place]))[0] for place in positions] == found
    for share, expected in ((0.0, 0.8), (0.25, 0.65), (0.5, 0.5), (1.0, 0.2)):
        first = min(int(share * size), size - 512) // 512 * 512
        block = order.samples(np.arange(first, first + 512)).source
        assert abs(np.count_nonzero(block == 0) - 512 * expected) < 3


def test_the_second_epoch_of_a_phase_begins_with_the_first_weights() -> None:
    order = order_of(2000, 100)
    first, second = (order.samples(np.arange(2000) + epoch * 2000) for epoch in range(2))
    shares = [np.bincount(found.source[:500], minlength=2).tolist() for found in (first, second)]
    assert shares[0] == shares[1] == [363, 137]
    rows = [list_of(found) for found in (first, second)]
    assert len({*rows[0], *rows[1]}) == 4000  # the second goes on with the rows of each source


def test_a_phase_goes_on_after_weights_that_change() -> None:
    order = order_of(2000, 100)
    assert order.starts_after(500).tolist() == [363, 137]
    assert order.starts_after(2000).tolist() == [1000, 1000]
    with pytest.raises(ValueError, match=r"inside a block of 100 samples\. Give 500"):
        order.starts_after(550)


def test_the_order_of_changing_weights_never_changes() -> None:
    sources = (
        SourceShape("a", 7, (4, 9), weights=(0.9, 0.3, 0.1)),
        SourceShape("b", 5, (6,), weights=(0.1, 0.3, 0.5)),
        SourceShape("c", 4, (8,), weights=(0.0, 0.4, 0.4)),
    )
    order = PhaseOrder(11, 4, None, sources, (0.0, 0.25, 1.0))

    assert list_of(order.samples(np.arange(16))) == [
        *((0, 7, 0), (0, 4, 0), (0, 9, 0), (0, 11, 0), (1, 3, 0), (2, 1, 0), (0, 8, 0), (1, 4, 0)),
        *((0, 0, 0), (2, 4, 0), (1, 5, 0), (0, 6, 0), (2, 0, 0), (1, 1, 0), (2, 3, 0), (1, 0, 0)),
    ]


def test_weights_that_cannot_be_are_refused() -> None:
    def order(knots: tuple[float, ...], *weights: float) -> PhaseOrder:
        return PhaseOrder(3, 4, None, (SourceShape("s", 5, (5,), weights=weights),), knots)

    for knots, weights in (
        ((0.0, 1.0), (0.5,)),
        ((0.0, 1.0), (0.0, 0.0)),
        ((0.0, 1.0), (0.5, -0.5)),
        ((0.0, 0.9), (0.5, 0.5)),
        ((0.0, 0.5, 0.5, 1.0), (0.5, 0.5, 0.5, 0.5)),
    ):
        with pytest.raises(ValueError, match=r"weights .* at "):
            order(knots, *weights)
    assert len(order((0.0, 1.0), 0.0, 0.5)) == 5


def test_many_sources_take_fewer_steps_and_little_time() -> None:
    counts = [2000] * 500
    weights = [[500.0 - i, 1.0 + i] for i in range(500)]
    begun = time.process_time()
    found = ChangingInterleaving(counts, 512, [0.0, 1.0], weights)
    assert time.process_time() - begun < 2  # 0.04 on a machine of its own
    assert len(found.ends) <= 133
    assert all(stop > first for first, stop in pairwise(found.ends.tolist()))
    assert np.abs(np.diff(found.upto_end, axis=1) - found.ideal).max() < 1
