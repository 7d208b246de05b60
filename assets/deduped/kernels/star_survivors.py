"""Duplicate clusters as stars: every removed document is itself similar to its survivor.

Purpose: documents are decided from the best rank to the worst. A duplicate of survivors is removed
in favour of the most similar one; any other document survives. No chain of small changes can remove
a document that is unlike all survivors.
Trade-off: in a set of more than 64 candidates a document is compared with the survivors among its
candidates, with the survivors of its other candidates, and with at most 64 more.
Price: 8 bytes per candidate pair in sets of more than 64, in addition to those of components.
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
from assets.text.kernels.compiling import ARRAY_KERNEL

_ranks = types.Array(types.int32, 1, "C", readonly=True)
_stops = types.Array(types.int64, 1, "C", readonly=True)
_candidates = types.Tuple((_stops, _ranks))
_grouped = types.Tuple((types.int64[::1], types.int32[::1]))
Candidates = tuple[NDArray[np.int64], NDArray[np.int32]]


@njit(types.void(SETS, EVIDENCE, _candidates, types.int64), **ARRAY_KERNEL)
def _join_candidates(
    sets: CandidateSets, evidence: Evidence, candidates: Candidates, row: int
) -> None:
    """Join the set of a row with those of its candidates."""
    offsets, earlier = candidates
    for i in range(offsets[row], offsets[row + 1]):
        other = np.int64(evidence.same[earlier[i], 0])
        join_sets(sets, other, np.int64(evidence.same[row, 0]))


@njit(_grouped(EVIDENCE, _candidates, _ranks), **ARRAY_KERNEL)
def _better_candidates(
    evidence: Evidence, candidates: Candidates, ranks: NDArray[np.int32]
) -> Candidates:
    """Return the better-ranked candidates of each row in a large set.

    Returns offsets, int64 [n + 1], and rows, int32.
    """
    offsets, earlier = candidates
    sets = new_sets(len(ranks))
    for row in range(len(ranks)):
        _join_candidates(sets, evidence, candidates, row)
    # In a small set no list is needed: its at most LIMIT leaders are all of its survivors.
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


@njit(types.boolean(EVIDENCE, types.int64, types.UniTuple(types.int64, 2), _ranks), **ARRAY_KERNEL)
def _is_closer(
    evidence: Evidence, row: int, rivals: tuple[int, int], ranks: NDArray[np.int32]
) -> bool:
    """Check if the second of two rivals is a better survivor of a row than the first, END for none.

    The better survivor is the more similar one or, at equal similarity, the one of better rank.
    """
    chosen, rival = rivals
    if rival == chosen or not is_duplicate(evidence, rival, row):
        return False
    if chosen == END:
        return True
    of_chosen, of_rival = similarity(evidence, chosen, row), similarity(evidence, rival, row)
    return of_rival > of_chosen or (of_rival == of_chosen and ranks[rival] < ranks[chosen])


@njit(types.int64(EVIDENCE, types.int64, types.int64, SETS, _ranks), **ARRAY_KERNEL)
def _closest_leader(
    evidence: Evidence, row: int, home: int, sets: CandidateSets, ranks: NDArray[np.int32]
) -> int:
    """Return the best survivor of a row among the leaders of the set `home`, or END."""
    chosen = np.int64(END)
    leader = sets[home].first_leader
    while leader != END:
        if _is_closer(evidence, row, (chosen, np.int64(leader)), ranks):
            chosen = np.int64(leader)
        leader = sets[leader].next_leader
    return chosen


@njit(types.int32[::1](EVIDENCE, _candidates, _stops, types.UniTuple(_ranks, 2)), **ARRAY_KERNEL)
def star_survivors(
    evidence: Evidence,
    candidates: Candidates,
    row_stops: NDArray[np.int64],
    ranking: tuple[NDArray[np.int32], NDArray[np.int32]],
) -> NDArray[np.int32]:
    """Return the survivor of each row, int32 [n]: the row itself if it survives.

    The arguments are those of `component_survivors`. Every rank of a round must be better than
    those of later rounds.
    """
    ranks, order = ranking
    sets = new_sets(len(ranks))
    survivors = np.full(len(ranks), END, np.int32)
    kept_copies = np.full(len(ranks), END, np.int32)
    offsets, better = _better_candidates(evidence, candidates, ranks)
    for r in range(len(row_stops) - 1):
        for row in range(row_stops[r], row_stops[r + 1]):
            _join_candidates(sets, evidence, candidates, row)
        # From the best rank on (a round has as many ranks as rows): survivors met here stay.
        for rank in range(row_stops[r], row_stops[r + 1]):
            row = np.int64(order[rank])
            node = np.int64(evidence.same[row, 0])
            # An equal text survives: nothing can be more similar.
            if kept_copies[node] != END:
                survivors[row] = kept_copies[node]
                continue
            home = root(sets, node)
            chosen = _closest_leader(evidence, row, home, sets, ranks)
            for i in range(offsets[row], offsets[row + 1]):
                # What the candidate was removed for, since only survivors can be chosen.
                rival = np.int64(survivors[better[i]])
                if _is_closer(evidence, row, (chosen, rival), ranks):
                    chosen = rival
            if chosen == END:
                chosen = row
                kept_copies[node] = row
                add_leader(sets, home, row)
            survivors[row] = chosen
    return survivors
