"""Bands and rows of locality-sensitive hashing for a similarity threshold.

Two signatures whose values are equal with probability s (the similarity) agree in one of `bands`
bands of `rows` values each with probability 1 - (1 - s^rows)^bands (Leskovec, Rajaraman and Ullman,
"Mining of Massive Datasets", section 3.4.2).
"""

from typing import Any

# The integrands are smooth: 64 nodes give the answer of datasketch, which integrates adaptively,
# for every threshold and weight tried, at 1/35 of its time for 4,096 values.
_NODES = 64


def candidate_probability(similarity: Any, bands: Any, rows: Any) -> Any:
    """Return the chance that a pair of a Jaccard similarity becomes a candidate.

    Takes and returns numbers or arrays.
    """
    return 1 - (1 - similarity**rows) ** bands


def solve_bands(threshold: float, false_negative_weight: float, num_perm: int) -> tuple[int, int]:
    """Return (bands, rows), at most `num_perm` values in all, that separate pairs at `threshold`.

    They minimise (1 - w) * (chance that a pair below the threshold is a candidate, integrated over
    the similarity) + w * (chance that a pair above it is missed), as datasketch's
    `MinHashLSH(threshold, num_perm, weights=(1 - w, w))`. Ties go to the fewest bands, then rows.
    """
    import numpy as np  # takes 0.3 s, which most readers of settings do not need

    rows_by_bands = [np.arange(1, num_perm // bands + 1) for bands in range(1, num_perm + 1)]
    rows = np.concatenate(rows_by_bands)[:, None]
    bands = np.repeat(np.arange(1, num_perm + 1), [len(choices) for choices in rows_by_bands])[
        :, None
    ]
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    below = threshold * (nodes + 1) / 2
    above = threshold + (1 - threshold) * (nodes + 1) / 2
    false = threshold * candidate_probability(below, bands, rows) @ weights
    missed = (1 - threshold) * (1 - candidate_probability(above, bands, rows)) @ weights
    best = np.argmin((1 - false_negative_weight) * false + false_negative_weight * missed)
    return int(bands[best, 0]), int(rows[best, 0])
