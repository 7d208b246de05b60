"""Duplicate clusters as connected components, stable from one round to the next.

Purpose: rounds are decided one after the other, and no round changes an earlier one. The new
documents of a round form groups. A group that is similar to clusters of earlier rounds joins the
one with the best survivor and does not merge the others, so published documents stay published.
Two documents are compared only if the answer can still change the result: about n comparisons in a
cluster of n documents, however many pairs it has.
Trade-off: all pairs of a small set of candidates are compared, but only candidate pairs and leaders
in a larger one (see candidate_sets). A similar pair there that shares no key may be missed.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import from_dtype, njit, types
from numpy.typing import NDArray

from assets.deduped.kernels.candidate_sets import (
    END,
    LIMIT,
    SETS,
    CandidateSets,
    add_leader,
    join_sets,
    new_sets,
    root,
)
from assets.deduped.kernels.pair_similarity import EVIDENCE, Evidence, is_duplicate
from assets.text.kernels.compiling import ARRAY_KERNEL

_UNTOUCHED = np.int32(0x7FFFFFFF)

_ranks = types.Array(types.int32, 1, "C", readonly=True)
_stops = types.Array(types.int64, 1, "C", readonly=True)


CLUSTER = np.dtype(
    [
        ("parent", np.int32),
        ("size", np.int32),  # of roots: number of distinct texts
        ("best", np.int32),  # of roots: best rank in the cluster
        ("touched", np.int32),  # of new roots: best rank among the older clusters similar to it
    ]
)
CLUSTERS = types.Array(from_dtype(CLUSTER), 1, "C")
Clusters = NDArray[np.void]


@njit(CLUSTERS(_ranks), **ARRAY_KERNEL)
def _new_clusters(ranks: NDArray[np.int32]) -> Clusters:
    """Return clusters of one row each."""
    clusters = np.empty(len(ranks), CLUSTER)
    for row in range(len(ranks)):
        clusters[row].parent, clusters[row].size = row, 1
        clusters[row].best, clusters[row].touched = ranks[row], _UNTOUCHED
    return clusters


@njit(types.void(CLUSTERS, EVIDENCE, types.int64, types.int64, types.int64), **ARRAY_KERNEL)
def _compare(clusters: Clusters, evidence: Evidence, one: int, other: int, first_new: int) -> None:
    """Compare a document with a new one, `other`, and record the result.

    The comparison is skipped if it cannot change a cluster.
    """
    node = np.int64(evidence.same[one, 0])
    other_node = np.int64(evidence.same[other, 0])
    if other_node < first_new:  # a copy of an earlier document is in that document's cluster
        node, other_node = other_node, node
    ours, theirs = root(clusters, node), root(clusters, other_node)
    # They are together already, or both are of earlier rounds, which are not changed.
    if ours == theirs or other_node < first_new:
        return
    if node < first_new:
        rank = clusters[ours].best
        # Only a better survivor than the known one changes which cluster the group joins.
        if rank < clusters[theirs].touched and is_duplicate(evidence, one, other):
            clusters[theirs].touched = rank
        return
    if is_duplicate(evidence, one, other):
        kept, joined = min(ours, theirs), max(ours, theirs)
        clusters[joined].parent = kept
        clusters[kept].size += clusters[joined].size
        clusters[kept].best = min(clusters[kept].best, clusters[joined].best)
        clusters[kept].touched = min(clusters[kept].touched, clusters[joined].touched)


@njit(types.boolean(CLUSTERS, SETS, types.int64, _ranks), **ARRAY_KERNEL)
def _is_settled(
    clusters: Clusters, sets: CandidateSets, row: int, order: NDArray[np.int32]
) -> bool:
    """Check that all of a row's set is in its group or in the cluster that the group will join."""
    cluster = root(clusters, row)
    size, touched = clusters[cluster].size, clusters[cluster].touched
    if touched != _UNTOUCHED:
        size += clusters[root(clusters, np.int64(order[touched]))].size
    # No document of the set is outside of them: no comparison can change anything.
    return size == sets[root(sets, row)].size


