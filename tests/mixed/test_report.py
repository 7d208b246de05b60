"""Charts of a phase: shares follow the order."""

from prelude import np, pytest

from assets.mixed.report import (
    Drawn,
    area_chart,
    largest_first,
    phase_markdown,
    shares_chart,
    shares_over_position,
)
from resources.drawn_charts import SLICES


def test_shares_follow_the_order() -> None:
    sources = np.array([0] * 50 + [1, 0] * 25)
    shares = shares_over_position(lambda positions: sources[positions], 100, [1.0, 3.0], 50)
    assert shares.tolist() == [[1.0, 0.0], [0.25, 0.75]]


@pytest.mark.parametrize("num_samples", [1, 7, 100, 101, 51_200, 10**9])
def test_shares_are_of_whole_blocks_and_few_samples(num_samples: int) -> None:
    seen: list[np.ndarray] = []

    def sources_at(positions: np.ndarray) -> np.ndarray:
        seen.append(positions)
        return positions % 2

    shares = shares_over_position(sources_at, num_samples, [1.0, 1.0], 10)
    assert np.allclose(shares.sum(axis=1), 1)
    assert len(shares) == max(1, min(100, num_samples // 10))
    positions = np.concatenate(seen)
    begins = positions[np.diff(positions, prepend=-2) != 1]
    assert not (begins % 10).any()
    assert 0 < len(positions) <= max(num_samples, 1 << 18)
    assert int(positions.max()) < num_samples


def test_areas_are_stacked_from_the_largest() -> None:
    chart = area_chart("mix", ["books", "web"], np.array([[0.25, 0.75], [0.5, 0.5]]))
    assert chart.names == ("web", "books")
    assert chart.shares == ((0.75, 0.25), (0.5, 0.5))


def test_sources_beyond_the_palette_are_drawn_as_one() -> None:
    names, shares = largest_first([f"s{i:02d}" for i in range(20)], np.full((3, 20), 0.05))
    assert names[-1] == "others" and len(names) == len(SLICES)
    assert np.allclose(shares.sum(axis=1), 1)


def test_a_phase_is_two_pictures() -> None:
    drawn = Drawn({"a": 3, "b": 1}, np.array([[0.75, 0.25]]), is_estimated=False)
    shown = phase_markdown("main", drawn)
    assert list(shown) == ["mix_chart", "mix_over_position"]
    assert all(picture.startswith("![") for picture in shown.values())


@pytest.mark.parametrize("is_estimated", [True, False])
def test_shares_of_samples_that_differ_in_length_are_called_estimated(is_estimated: bool) -> None:
    chart = shares_chart("shares", Drawn({"a": 3}, np.array([[1.0]]), is_estimated))
    assert ("shares, estimated from mean lengths" in chart.title) is is_estimated
