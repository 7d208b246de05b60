"""Find the likely original of a cluster: the agreement of each document with its duplicates.

Purpose: a copy between the boilerplate of other pages, a truncated one and one with edited words
differ from the original, and the original from each of them by less than they from one another.
A pair counts its similarity for both documents, with two exceptions that the ends of texts tell.
A document whose own beginning the other lacks, while it has the other's, has something put before
it: the other gets the share of its shingles that is found again. A document that only ends later is
the whole one: the other is truncated, so the longer one gets that share.
Trade-off: all pairs of a round are compared in a set of up to 64 documents, and candidates only in
a larger one, as in the kernels that decide.
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
    join_sets,
    new_sets,
    root,
)
from assets.deduped.kernels.pair_similarity import (
    BY_SHINGLES,
    EVIDENCE,
    Evidence,
    is_duplicate,
    similarity,
)
from assets.text.kernels.compiling import ARRAY_KERNEL

EDGE = 4  # shingles at either end of a text that are looked up in another
UNIT = 1 << 16  # agreement with an equal text: whole numbers add up to the same in any order

_ranks = types.Array(types.int32, 1, "C", readonly=True)
_stops = types.Array(types.int64, 1, "C", readonly=True)
_edges = types.Array(types.uint64, 2, "C", readonly=True)
_rows = types.UniTuple(types.int64, 2)
Rows = tuple[int, int]


@njit(types.int64(EVIDENCE, _edges, _rows, types.int64), **ARRAY_KERNEL)
def _num_found(evidence: Evidence, edges: NDArray[np.uint64], rows: Rows, first: int) -> int:
    """Count the EDGE shingles from column `first` of one row that another row has."""
    one, other = rows
    start, stop = evidence.spans[other]
    shingles, found = evidence.shingles[start:stop], 0
    for k in range(first, first + EDGE):
        at = np.searchsorted(shingles, edges[one, k])
        found += at < len(shingles) and shingles[at] == edges[one, k]
    return found


@njit(types.Tuple((types.boolean, types.boolean))(EVIDENCE, _edges, _rows), **ARRAY_KERNEL)
def _extends(evidence: Evidence, edges: NDArray[np.uint64], rows: Rows) -> tuple[bool, bool]:
    """Check if the first of two documents begins before the second, and if it ends after it."""
    back = (rows[1], rows[0])
    few, most = EDGE // 4, EDGE // 2
    is_before = (
        _num_found(evidence, edges, rows, 0) <= few and _num_found(evidence, edges, back, 0) >= most
    )
    is_after = (
        _num_found(evidence, edges, rows, EDGE) <= few
        and _num_found(evidence, edges, back, EDGE) >= most
    )
    return is_before, is_after


@njit(types.UniTuple(types.int64, 2)(EVIDENCE, _edges, _rows), **ARRAY_KERNEL)
def _shares(evidence: Evidence, edges: NDArray[np.uint64], rows: Rows) -> tuple[int, int]:
    """Return the agreement that a pair of duplicates gives to each of its documents."""
    alike = similarity(evidence, rows[0], rows[1])
    whole = np.int64(np.round(alike * UNIT))
    if evidence.verify != BY_SHINGLES or alike >= 1.0 or alike <= 0.0:
        return whole, whole
    before, after = _extends(evidence, edges, rows)
    before_other, after_other = _extends(evidence, edges, (rows[1], rows[0]))
    ours = evidence.spans[rows[0], 1] - evidence.spans[rows[0], 0]
    theirs = evidence.spans[rows[1], 1] - evidence.spans[rows[1], 0]
    # J = common / (ours + theirs - common), solved for the common shingles.
    common = alike / (1 + alike) * (ours + theirs)
    found_ours, found_theirs = np.int64(common / ours * UNIT), np.int64(common / theirs * UNIT)
    if before != before_other:  # the one with something before it is blamed
        return (whole, found_theirs) if before else (found_ours, whole)
    if after != after_other and not before:  # the one that ends earlier is blamed
        return (found_theirs, whole) if after else (whole, found_ours)
    return whole, whole


@njit(types.void(EVIDENCE, _edges, _rows, types.int64[:, ::1]), **ARRAY_KERNEL)
def _add_pair(
    evidence: Evidence, edges: NDArray[np.uint64], rows: Rows, tally: NDArray[np.int64]
) -> None:
    """Add what two documents give each other, times their copies, if they form a pair."""
    one, other = rows
    if is_duplicate(evidence, one, other):
        ours, theirs = _shares(evidence, edges, rows)
        # Each copy of the other text agrees, too.
        tally[one, 0] += ours * tally[other, 1]
        tally[other, 0] += theirs * tally[one, 1]


@njit(types.boolean(EVIDENCE, _ranks, types.int64), **ARRAY_KERNEL)
def _is_repeated(evidence: Evidence, candidates: NDArray[np.int32], last: int) -> bool:
    """Check if one of a row's candidates, at most two per key, has the text of the last one."""
    node = evidence.same[candidates[last], 0]
    for i in range(last):  # noqa: SIM110 (a generator would not compile)
        if evidence.same[candidates[i], 0] == node:
            return True
    return False


