"""Members of components: known by their whole digest, each of the generation of its row."""

import numpy as np

from assets.deduped.clusters.candidate_files import generations_of, known_members
from assets.deduped.index.ledger import LedgerEntry


def test_a_component_is_known_by_both_halves_of_its_digest() -> None:
    labels = np.array([3, 7, 3], np.uint64)
    now = np.array([3, 7], np.uint64), np.array([[1, 2], [5, 6]], np.uint64)
    before = now[0], np.array([[1, 9], [5, 6]], np.uint64)

    assert known_members(labels, now, before).tolist() == [False, True, False]


def test_rows_are_of_the_generation_that_ends_after_them() -> None:
    entry = LedgerEntry(0, ((2, 1), (4, 3)), "web", "a", "f", 4)

    assert generations_of(entry, np.arange(4, dtype=np.uint32)).to_list() == [1, 1, 3, 3]
