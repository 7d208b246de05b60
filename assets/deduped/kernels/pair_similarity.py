"""Similarity of two documents: equal texts and fields, signatures, exact shingle sets.

Purpose: the only definition of a pair of duplicates and of its similarity. All kernels that decide
clusters call it, and only when the answer can change the result.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_KERNEL

NOT_VERIFIED, BY_SIGNATURE, BY_SHINGLES = 0, 1, 2


class Evidence(NamedTuple):
    """Columns that n documents are compared by.

    same: uint32 [n, 1 + fields], the first row with an equal text, then with each equal field.
    groups: uint64 [n]; near duplicates must have equal groups.
    signatures: uint32 [n, bands * rows]; is_signed: bool [n], false for a document without words.
    shingles: uint64, sorted and unique within spans, int64 [n, 2] (start, stop) of each document.
    verify: NOT_VERIFIED, BY_SIGNATURE or BY_SHINGLES; rows: values of a band; threshold: the
    similarity at or above which a verified pair is one of duplicates.
    """

    same: NDArray[np.uint32]
    groups: NDArray[np.uint64]
    signatures: NDArray[np.uint32]
    is_signed: NDArray[np.bool_]
    shingles: NDArray[np.uint64]
    spans: NDArray[np.int64]
    verify: int
    rows: int
    threshold: float


def _readonly(dtype: types.Type, dimensions: int) -> types.Array:
    """Return the numba type of a read-only contiguous array."""
    return types.Array(dtype, dimensions, "C", readonly=True)


EVIDENCE = types.NamedTuple(
    [
        _readonly(types.uint32, 2),
        _readonly(types.uint64, 1),
        _readonly(types.uint32, 2),
        _readonly(types.boolean, 1),
        _readonly(types.uint64, 1),
        _readonly(types.int64, 2),
        types.int64,
        types.int64,
        types.float64,
    ],
    Evidence,
)


@njit(types.boolean(EVIDENCE, types.int64, types.int64), **ARRAY_KERNEL)
def _have_equal_band(evidence: Evidence, one: int, other: int) -> bool:
    """Check if the signatures of two documents have an equal band."""
    ours, theirs = evidence.signatures[one], evidence.signatures[other]
    for first in range(0, len(ours), evidence.rows):
        k = first
        while k < first + evidence.rows and ours[k] == theirs[k]:
            k += 1
        if k == first + evidence.rows:
            return True
    return False


@njit(types.float64(EVIDENCE, types.int64, types.int64), **ARRAY_KERNEL)
def _jaccard(evidence: Evidence, one: int, other: int) -> float:
    """Return the Jaccard similarity of the shingle sets of two documents; 0 for two empty sets."""
    at, stop = evidence.spans[one]
    other_at, other_stop = evidence.spans[other]
    total, common = stop - at + other_stop - other_at, 0
    while at < stop and other_at < other_stop:
        ours, theirs = evidence.shingles[at], evidence.shingles[other_at]
        # A merge without branches, whose outcome random hashes make unpredictable.
        common += ours == theirs
        at += ours <= theirs
        other_at += theirs <= ours
    return common / max(1, total - common)


@njit(types.boolean(EVIDENCE, types.int64, types.int64), **ARRAY_KERNEL)
def _is_measured(evidence: Evidence, one: int, other: int) -> bool:
    """Check if two documents have an equal text or both have a signature."""
    has_equal_text = evidence.same[one, 0] == evidence.same[other, 0]
    return has_equal_text or (evidence.is_signed[one] and evidence.is_signed[other])


@njit(types.float64(EVIDENCE, types.int64, types.int64), **ARRAY_KERNEL)
def similarity(evidence: Evidence, one: int, other: int) -> float:
    """Return the similarity of two documents, between 0 and 1.

    It is 1 for equal texts, and 0 if one of the two has no signature. Otherwise it is the Jaccard
    similarity of the shingle sets if `verify` is BY_SHINGLES, else the share of equal signature
    values.
    """
    if evidence.same[one, 0] == evidence.same[other, 0]:
        return 1.0
    if not (evidence.is_signed[one] and evidence.is_signed[other]):
        return 0.0
    if evidence.verify == BY_SHINGLES:
        return _jaccard(evidence, one, other)
    ours, theirs, equal = evidence.signatures[one], evidence.signatures[other], 0
    for k in range(len(ours)):
        equal += ours[k] == theirs[k]
    return equal / len(ours)


@njit(types.boolean(EVIDENCE, types.int64, types.int64), **ARRAY_KERNEL)
def is_duplicate(evidence: Evidence, one: int, other: int) -> bool:
    """Check if two documents have an equal text or field, or are near duplicates.

    Near duplicates are of one group and have an equal band (NOT_VERIFIED) or at least the threshold
    as similarity.
    """
    for column in range(evidence.same.shape[1]):
        if evidence.same[one, column] == evidence.same[other, column]:
            return True
    if not (evidence.is_signed[one] and evidence.is_signed[other]):
        return False
    if evidence.groups[one] != evidence.groups[other]:
        return False
    if evidence.verify == NOT_VERIFIED:
        return _have_equal_band(evidence, one, other)
    return similarity(evidence, one, other) >= evidence.threshold


@njit(
    types.Tuple((types.float32[::1], types.int64[::1]))(EVIDENCE, _readonly(types.int32, 1)),
    **ARRAY_KERNEL,
)
def compare_with_survivors(
    evidence: Evidence, survivors: NDArray[np.int32]
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return the similarity of each row to its survivor, float32 [n], and the method, int64 [n].

    The method is the first column of `same` that is equal, or the number of columns if none is.
    Survivors get 1 and 0. The similarity is NaN where the texts differ and one of the two documents
    has no signature.
    """
    similarities = np.ones(len(survivors), np.float32)
    methods = np.zeros(len(survivors), np.int64)
    for row in range(len(survivors)):
        survivor = np.int64(survivors[row])
        if survivor == row:
            continue
        is_measured = _is_measured(evidence, row, survivor)
        similarities[row] = similarity(evidence, row, survivor) if is_measured else np.nan
        column, columns = 0, evidence.same.shape[1]
        while column < columns and evidence.same[row, column] != evidence.same[survivor, column]:
            column += 1
        methods[row] = column
    return similarities, methods
