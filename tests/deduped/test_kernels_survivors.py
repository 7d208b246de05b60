"""Survivors of components and of stars in sets of candidates that are over the limit."""

from prelude import Any, NDArray, np, pytest

from assets.deduped.kernels.candidate_sets import LIMIT
from assets.deduped.kernels.component_survivors import component_survivors
from assets.deduped.kernels.document_rows import group_pairs
from assets.deduped.kernels.pair_similarity import BY_SIGNATURE, Evidence
from assets.deduped.kernels.star_survivors import star_survivors

VALUES = 4


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


def run(kernel: Any, compared: Evidence, stops: list[int], order: list[int]) -> tuple[Any, Any]:
    """The survivors that a kernel gives, and the rank of each row."""
    by_rank = np.array(order, np.int32)
    ranks = np.argsort(by_rank).astype(np.int32)
    row_stops = np.array(stops, np.int64)
    survivors = kernel(compared, chained(len(order)), row_stops, (ranks, by_rank))
    return survivors.tolist(), ranks.tolist()


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
