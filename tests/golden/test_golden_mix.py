"""The order of a phase that training runs are in the middle of: it must never change by accident.

If a test here fails, a run that resumes from a saved state repeats some samples and skips others.
Change a value only on purpose, and with the version of the mixture file.
"""

import numpy as np

from corpus_loader.interleave import Interleaving
from corpus_loader.order import PhaseOrder, SourceShape

SOURCES = (
    SourceShape("web", 12, (5, 4)),
    SourceShape("none", 0, ()),
    SourceShape("books", 5, (3,)),
    SourceShape("code", 1, (6000, 7000)),
)


def rows(order: PhaseOrder, *positions: int) -> list[tuple[int, ...]]:
    found = order.samples(np.array(positions))
    return [*zip(found.source.tolist(), found.row.tolist(), found.epoch.tolist(), strict=True)]


def test_interleaving() -> None:
    places = np.arange(18)
    source, index = Interleaving([12, 5, 1], 4).lookup(places // 4, places % 4)
    assert source.tolist() == [0, 0, 1, 2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 1]
    assert index.tolist() == [0, 1, 0, 0, 2, 3, 4, 1, 5, 6, 7, 2, 8, 9, 10, 3, 11, 4]


def test_order() -> None:
    assert rows(PhaseOrder(7, 4, None, SOURCES), *range(18), 18, 19) == [
        (3, 8345, 0),
        (0, 7, 0),
        (2, 0, 0),
        (0, 6, 0),
        (2, 1, 0),
        (0, 3, 0),
        (0, 2, 0),
        (0, 1, 0),
        (0, 5, 0),
        (2, 2, 0),
        (0, 4, 0),
        (0, 8, 0),
        (0, 7, 1),
        (0, 0, 0),
        (0, 4, 1),
        (2, 2, 1),
        (2, 0, 1),
        (0, 6, 1),
        (0, 5, 1),
        (0, 3, 1),
    ]


def test_order_by_windows_of_shards() -> None:
    assert rows(PhaseOrder(7, 4, 1, SOURCES), *range(18)) == [
        (3, 8839, 0),
        (0, 1, 0),
        (2, 0, 0),
        (0, 3, 0),
        (2, 1, 0),
        (0, 2, 0),
        (0, 0, 0),
        (0, 4, 0),
        (0, 5, 0),
        (2, 2, 0),
        (0, 7, 0),
        (0, 6, 0),
        (0, 0, 1),
        (0, 8, 0),
        (0, 1, 1),
        (2, 2, 1),
        (2, 1, 1),
        (0, 2, 1),
    ]


def test_order_of_a_long_phase() -> None:
    sources = tuple(SourceShape(f"s{n}", 10**11 * n, (10**9,) * 25 * n) for n in (1, 2, 7))
    order = PhaseOrder(0, 512, None, sources)
    assert rows(order, 0, 1, 123_456_789_012, 10**12 - 1, 10**12, 5 * 10**13) == [
        (2, 106543844063, 0),
        (2, 71435415982, 0),
        (0, 2965729862, 0),
        (2, 131867036704, 3),
        (2, 54879341487, 4),
        (2, 25393412811, 200),
    ]