@njit(types.void(CLUSTERS, EVIDENCE, SETS, types.int64, types.int64), **ARRAY_KERNEL)
def _compare_with_set(
    clusters: Clusters, evidence: Evidence, sets: CandidateSets, row: int, first_new: int
) -> None:
    """Compare a new document with the earlier rows of its set, or with a large set's leaders."""
    home = root(sets, row)
    is_small = sets[home].size <= LIMIT
    other = np.int32(home) if is_small else sets[home].first_leader
    while other != END:
        if other < row:
            _compare(clusters, evidence, np.int64(other), row, first_new)
        other = sets[other].next_member if is_small else sets[other].next_leader


@njit(types.void(CLUSTERS, SETS, types.int64), **ARRAY_KERNEL)
def _add_leader_of_cluster(clusters: Clusters, sets: CandidateSets, row: int) -> None:
    """Make a row a leader of its set if its cluster has no leader there."""
    cluster, home = root(clusters, row), root(sets, row)
    if clusters[cluster].touched != _UNTOUCHED:
        return
    leader = sets[home].first_leader
    while leader != END and root(clusters, np.int64(leader)) != cluster:
        leader = sets[leader].next_leader
    if leader == END:
        add_leader(sets, home, row)


@njit(types.void(CLUSTERS, EVIDENCE, types.int64, types.int64, _ranks), **ARRAY_KERNEL)
def _close_round(
    clusters: Clusters, evidence: Evidence, start: int, stop: int, order: NDArray[np.int32]
) -> None:
    """Attach the round's groups, and its copies of earlier documents, to the earlier clusters."""
    for row in range(start, stop):
        if clusters[row].parent == row and clusters[row].touched != _UNTOUCHED:
            # It joins one of the older clusters that it is similar to, and does not merge them.
            survivor = np.int64(order[clusters[row].touched])
            cluster = root(clusters, survivor)
            clusters[row].parent = cluster
            clusters[cluster].size += clusters[row].size
            clusters[cluster].best = min(clusters[cluster].best, clusters[row].best)
    for row in range(start, stop):
        node = np.int64(evidence.same[row, 0])
        # Only `best`: a copy adds no distinct text to the cluster's size.
        if node < start:
            cluster = root(clusters, node)
            clusters[row].parent = cluster
            clusters[cluster].best = min(clusters[cluster].best, clusters[row].best)


@njit(
    types.int32[::1](EVIDENCE, types.Tuple((_stops, _ranks)), _stops, types.UniTuple(_ranks, 2)),
    **ARRAY_KERNEL,
)
def component_survivors(
    evidence: Evidence,
    candidates: tuple[NDArray[np.int64], NDArray[np.int32]],
    row_stops: NDArray[np.int64],
    ranking: tuple[NDArray[np.int32], NDArray[np.int32]],
) -> NDArray[np.int32]:
    """Return the survivor of each row's cluster, int32 [n]: the cluster's best-ranked row.

    `candidates`: the earlier candidates of each row, as `group_pairs` returns them. `row_stops`,
    int64 [rounds + 1]: round r has the rows row_stops[r] to row_stops[r + 1] - 1. `ranking`: the
    rank of each row, int32 [n], 0 the best, and the row of each rank, int32 [n].
    """
    (offsets, earlier), (ranks, order) = candidates, ranking
    size = len(ranks)
    sets = new_sets(size)
    clusters = _new_clusters(ranks)
    for r in range(len(row_stops) - 1):
        start, stop = row_stops[r], row_stops[r + 1]
        for row in range(start, stop):
            node = np.int64(evidence.same[row, 0])
            # Copies of a new document are in its group without a comparison.
            if start <= node < row:
                clusters[row].parent = node
                clusters[node].best = min(clusters[node].best, clusters[row].best)
        for row in range(start, stop):
            node = np.int64(evidence.same[row, 0])
            # Candidates first, as most duplicates are: what they join is not compared below.
            for i in range(offsets[row], offsets[row + 1]):
                other = np.int64(earlier[i])
                join_sets(sets, np.int64(evidence.same[other, 0]), node)
                _compare(clusters, evidence, other, row, start)
        for row in range(start, stop):
            # Once for each text, by its first row.
            if evidence.same[row, 0] == row:
                if not _is_settled(clusters, sets, row, order):
                    _compare_with_set(clusters, evidence, sets, row, start)
                _add_leader_of_cluster(clusters, sets, row)
        _close_round(clusters, evidence, start, stop, order)
    survivors = np.empty(size, np.int32)
    for row in range(size):
        survivors[row] = order[clusters[root(clusters, row)].best]
    return survivors
