"""Intervals hold the total of a population in nine of ten samples of blocks."""

from prelude import np, pytest

from assets.report.sample_intervals import (
    Blocks,
    SampledPairs,
    copies_interval,
    count_interval,
    interval,
    poisson_high,
    poisson_low,
    student,
    totals_of,
    unseen,
)


@pytest.mark.parametrize("number", [16, 40])
def test_nine_of_ten_intervals_hold_a_skewed_total(number: int) -> None:
    rng = np.random.default_rng(1)
    population = rng.lognormal(0, 1, 4000)
    held = 0
    for _ in range(200):
        values = rng.choice(population, (number, 1), replace=False)
        found = totals_of([Blocks(np.ones((number, 1)), 4000.0, values)], rng)
        held += interval(float(found.values[0]), found.draws[:, 0]).holds(population.sum())
    assert held >= 180


def test_a_count_of_none_has_the_limit_of_what_may_be_missed() -> None:
    found = count_interval(0.0, np.zeros(2000), 10_000, unseen(10_000, 100))

    assert (found.value, found.low, found.high) == (0.0, 0.0, 192.0)
    assert unseen(10, 1) == 10


def test_limits_of_poisson_counts_are_those_of_tables() -> None:
    assert poisson_high(0) == pytest.approx(3.0, abs=0.1)
    assert poisson_high(10) == pytest.approx(16.96, abs=0.05)
    assert poisson_low(10) == pytest.approx(5.43, abs=0.05)
    assert poisson_low(0) == 0


@pytest.mark.parametrize(("freedom", "quantile"), [(1, 6.314), (4, 2.132), (10, 1.812)])
def test_student_is_that_of_tables(freedom: int, quantile: float) -> None:
    assert student(freedom) == pytest.approx(quantile, abs=0.01)


@pytest.mark.parametrize("share", [0.01, 0.3])
def test_copies_are_within_their_limits(share: float) -> None:
    """Clusters of two to five, drawn by documents: 2,000 of 20,000 documents are to go."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 6, 800)
    held = 0
    for _ in range(100):
        drawn = rng.binomial(sizes, share)
        pairs, removed = int((drawn * (drawn - 1) // 2).sum()), int((drawn - 1).clip(0).sum())
        found = copies_interval(SampledPairs(pairs, pairs / share**2, removed, share), 20_000)
        held += found.holds(float((sizes - 1).sum()))
    assert held >= 90


def test_a_sample_without_a_pair_says_nothing_of_copies() -> None:
    found = copies_interval(SampledPairs(0, 0.0, 0, 0.01), 20_000)

    assert (found.value, found.low, found.high) == (0.0, 0.0, 20_000.0)


@pytest.mark.parametrize(("doubt", "width"), [(0.0, 0.03), (0.01, 0.03), (0.2, 0.2)])
def test_equal_blocks_have_the_doubt_of_their_size(doubt: float, width: float) -> None:
    blocks = Blocks(np.ones((100, 1)), 1000.0, np.ones((100, 1)), doubt)

    found = totals_of([blocks], np.random.default_rng(0))

    assert found.values.tolist() == [1000.0]
    assert np.log(found.draws[:, 0]).std() == pytest.approx(width, rel=0.2)
    limits = interval(1000.0, found.draws[:, 0])
    assert limits.low < 1000 * np.exp(-width) < 1000 * np.exp(width) < limits.high
