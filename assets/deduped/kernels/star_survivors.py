"""Clusters as stars: a removed document is itself similar to the one that stays.

Purpose: documents are decided from the best rank to the worst. One that is a duplicate of a
document that stays is removed for the most similar of these; any other stays. No chain of small
changes can remove what is unlike all that stays.
Trade-off: in a set of candidates with more than 64 documents one is compared with the kept ones
among its candidates, with those that its candidates were removed for, and with at most 64 more.
Price: like components, and 8 bytes per candidate pair in sets of more than 64.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

import numpy as np
from numba import njit, types
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
from assets.deduped.kernels.document_rows import group_pairs
from assets.deduped.kernels.pair_similarity import EVIDENCE, Evidence, is_duplicate, similarity

_options = {"cache": True, "nogil": True}
_ranks = types.Array(types.int32, 1, "C", readonly=True)
_stops = types.Array(types.int64, 1, "C", readonly=True)
_candidates = types.Tuple((_stops, _ranks))
_grouped = types.Tuple((types.int64[::1], types.int32[::1]))
Candidates = tuple[NDArray[np.int64], NDArray[np.int32]]


@njit(types.void(SETS, EVIDENCE, _candidates, types.int64), **_options)
def _join_candidates(
    sets: CandidateSets, evidence: Evidence, candidates: Candidates, row: int
) -> None:
    offsets, earlier = candidates
    for i in range(offsets[row], offsets[row + 1]):
        other = np.int64(evidence.same[earlier[i], 0])
        join_sets(sets, other, np.int64(evidence.same[row, 0]))


@njit(_grouped(EVIDENCE, _candidates, _ranks), **_options)
def _better_candidates(
    evidence: Evidence, candidates: Candidates, ranks: NDArray[np.int32]
) -> Candidates:
    """Better-ranked candidates of each row in a large set: offsets, int64 [n + 1], and rows."""
    offsets, earlier = candidates
    sets = new_sets(len(ranks))
    for row in range(len(ranks)):
        _join_candidates(sets, evidence, candidates, row)
    is_large, size = np.zeros(len(ranks), np.bool_), 0
    for row in range(len(ranks)):
        home = root(sets, np.int64(evidence.same[row, 0]))
        is_large[row] = sets[home].size > LIMIT
        size += is_large[row] * (offsets[row + 1] - offsets[row])
    pairs, filled = np.empty((size, 2), np.int32), 0
    for row in range(len(ranks)):
        if is_large[row]:
            for other in earlier[offsets[row] : offsets[row + 1]]:
                pairs[filled, 0] = other if ranks[other] < ranks[row] else row
                pairs[filled, 1] = row if ranks[other] < ranks[row] else other
                filled += 1
    return group_pairs(pairs, len(ranks))


@njit(types.boolean(EVIDENCE, types.int64, types.UniTuple(types.int64, 2), _ranks), **_options)
def _is_closer(
    evidence: Evidence, row: int, rivals: tuple[int, int], ranks: NDArray[np.int32]
) -> bool:
    """Whether the second of two rivals would be the better survivor of a row; the first may be END.

    Better is more similar, or as similar and of better rank.
    """
    chosen, rival = rivals
    if rival == chosen or not is_duplicate(evidence, rival, row):
        return False
    if chosen == END:
        return True
    held, found = similarity(evidence, chosen, row), similarity(evidence, rival, row)
    return found > held or (found == held and ranks[rival] < ranks[chosen])


@njit(types.int32[::1](EVIDENCE, _candidates, _stops, types.UniTuple(_ranks, 2)), **_options)
def star_survivors(
    evidence: Evidence,
    candidates: Candidates,
    row_stops: NDArray[np.int64],
    ranking: tuple[NDArray[np.int32], NDArray[np.int32]],
) -> NDArray[np.int32]:
    """Survivor of each row, int32 [n]: the row itself if it stays.

    Takes what `component_survivors` takes; the ranks must be better in an earlier round.
    """
    ranks, order = ranking
    sets = new_sets(len(ranks))
    survivors = np.full(len(ranks), END, np.int32)
    kept_copies = np.full(len(ranks), END, np.int32)
    offsets, better = _better_candidates(evidence, candidates, ranks)
    for r in range(len(row_stops) - 1):
        for row in range(row_stops[r], row_stops[r + 1]):
            _join_candidates(sets, evidence, candidates, row)
        for rank in range(row_stops[r], row_stops[r + 1]):
            row = np.int64(order[rank])
            node = np.int64(evidence.same[row, 0])
            if kept_copies[node] != END:
                survivors[row] = kept_copies[node]
                continue
            chosen = np.int64(END)
            home = root(sets, node)
            kept = sets[home].first_leader
            while kept != END:
                if _is_closer(evidence, row, (chosen, np.int64(kept)), ranks):
                    chosen = np.int64(kept)
                kept = sets[kept].next_leader
            for i in range(offsets[row], offsets[row + 1]):
                rival = np.int64(survivors[better[i]])
                if _is_closer(evidence, row, (chosen, rival), ranks):
                    chosen = rival
            if chosen == END:
                chosen = row
                kept_copies[node] = row
                add_leader(sets, home, row)
            survivors[row] = chosen
    return survivors
