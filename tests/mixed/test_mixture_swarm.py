"""Mixtures of a swarm are within the limits, sum to one, and are the same everywhere."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from prelude import Any, pytest

from assets.mixed.mixture_swarm import as_weights, domains_of, draw_mixtures, within

SIZES = {"web": 0.6, "books": 0.1, "code": 0.3}
ALL = dict.fromkeys(SIZES, 1.0)


@st.composite
def phases(draw: st.DrawFn) -> Any:
    """Natural shares, limits that sum to 1 or more, and the sources whose ratio stays."""
    size = st.integers(1, 10**6)
    tokens = draw(st.lists(size, min_size=1, max_size=8))
    names = [f"s{number}" for number in range(len(tokens))]
    natural = {name: count / sum(tokens) for name, count in zip(names, tokens, strict=True)}
    room = draw(st.lists(size, min_size=len(tokens), max_size=len(tokens)))
    factor = draw(st.floats(1.0, 20.0)) / sum(room)
    most = {name: min(1.0, each * factor) for name, each in zip(names, room, strict=True)}
    kept = {name: natural[name] for name in draw(st.sets(st.sampled_from(names)))}
    return natural, most, kept


@given(phases(), st.integers(1, 12))
def test_weights_are_within_the_limits_and_sum_to_one(phase: Any, runs: int) -> None:
    natural, most, kept = phase
    try:
        domains = domains_of(*phase)
    except ValueError as error:
        group = min(most[name] * sum(kept.values()) / kept[name] for name in kept) if kept else 0
        assert sum(most[name] for name in most if name not in kept) + group < 1 + 1e-9, error
        return

    for weights in draw_mixtures(domains, runs):
        assert sum(round(weight * 1e6) for weight in weights.values()) == 10**6
        rounding = len(weights) * 1e-6  # all that is left goes to the source with most room
        assert all(0 <= weights[name] <= most[name] + rounding for name in natural)
        total = sum(weights[name] for name in kept)
        for name in kept:
            assert weights[name] == pytest.approx(
                total * kept[name] / sum(kept.values()), abs=2 * rounding
            )


def test_the_mixtures_are_the_same_on_every_machine_and_for_any_number() -> None:
    domains = domains_of(SIZES, ALL | {"code": 0.4}, {})

    few, many = draw_mixtures(domains, 4), draw_mixtures(domains, 6)

    assert many[:4] == few == GOLDEN


GOLDEN = [
    {"web": 0.6, "books": 0.1, "code": 0.3},
    {"web": 0.693176, "books": 0.267373, "code": 0.039451},
    {"web": 0.999768, "books": 1e-06, "code": 0.000231},
    {"web": 0.65115, "books": 0.004654, "code": 0.344196},
]


def test_the_ratio_of_the_sources_that_did_not_change_stays() -> None:
    domains = domains_of(SIZES, ALL, {"web": 0.8, "books": 0.2})

    assert domains.spread(domains.prior).tolist() == pytest.approx([0.56, 0.14, 0.3])
    for weights in draw_mixtures(domains, 5):
        assert weights["web"] == pytest.approx(4 * weights["books"], abs=1e-5)
    codes = [weights["code"] for weights in draw_mixtures(domains, 5)]
    assert len(set(codes)) == 5


def test_a_group_is_as_limited_as_the_first_of_it_that_ends() -> None:
    domains = domains_of(SIZES, ALL | {"books": 0.1}, {"web": 0.8, "books": 0.2})

    assert domains.limits.tolist() == pytest.approx([1, 0.5])


@pytest.mark.parametrize(
    ("shares", "limits", "expected"),
    [
        ([0.5, 0.5], [1, 1], [0.5, 0.5]),
        ([0.8, 0.1, 0.1], [0.4, 1, 1], [0.4, 0.3, 0.3]),
        ([0.8, 0.15, 0.05], [0.4, 0.4, 1], [0.4, 0.4, 0.2]),  # what is given away fills another
        ([1, 0, 0], [0.4, 1, 1], [0.4, 0.3, 0.3]),
        ([0.2, 0.8], [0.5, 0.5], [0.5, 0.5]),
    ],
)
def test_shares_above_their_limit_go_to_the_others(
    shares: list[float], limits: list[float], expected: list[float]
) -> None:
    assert within(np.array(shares), np.array(limits)).tolist() == pytest.approx(expected)


def test_sources_that_have_too_little_are_refused() -> None:
    with pytest.raises(ValueError, match="fewer tokens than it asks for"):
        domains_of(SIZES, dict.fromkeys(SIZES, 0.3), {})
    with pytest.raises(ValueError, match="at the ratio of those that are kept"):
        domains_of(SIZES, ALL | {"books": 0.1, "code": 0.4}, {"web": 0.8, "books": 0.2})


def test_what_rounding_leaves_goes_where_there_is_room() -> None:
    thirds, most = np.full(3, 1 / 3), np.array([1 / 3, 1 / 3, 0.5])

    assert as_weights(("a", "b", "c"), thirds, most) == {
        "a": 0.333333,
        "b": 0.333333,
        "c": 0.333334,
    }
