"""Bands and rows of locality-sensitive hashing: which pairs they find, and how to choose them.

Two signatures whose values are equal with probability s (the similarity) agree in one of `bands`
bands of `rows` values each with probability 1 - (1 - s^rows)^bands (Leskovec, Rajaraman and Ullman,
"Mining of Massive Datasets", section 3.4.2).
"""

from typing import Any

import numpy as np

# The integrands are smooth: 64 nodes give datasketch's answer, which integrates adaptively, for
# every threshold and weight tried, at 0.2 s for 4,096 values instead of 7.
_NODES = 64


def candidate_probability(similarity: Any, bands: Any, rows: Any) -> Any:
    """Chance that a pair of this Jaccard similarity becomes a candidate; numbers or arrays."""
    return 1 - (1 - similarity**rows) ** bands


def solve_bands(threshold: float, false_negative_weight: float, num_perm: int) -> tuple[int, int]:
    """(bands, rows), at most `num_perm` values in all, that tell pairs apart at `threshold`.

    They make the least of (1 - w) * (chance of a pair below the threshold to be a candidate,
    integrated over the similarity) + w * (chance of a pair above it to be missed), as datasketch's
    `MinHashLSH(threshold, num_perm, weights=(1 - w, w))`; of equals the fewest bands, then rows.
    """
    rows_by_bands = [np.arange(1, num_perm // bands + 1) for bands in range(1, num_perm + 1)]
    rows = np.concatenate(rows_by_bands)[:, None]
    bands = np.repeat(np.arange(1, num_perm + 1), [len(each) for each in rows_by_bands])[:, None]
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    below = threshold * (nodes + 1) / 2
    above = threshold + (1 - threshold) * (nodes + 1) / 2
    false = threshold * candidate_probability(below, bands, rows) @ weights
    missed = (1 - threshold) * (1 - candidate_probability(above, bands, rows)) @ weights
    best = np.argmin((1 - false_negative_weight) * false + false_negative_weight * missed)
    return int(bands[best, 0]), int(rows[best, 0])
