"""Sets of documents connected by candidate pairs, each with the few leaders to compare against.

Purpose: bounded work in any set. A *small* set has at most `LIMIT` documents, and all of its pairs
can be compared. A larger one has *leaders*: its first `LIMIT` documents that represent a cluster.
The first row identifies a set. Members and leaders are two linked lists in ascending order of rows.
A join merges the leaders of both sets and keeps the first `LIMIT`, so the outcome does not depend
on the order of the joins. Price: 24 bytes per document.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

import numpy as np
from numba import from_dtype, njit, types
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_KERNEL

LIMIT = 64  # the most documents of its set that a document is compared with
END = np.int32(-1)


# A record array keeps all fields of a row in one cache line.
CANDIDATE_SET = np.dtype(
    [
        *(("parent", np.int32), ("size", np.int32)),  # size, last_member, first_leader: of roots
        *(("next_member", np.int32), ("last_member", np.int32)),
        *(("first_leader", np.int32), ("next_leader", np.int32)),
    ]
)
SETS = types.Array(from_dtype(CANDIDATE_SET), 1, "C")
CandidateSets = NDArray[np.void]


@njit(**ARRAY_KERNEL)
def root(forest: NDArray[np.void], row: int) -> int:
    """Return the root of a row in an array of records with the field `parent`, with path halving.

    Source: Tarjan and van Leeuwen 1984, "Worst-case analysis of set union algorithms".
    """
    while forest[row].parent != row:
        forest[row].parent = forest[forest[row].parent].parent
        row = np.int64(forest[row].parent)
    return row


@njit(SETS(types.int64), **ARRAY_KERNEL)
def new_sets(size: int) -> CandidateSets:
    """Return `size` sets of one row each, without leaders."""
    sets = np.empty(size, CANDIDATE_SET)
    for row in range(size):
        sets[row].parent, sets[row].size = row, 1
        sets[row].next_member, sets[row].last_member = END, row
        sets[row].first_leader, sets[row].next_leader = END, END
    return sets


@njit(types.int32(SETS, types.int32, types.int32), **ARRAY_KERNEL)
def _merge_leaders(sets: CandidateSets, one: int, other: int) -> int:
    """Merge two lists of leaders in place; return the first row of the list, cut after LIMIT."""
    if one == END or other == END:
        return max(one, other)
    first, last = END, END
    for _ in range(LIMIT):
        # `one` is the list with the smaller next row, until both are empty.
        if one == END or (other != END and other < one):
            one, other = other, one
        if one == END:
            break
        if last == END:
            first = one
        else:
            sets[last].next_leader = one
        last, one = one, sets[one].next_leader
    # The first LIMIT of the union, in whatever order the sets were joined.
    sets[last].next_leader = END
    return first


@njit(types.void(SETS, types.int64, types.int64), **ARRAY_KERNEL)
def join_sets(sets: CandidateSets, one: int, other: int) -> None:
    """Join the sets of two rows in place."""
    one, other = root(sets, one), root(sets, other)
    if one == other:
        return
    # The smaller row is the root: it identifies the set, and does not depend on the order of joins.
    first, second = min(one, other), max(one, other)
    sets[second].parent = first
    sets[first].size += sets[second].size
    sets[sets[first].last_member].next_member = second
    sets[first].last_member = sets[second].last_member
    sets[first].first_leader = _merge_leaders(
        sets, sets[first].first_leader, sets[second].first_leader
    )


@njit(types.void(SETS, types.int64, types.int64), **ARRAY_KERNEL)
def add_leader(sets: CandidateSets, home: int, row: int) -> None:
    """Add a row that is not a leader yet to the leaders of the set with the root `home`."""
    sets[home].first_leader = _merge_leaders(sets, sets[home].first_leader, np.int32(row))
