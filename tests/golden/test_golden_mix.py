"""Orders of phases that training runs are in the middle of: they must never change by accident.

If a test here fails, a run that resumes from a saved state repeats some samples and skips others.
Change a value only on purpose, and with the version of the mixture file.
"""

from fractions import Fraction

import numpy as np

from assets.mixed.budgets import ClassTokens
from assets.mixed.plan import plan_phase
from corpus_loader.bucket_order import BucketedSource, OneBucketOrder
from corpus_loader.interleave import Interleaving
from corpus_loader.order import PhaseOrder, SourceShape
from corpus_loader.weighted_round_robin import Turns
from resources.settings.phases import PhaseConfig

SOURCES = (
    SourceShape("web", 12, (5, 4)),
    SourceShape("none", 0, ()),
    SourceShape("books", 5, (3,)),
    SourceShape("code", 1, (6000, 7000)),
)
BUCKETED = (
    BucketedSource(SourceShape("web", 12, (5, 4, 3)), ("128", "64", "128")),
    BucketedSource(SourceShape("books", 7, (2, 5)), ("64", "256")),
)
ROWS = {"web/class-0": (5, 4), "web/class-1": (4, 2), "web/class-2": (2, 1), "books": (5,)}
TIMES = {"web/class-0": 0, "web/class-1": 1, "web/class-2": 3}
ROW_TOKENS = 8


def columns(order: PhaseOrder | OneBucketOrder, *positions: int) -> list[list[int]]:
    """Source, row and epoch of the samples at some positions."""
    found = order.samples(np.array(positions))
    return [found.source.tolist(), found.row.tolist(), found.epoch.tolist()]


def test_interleaving() -> None:
    places = np.arange(18)
    source, index = Interleaving([12, 5, 1], 4).lookup(places // 4, places % 4)
    assert source.tolist() == [0, 0, 1, 2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 1]
    assert index.tolist() == [0, 1, 0, 0, 2, 3, 4, 1, 5, 6, 7, 2, 8, 9, 10, 3, 11, 4]


def test_order() -> None:
    assert columns(PhaseOrder(7, 4, None, SOURCES), *range(20)) == [
        [3, 0, 2, 0, 2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 2, 2, 0, 0, 0],
        [8345, 7, 0, 6, 1, 3, 2, 1, 5, 2, 4, 8, 7, 0, 4, 2, 0, 6, 5, 3],
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 1, 1, 1, 1, 1],
    ]


def test_order_by_windows_of_shards() -> None:
    assert columns(PhaseOrder(7, 4, 1, SOURCES), *range(18)) == [
        [3, 0, 2, 0, 2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 2, 2, 0],
        [8839, 1, 0, 3, 1, 2, 0, 4, 5, 2, 7, 6, 0, 8, 1, 2, 1, 2],
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 1, 1, 1],
    ]


def test_order_of_a_long_phase() -> None:
    sources = tuple(SourceShape(f"s{n}", 10**11 * n, (10**9,) * 25 * n) for n in (1, 2, 7))
    order = PhaseOrder(0, 512, None, sources)
    positions = (0, 1, 123_456_789_012, 10**12 - 1, 10**12, 5 * 10**13)
    assert columns(order, *positions) == [
        [2, 2, 0, 2, 2, 2],
        [106543844063, 71435415982, 2965729862, 131867036704, 54879341487, 25393412811],
        [0, 0, 0, 3, 4, 200],
    ]


def test_turns() -> None:
    member, number = Turns([5, 1, 3, 2]).lookup(np.arange(11))
    assert member.tolist() == [2, 0, 3, 0, 2, 0, 1, 0, 2, 0, 3]
    assert number.tolist() == [0, 0, 0, 1, 1, 2, 0, 3, 2, 4, 1]


def test_order_of_one_bucket_batches() -> None:
    assert columns(OneBucketOrder(7, 4, None, BUCKETED), *range(21)) == [
        [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 1, 1, 0, 0],
        [1, 9, 11, 2, 7, 1, 8, 5, 4, 10, 0, 3, 6, 4, 5, 2, 6, 0, 3, 2, 9],
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1],
    ]
    assert columns(OneBucketOrder(7, 4, 1, BUCKETED), *range(8)) == [
        [0, 0, 0, 0, 0, 1, 0, 0],
        [3, 0, 4, 1, 8, 0, 6, 5],
        [0, 0, 0, 0, 0, 0, 0, 0],
    ]


def test_order_with_upsample_from_its_plan() -> None:
    classes = {
        name: ClassTokens(ROW_TOKENS * sum(ROWS[name]), Fraction(times))
        for name, times in TIMES.items()
    }
    phase = PhaseConfig.model_validate(
        {
            "name": "p",
            "upsample": [[0.4, 0], [0.9, 1], [1, 3]],
            "budgets": {"web": 120, "books": 32},
        }
    )
    available = {"web": sum(unit.available for unit in classes.values()), "books": 40}
    plan = plan_phase(phase, available, classes={"web": classes})
    sources = tuple(
        SourceShape(unit.source, unit.planned // ROW_TOKENS, ROWS[unit.source])
        for unit in plan.units
    )
    assert [unit.source for unit in plan.units] == [*ROWS]
    assert columns(PhaseOrder(7, 4, None, sources), *range(19)) == [
        [3, 2, 2, 1, 3, 1, 1, 2, 1, 3, 2, 2, 2, 1, 2, 2, 2, 3, 1],
        [0, 1, 2, 3, 1, 0, 5, 0, 4, 2, 1, 0, 1, 1, 2, 2, 0, 3, 2],
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 0, 1, 2, 2, 0, 0],
    ]