@njit(
    types.void(EVIDENCE, _edges, types.Tuple((SETS, _ranks, types.int64[:, ::1])), _rows),
    **ARRAY_KERNEL,
)
def _add_pairs(
    evidence: Evidence,
    edges: NDArray[np.uint64],
    state: tuple[CandidateSets, NDArray[np.int32], NDArray[np.int64]],
    rows: Rows,
) -> None:
    """Compare a row with the earlier ones of its round in its set, or with its candidates there."""
    (sets, candidates, tally), (row, start) = state, rows
    home = root(sets, row)
    if sets[home].size <= LIMIT:
        other = np.int64(home)
        while other != END:
            if start <= other < row:
                _add_pair(evidence, edges, (row, other), tally)
            other = np.int64(sets[other].next_member)
        return
    for i in range(len(candidates)):
        other = np.int64(evidence.same[candidates[i], 0])
        if start <= other != row and not _is_repeated(evidence, candidates, i):
            _add_pair(evidence, edges, (row, other), tally)


@njit(types.int64[::1](EVIDENCE, _edges, types.Tuple((_stops, _ranks)), _stops), **ARRAY_KERNEL)
def agreements(
    evidence: Evidence,
    edges: NDArray[np.uint64],
    candidates: tuple[NDArray[np.int64], NDArray[np.int32]],
    row_stops: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the agreement of each row with the others of its round, int64 [n].

    It is UNIT for each row of the same text, and what the pairs with other texts give. `edges`,
    uint64 [n, 2 * EDGE], are the first and the last shingles of each text, and read only for
    BY_SHINGLES. Candidates and `row_stops` are those of `component_survivors`. Later rounds change
    nothing: a document that is published is not ranked by what comes after it.
    """
    offsets, earlier = candidates
    size = row_stops[-1]
    sets = new_sets(size)
    tally = np.zeros((size, 2), np.int64)  # agreement with other texts, copies of this one
    results = np.full(size, UNIT, np.int64)
    for r in range(len(row_stops) - 1):
        start, stop = row_stops[r], row_stops[r + 1]
        for row in range(start, stop):
            node = np.int64(evidence.same[row, 0])
            # Copies of this round; those of an older document are not ranked.
            tally[node, 1] += node >= start
            for i in range(offsets[row], offsets[row + 1]):
                join_sets(sets, np.int64(evidence.same[earlier[i], 0]), node)
        for row in range(start, stop):
            if evidence.same[row, 0] != row:
                continue
            state = sets, earlier[offsets[row] : offsets[row + 1]], tally
            _add_pairs(evidence, edges, state, (row, start))
        for row in range(start, stop):
            node = np.int64(evidence.same[row, 0])
            if node >= start:
                results[row] = tally[node, 0] + UNIT * tally[node, 1]
    return results
