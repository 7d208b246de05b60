"""Thresholds and weights that the losses of a training run speak for.

A threshold is tightened where the documents behind it have a loss that is surely higher than the
others', as far as that costs a bounded share of the text. Weights follow the excess loss of each
source, as one step of DoReMi does (arXiv 2305.10429). Both say what this model found hard, and
neither that it is useless: rare knowledge and good proofs have a high loss, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from assets.filtered.rules.rules import Rule

CANDIDATES = 40  # thresholds that are tried, at equal shares of the documents
LEAST_DOCUMENTS = 30  # that a threshold drops, with a loss
LEAST_T = 3.0  # of the difference of the mean losses, by Welch: one in a thousand by chance
STEP = 1.0  # of the weights, per unit of loss (nats a token)
MOST_CHANGE = 2.0  # of a source's share in one proposal
Floats = NDArray[np.float64]


class ThresholdProposal(msgspec.Struct, frozen=True):
    """A tighter threshold of a rule, and what it does to the documents whose loss is known."""

    rule: str
    key: str
    now: float
    proposed: float
    documents: int
    text_share: float
    loss_of_dropped: float
    loss_now: float
    loss_then: float


def propose_threshold(
    rule: Rule, scores: Floats, losses: Floats, sizes: Floats, most_text: float
) -> ThresholdProposal | None:
    """Return the threshold that lowers the mean loss of the text most; None if none surely does.

    The arrays are those of kept documents; it drops at most the share `most_text` of their bytes.
    """
    if not isinstance(rule.threshold, int | float) or rule.direction not in ("below", "above"):
        return None
    found: ThresholdProposal | None = None
    known = np.isfinite(scores)
    now = float(np.average(losses, weights=sizes)) if sizes.sum() else 0.0
    for limit in candidates(scores[known], rule.direction):
        dropped = known & (scores < limit if rule.direction == "below" else scores > limit)
        text_share = float(sizes[dropped].sum() / sizes.sum())
        if dropped.sum() < LEAST_DOCUMENTS or dropped.all() or text_share > most_text:
            continue
        then = float(np.average(losses[~dropped], weights=sizes[~dropped]))
        if welch(losses[dropped], losses[~dropped]) < LEAST_T or then >= now:
            continue
        if found is None or then < found.loss_then:
            found = ThresholdProposal(
                rule=rule.name,
                key=f"{rule.group}.{rule.field}",
                now=float(rule.threshold),
                proposed=limit,
                documents=int(dropped.sum()),
                text_share=text_share,
                loss_of_dropped=float(losses[dropped].mean()),
                loss_now=now,
                loss_then=then,
            )
    return found


def candidates(scores: Floats, direction: str) -> list[float]:
    """Return thresholds at equal shares of the scores, to three digits; none that keeps all."""
    if not len(scores):
        return []
    values = np.quantile(scores, np.linspace(0, 1, CANDIDATES + 1))
    limits = sorted({float(f"{value:.3g}") for value in values.tolist()})
    return limits if direction == "above" else limits[::-1]


def welch(one: Floats, other: Floats) -> float:
    """Return Welch's t of the means: positive if the first is higher."""
    if len(one) < 2 or len(other) < 2:
        return 0.0
    error = math.sqrt(one.var(ddof=1) / len(one) + other.var(ddof=1) / len(other))
    difference = float(one.mean() - other.mean())
    return difference / error if error else math.copysign(math.inf, difference or -1.0)


def propose_weights(
    excess: Mapping[str, float], shares: Mapping[str, float], step: float = STEP
) -> dict[str, float]:
    """Return the weights of sources: share times exp(step times excess loss), at most doubled.

    `excess` is the loss of a source above its reference, or above the mean where there is none.
    """
    middle = sum(shares[name] * excess[name] for name in excess) / sum(
        shares[name] for name in excess
    )
    raised = {
        name: shares[name]
        * min(MOST_CHANGE, max(1 / MOST_CHANGE, math.exp(step * (loss - middle))))
        for name, loss in excess.items()
    }
    total = sum(raised.values())
    return {name: round(weight / total, 4) for name, weight in raised.items()}
