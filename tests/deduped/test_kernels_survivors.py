"""Survivors of components and of stars where all documents are candidates of each other."""

from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from many_examples import many_examples
from numpy.typing import NDArray

from assets.deduped.kernels.candidate_sets import LIMIT
from assets.deduped.kernels.component_survivors import component_survivors
from assets.deduped.kernels.document_rows import group_pairs
from assets.deduped.kernels.pair_similarity import BY_SIGNATURE, Evidence, similarity
from assets.deduped.kernels.star_survivors import star_survivors

VALUES = 4
Matrix = list[list[bool]]


def evidence(signatures: NDArray[np.uint32], texts: list[int], threshold: float) -> Evidence:
    """Documents of a group without fields; equal numbers are equal texts."""
    size = len(signatures)
    arrays = (
        np.array([[texts.index(text)] for text in texts], np.uint32).reshape(-1, 1),
        np.zeros(size, np.uint64),
        signatures,
        np.ones(size, np.bool_),
        np.empty(0, np.uint64),
        np.zeros((size, 2), np.int64),
    )
    for array in arrays:
        array.flags.writeable = False
    return Evidence(*arrays, BY_SIGNATURE, VALUES, threshold)


def chained(size: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Candidates that connect all rows: each with the first and with the one before it."""
    pairs = [(first, row) for row in range(1, size) for first in {0, row - 1}]
    offsets, rows = group_pairs(np.array(pairs, np.int32).reshape(-1, 2), size)
    return offsets, rows


def component_reference(
    similar: Matrix, texts: list[int], stops: list[int], ranks: list[int]
) -> list[int]:
    """Compare all pairs; a group of a round joins the older cluster of the best survivor.

    Copies of an older document join its cluster.
    """
    clusters: list[set[int]] = []
    first_copies = [texts.index(text) for text in texts]
    for start, stop in pairwise(stops):
        copies = [row for row in range(start, stop) if first_copies[row] < start]
        new = [row for row in range(start, stop) if row not in copies]
        groups = [{row} for row in new]
        for a, b in combinations(new, 2):
            one, other = (next(g for g in groups if row in g) for row in (a, b))
            if similar[a][b] and one is not other:
                groups.remove(other)
                one |= other
        older = [min(cluster, key=ranks.__getitem__) for cluster in clusters]
        joined = []
        for group in groups:
            near = [
                kept
                for kept, cluster in zip(older, clusters, strict=True)
                if any(similar[a][b] for a in cluster for b in group)
            ]
            joined.append(min(near, key=ranks.__getitem__, default=None))
        for group, kept in zip(groups, joined, strict=True):
            if kept is None:
                clusters.append(group)
            else:
                clusters[older.index(kept)] |= group
        for row in copies:
            next(c for c in clusters if first_copies[row] in c).add(row)
    best = {row: min(c, key=ranks.__getitem__) for c in clusters for row in c}
    return [best[row] for row in range(len(ranks))]


def star_reference(likeness: list[list[float]], similar: Matrix, ranks: list[int]) -> list[int]:
    """Decide from the best rank on: the most similar of the survivors, else the row itself."""
    survivors = [-1] * len(ranks)
    for row in sorted(range(len(ranks)), key=ranks.__getitem__):
        rivals = [kept for kept in range(len(ranks)) if survivors[kept] == kept]
        rivals = [kept for kept in rivals if similar[kept][row]]
        best = min(rivals, key=lambda kept: (-likeness[kept][row], ranks[kept]), default=row)
        survivors[row] = best
    return survivors


@st.composite
def corpora(draw: st.DrawFn) -> dict[str, Any]:
    size = draw(st.integers(1, 12))
    values = st.lists(st.integers(0, 2), min_size=VALUES, max_size=VALUES)
    signatures = draw(st.lists(values, min_size=size, max_size=size))
    texts = [draw(st.sampled_from([row, row, draw(st.integers(0, row))])) for row in range(size)]
    texts = [texts[text] for text in texts]
    return {
        "signatures": [signatures[text] for text in texts],
        "texts": texts,
        "stops": [0, *sorted(draw(st.lists(st.integers(0, size), max_size=2))), size],
        "threshold": draw(st.sampled_from([0.5, 0.75, 1.0])),
        "order": draw(st.permutations(range(size))),
    }


def inputs(corpus: dict[str, Any]) -> tuple[Evidence, list[list[float]], Matrix]:
    signatures = np.array(corpus["signatures"], np.uint32)
    compared = evidence(signatures, corpus["texts"], corpus["threshold"])
    rows = range(len(signatures))
    likeness = [[similarity(compared, a, b) for b in rows] for a in rows]
    return compared, likeness, [[like >= corpus["threshold"] for like in row] for row in likeness]


def run(kernel: Any, compared: Evidence, stops: list[int], order: list[int]) -> tuple[Any, Any]:
    """The survivors that a kernel gives, and the rank of each row."""
    by_rank = np.array(order, np.int32)
    ranks = np.argsort(by_rank).astype(np.int32)
    row_stops = np.array(stops, np.int64)
    survivors = kernel(compared, chained(len(order)), row_stops, (ranks, by_rank))
    return survivors.tolist(), ranks.tolist()


@pytest.mark.slow
@many_examples(300)
@given(corpora())
def test_components_of_small_sets_equal_all_pairs(corpus: dict[str, Any]) -> None:
    compared, _, similar = inputs(corpus)

    survivors, ranks = run(component_survivors, compared, corpus["stops"], corpus["order"])

    assert survivors == component_reference(similar, corpus["texts"], corpus["stops"], ranks)


@pytest.mark.slow
@many_examples(300)
@given(corpora())
def test_stars_of_small_sets_equal_all_pairs(corpus: dict[str, Any]) -> None:
    compared, likeness, similar = inputs(corpus)
    stops, order = corpus["stops"], corpus["order"]
    rounds = [sum(row >= stop for stop in stops[1:]) for row in range(len(order))]
    order = sorted(order, key=lambda row: rounds[row])  # better ranks in an earlier round

    survivors, ranks = run(star_survivors, compared, stops, order)

    assert survivors == star_reference(likeness, similar, ranks)


def ring(size: int, distinct: int) -> Evidence:
    """Documents whose signatures are equal every `distinct` rows, and unlike in between."""
    numbers = np.arange(size, dtype=np.uint32) % distinct
    return evidence(np.repeat(numbers[:, None], VALUES, axis=1), list(range(size)), 0.5)


def test_a_set_over_the_limit_is_compared_with_one_leader_per_cluster() -> None:
    size, order = 3 * LIMIT, list(range(3 * LIMIT))
    expected = [row % LIMIT for row in order]

    for kernel in (component_survivors, star_survivors):
        assert run(kernel, ring(size, LIMIT), [0, size], order)[0] == expected


def test_clusters_after_the_limit_have_no_leader() -> None:
    size = 2 * (LIMIT + 1)
    order = list(range(size))

    components = run(component_survivors, ring(size, LIMIT + 1), [0, size], order)[0]
    stars = run(star_survivors, ring(size, LIMIT + 1), [0, size], order)[0]

    expected = [row % (LIMIT + 1) for row in order]
    expected[-1] = size - 1  # shares no key with row LIMIT, the 65th cluster
    assert stars == components == expected


@pytest.mark.parametrize(("size", "survivor"), [(LIMIT, 0), (LIMIT + 1, LIMIT)])
def test_members_without_a_leader_are_compared_up_to_the_limit(size: int, survivor: int) -> None:
    signatures = np.repeat(np.arange(10, 10 + size, dtype=np.uint32)[:, None], VALUES, axis=1)
    signatures[[0, 1, -1]] = [[0, 0, 0, 0], [0, 0, 1, 1], [2, 2, 1, 1]]  # the last is like row 1

    compared = evidence(signatures, list(range(size)), 0.5)

    survivors = run(component_survivors, compared, [0, size], list(range(size)))[0]
    assert survivors == [0, 0, *range(2, size - 1), survivor]


def test_a_candidate_is_compared_in_a_set_over_the_limit() -> None:
    size = LIMIT + 20
    numbers = np.arange(size, dtype=np.uint32)
    numbers[-1] = numbers[-2]  # neighbours, and no leaders
    compared = evidence(np.repeat(numbers[:, None], VALUES, axis=1), list(range(size)), 0.5)

    for kernel in (component_survivors, star_survivors):
        survivors = run(kernel, compared, [0, size], list(range(size)))[0]
        assert survivors == [*range(size - 1), size - 2]


def test_a_copy_follows_its_first_in_a_set_over_the_limit() -> None:
    numbers = np.array([*range(LIMIT + 2), LIMIT], np.uint32)  # the last is a copy of no leader
    texts = numbers.tolist()
    compared = evidence(np.repeat(numbers[:, None], VALUES, axis=1), texts, 0.5)

    for kernel in (component_survivors, star_survivors):
        assert run(kernel, compared, [0, len(texts)], list(range(len(texts))))[0] == texts
