"""A score of documents from their vectors, learned from labels and frozen to integers.

Purpose: what a language model said of some thousand documents, said of all. Labels that are numbers
(0 and 1, or 0 to 5) have one direction and a threshold between each two of them, the proportional
odds model (McCullagh 1980); two labels make it logistic regression. The score is the expected
label. Labels that are names have a direction each, and the greatest wins.
Trade-off: training is in floating point and its bytes may differ by processor: the head is a record
that is kept. Applying it is integer arithmetic and a table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from corpus_loader.permutation import derive_key, mix64

VECTOR_LENGTH = 512  # of int8 vectors, see `word_vectors`
MOST_WEIGHT = (1 << 15) - 1
STEPS = 1024  # of the score's table
UNITS = 1000  # of a score in one step of the label
HELD_OUT = 0.2
L2 = 0.1  # against one document's loss, as of the classifier; vectors have the length 1
REACH = 12.0  # logits beyond the outer thresholds that the table has

Vectors = NDArray[np.int8]
Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Head:
    """Directions, int16 [k, d], and biases, int64 [k]: one for numbers, else one for each label.

    `scores`, int32 [STEPS], has the score, in 1/1,000 of a label, of each step of the one product;
    a step is 2**shift. Of names it is empty. Labels are in order.
    """

    weights: NDArray[np.int16]
    biases: Integers
    scores: NDArray[np.int32]
    shift: int
    labels: tuple[str, ...]

    def to_table(self) -> pl.DataFrame:
        """Return the head as a table of one row."""
        row = {
            "weights": [self.weights.tobytes()],
            "biases": [self.biases.tolist()],
            "scores": [self.scores.tolist()],
            "shift": [self.shift],
            "labels": [list(self.labels)],
        }
        numbers, names = pl.List(pl.Int64), pl.List(pl.String)
        types = (pl.Binary, numbers, pl.List(pl.Int32), pl.Int64, names)
        return pl.DataFrame(row, schema=dict(zip(row, types, strict=True)))

    @classmethod
    def from_table(cls, table: pl.DataFrame) -> Self:
        """Return the head that `to_table` wrote."""
        row = table.row(0, named=True)
        biases = np.array(row["biases"], np.int64)
        return cls(
            weights=np.frombuffer(row["weights"], np.int16).reshape(len(biases), -1),
            biases=biases,
            scores=np.array(row["scores"], np.int32),
            shift=row["shift"],
            labels=tuple(row["labels"]),
        )


def score_vectors(vectors: Vectors, head: Head) -> pl.Series:
    """Return the score of n vectors, Int32 in 1/1,000, or their label, String; null for zeros.

    Of equal labels the first is taken.
    """
    products = vectors.astype(np.int64) @ head.weights.T.astype(np.int64) + head.biases
    if len(head.scores):
        steps = (products[:, 0] >> head.shift) + STEPS // 2
        found = pl.Series(head.scores[np.clip(steps, 0, STEPS - 1)], dtype=pl.Int32)
    else:
        found = pl.Series(head.labels, dtype=pl.String).gather(products.argmax(axis=1))
    has_words = pl.Series(vectors.any(axis=1), dtype=pl.Boolean)
    return pl.select(pl.when(has_words).then(found)).to_series().alias("score")


def is_held_out(vectors: Vectors, seed: int = 0) -> NDArray[np.bool_]:
    """Select the vectors that measure a head, bool [n]: equal vectors are on the same side."""
    import xxhash

    keys = np.array([xxhash.xxh3_64_intdigest(row.tobytes()) for row in vectors], np.uint64)
    mixed = mix64(keys ^ np.uint64(derive_key(seed, "head held out")))
    return np.asarray(mixed.astype(np.float64) < HELD_OUT * 2.0**64)


def train_head(vectors: Vectors, labels: pl.Series, l2: float = L2) -> Head:
    """Learn labels of vectors, int8 [n, d]; those of zeros are left out.

    Labels that are integers are ordered, and must be 0, 1 and so on without a gap; strings are
    names. Raises ValueError for fewer than two labels, or a gap.
    """
    is_known = vectors.any(axis=1)
    own = labels.filter(pl.Series(is_known, dtype=pl.Boolean))
    names = own.unique().sort()
    if len(names) < 2:
        raise ValueError(
            f"classify: {len(names)} label ({names.to_list()}) on {len(own):,} documents with "
            "words; at least two are needed. Label more documents, or others."
        )
    if names.dtype != pl.String and names.to_list() != list(range(len(names))):
        raise ValueError(
            f"classify: labels {names.to_list()}; numbers must be 0, 1 and so on, each with "
            "documents. Map them to such numbers, or write them as text."
        )
    points, numbers = vectors[is_known] / VECTOR_LENGTH, names.search_sorted(own).to_numpy()
    share = l2 / len(points)
    if names.dtype == pl.String:
        return _frozen_names(*_fit_names(points, numbers, len(names), share), tuple(names))
    return _frozen_numbers(*_fit_numbers(points, numbers, len(names), share))


def _fit_names(
    points: Doubles, numbers: Integers, count: int, l2: float
) -> tuple[Doubles, Doubles]:
    """Return directions [count, d] and biases [count] of multinomial logistic regression."""

    def objective(flat: Doubles) -> tuple[float, Doubles]:
        weights = flat.reshape(count, -1)
        margins = points @ weights[:, :-1].T + weights[:, -1]
        margins -= margins.max(axis=1, keepdims=True)
        shares = np.exp(margins)
        totals = shares.sum(axis=1, keepdims=True)
        rows = np.arange(len(points))
        loss = (np.log(totals[:, 0]) - margins[rows, numbers]).mean()
        slopes = shares / totals
        slopes[rows, numbers] -= 1
        gradient = np.column_stack([slopes.T @ points, slopes.sum(axis=0)]) / len(points)
        gradient[:, :-1] += l2 * weights[:, :-1]
        return float(loss + l2 / 2 * (weights[:, :-1] ** 2).sum()), gradient.ravel()

    best = _minimum(objective, np.zeros(count * (points.shape[1] + 1))).reshape(count, -1)
    return best[:, :-1], best[:, -1]


def _fit_numbers(
    points: Doubles, numbers: Integers, count: int, l2: float
) -> tuple[Doubles, Doubles]:
    """Return the direction [d] and the ascending thresholds [count - 1] of proportional odds.

    Thresholds are the first and the logarithms of the steps from each to the next.
    """
    dimensions = points.shape[1]

    def objective(flat: Doubles) -> tuple[float, Doubles]:
        weights, first, steps = flat[:dimensions], flat[dimensions], np.exp(flat[dimensions + 1 :])
        thresholds = first + np.concatenate([[0.0], np.cumsum(steps)])
        # P(label <= i), with 0 before the first and 1 behind the last.
        logits = np.clip(thresholds - (points @ weights)[:, None], -50, 50)
        below = np.pad(1 / (1 + np.exp(-logits)), ((0, 0), (1, 1)), constant_values=(0, 1))
        density = below * (1 - below)
        rows = np.arange(len(points))
        shares = np.maximum(below[rows, numbers + 1] - below[rows, numbers], 1e-12)
        upper, lower = density[rows, numbers + 1] / shares, density[rows, numbers] / shares
        by_threshold = np.zeros(count + 1)
        np.add.at(by_threshold, numbers + 1, -upper)
        np.add.at(by_threshold, numbers, lower)
        tails = np.cumsum(by_threshold[1:count][::-1])[::-1]
        gradient = np.concatenate([points.T @ (upper - lower), tails[:1], tails[1:] * steps])
        gradient /= len(points)
        gradient[:dimensions] += l2 * weights
        return float(-np.log(shares).mean() + l2 / 2 * weights @ weights), gradient

    best = _minimum(objective, np.zeros(dimensions + count - 1))
    steps = np.exp(best[dimensions + 1 :])
    return best[:dimensions], best[dimensions] + np.concatenate([[0.0], np.cumsum(steps)])


def _minimum(objective: Any, start: Doubles) -> Doubles:
    from scipy.optimize import minimize

    found: Doubles = minimize(objective, start, jac=True, method="L-BFGS-B").x
    return found


def _frozen_names(weights: Doubles, biases: Doubles, labels: tuple[str, ...]) -> Head:
    scale = MOST_WEIGHT / np.abs(weights).max()
    return Head(
        weights=np.round(weights * scale).astype(np.int16),
        biases=np.round(biases * scale * VECTOR_LENGTH).astype(np.int64),
        scores=np.empty(0, np.int32),
        shift=0,
        labels=labels,
    )


def _frozen_numbers(weights: Doubles, thresholds: Doubles) -> Head:
    """Freeze the direction, and the expected label at the middle of each step of the product."""
    scale = MOST_WEIGHT / max(float(np.abs(weights).max()), 1e-12)
    middle = (thresholds[0] + thresholds[-1]) / 2
    reach = (thresholds[-1] - thresholds[0]) / 2 + REACH
    unit = scale * VECTOR_LENGTH  # of one logit
    shift = max(int(np.ceil(np.log2(2 * reach * unit / STEPS))), 0)
    margins = (np.arange(STEPS) - STEPS // 2 + 0.5) * 2.0**shift / unit + middle
    expected = (1 / (1 + np.exp(thresholds[:, None] - margins))).sum(axis=0)
    return Head(
        weights=np.round(weights * scale).astype(np.int16)[None],
        biases=np.array([round(-middle * unit)], np.int64),
        scores=np.round(UNITS * expected).astype(np.int32),
        shift=shift,
        labels=tuple(str(number) for number in range(len(thresholds) + 1)),
    )
