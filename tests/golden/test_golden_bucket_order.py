"""The order of a phase of one-bucket batches: it must never change by accident.

If this fails, a run that resumes from a saved state repeats some samples and skips others. Change a
value only on purpose, and with the version of the mixture file.
"""

import numpy as np

from corpus_loader.bucket_order import BucketedSource, OneBucketOrder
from corpus_loader.order import SourceShape
from corpus_loader.weighted_round_robin import Turns

SOURCES = (
    BucketedSource(SourceShape("web", 12, (5, 4, 3)), ("128", "64", "128")),
    BucketedSource(SourceShape("books", 7, (2, 5)), ("64", "256")),
)


def rows(order: OneBucketOrder, *positions: int) -> list[tuple[int, ...]]:
    found = order.samples(np.array(positions))
    return [*zip(found.source.tolist(), found.row.tolist(), found.epoch.tolist(), strict=True)]


def test_turns() -> None:
    member, number = Turns([5, 1, 3, 2]).lookup(np.arange(11))
    assert member.tolist() == MEMBERS
    assert number.tolist() == NUMBERS


def test_order() -> None:
    assert rows(OneBucketOrder(7, 4, None, SOURCES), *range(19), 19, 20) == ORDER


def test_order_by_windows_of_shards() -> None:
    assert rows(OneBucketOrder(7, 4, 1, SOURCES), *range(8)) == WINDOWED


MEMBERS = [2, 0, 3, 0, 2, 0, 1, 0, 2, 0, 3]
NUMBERS = [0, 0, 0, 1, 1, 2, 0, 3, 2, 4, 1]
ORDER = [
    (0, 1, 0),
    (0, 9, 0),
    (0, 11, 0),
    (0, 2, 0),
    (0, 7, 0),
    (1, 1, 0),
    (0, 8, 0),
    (0, 5, 0),
    (0, 4, 0),
    (0, 10, 0),
    (0, 0, 0),
    (0, 3, 0),
    (1, 6, 0),
    (1, 4, 0),
    (1, 5, 0),
    (1, 2, 0),
    (0, 6, 0),
    (1, 0, 0),
    (1, 3, 0),
    (0, 2, 1),
    (0, 9, 1),
]
WINDOWED = [(0, 3, 0), (0, 0, 0), (0, 4, 0), (0, 1, 0), (0, 8, 0), (1, 0, 0), (0, 6, 0), (0, 5, 0)]
