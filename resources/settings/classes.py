"""`buckets.classes` and `upsample` of a phase: classes of quality, and their weights in a mix.

Olmo 3 is trained on such a mix: the lowest 40 % of its web pages are left out, the highest 5 % are
repeated up to seven times (Dolma 3, Olmo team 2025).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from pydantic import BaseModel, ConfigDict, Field, field_validator

MOST_CLASSES = 10  # the names of groups are sorted: class-10 would come before class-2
PERCENTILE = "quality_percentile"
Steps = tuple[tuple[float, float], ...]  # (border, weight): of scores below the border


class QualityClasses(BaseModel):
    """Classes of documents by a score: documents of a class are packed with each other."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    score: str = Field(
        default=PERCENTILE,
        min_length=1,
        description="score of `filtered` (as in decisions), or meta.<name>, by which documents are "
        "in classes. quality_percentile is the rank among the documents of the same source and "
        "language, measured once (`quality_scale`): later documents do not move earlier ones",
    )
    limits: tuple[float, ...] = Field(
        min_length=1,
        max_length=MOST_CLASSES - 1,
        description="ascending scores at which a class ends and the next begins: [0.4, 0.95] makes "
        "class-0 below 0.4, class-1 from 0.4 on, class-2 from 0.95 on. Documents without the score "
        "are in no class",
    )

    @field_validator("limits")
    @classmethod
    def check_ascending(cls, limits: tuple[float, ...]) -> tuple[float, ...]:
        """Refuse limits that are not finite and ascending."""
        if not all(map(math.isfinite, limits)) or any(a >= b for a, b in pairwise(limits)):
            raise ValueError(f"limits must be finite and ascending, got {list(limits)}")
        return limits


def class_names(limits: Sequence[float]) -> list[str]:
    """Return the names of the classes, in ascending quality: "class-0", "class-1"."""
    return [f"class-{number}" for number in range(len(limits) + 1)]


def check_steps(steps: Steps) -> None:
    """Raise ValueError for steps with borders that do not ascend, or weights that draw nothing."""
    borders, weights = zip(*steps, strict=True)
    if not all(map(math.isfinite, borders)) or any(a >= b for a, b in pairwise(borders)):
        raise ValueError(f"the borders of `upsample` must be ascending, got {list(borders)}")
    for border, weight in steps:
        if not math.isfinite(weight) or weight < 0:
            raise ValueError(f"the weight below {border:g} is {weight}; it must be 0 or more")
    if not any(weights):
        raise ValueError("all weights of `upsample` are 0; give at least one class a weight")


def class_weights(steps: Steps, limits: Sequence[float]) -> tuple[Fraction, ...]:
    """Return the weight of each class: that of the first step that reaches its upper limit.

    Weights are as they are written: 0.1 is a tenth. Raises ValueError if the steps do not end at
    limits, or do not reach beyond the last.
    """
    from corpus_loader.interleave import as_written

    *inner, last = (border for border, _ in steps)
    known = ", ".join(f"{limit:g}" for limit in limits)
    for border in inner:
        if border not in limits:
            raise ValueError(
                f"{border:g} is not a border of classes; they end at {known}. Take one of these, "
                "or add it to `buckets.classes.limits`, which packs all documents again"
            )
    if last <= limits[-1]:
        raise ValueError(
            f"it ends at {last:g}, so that scores from {limits[-1]:g} on have no weight (classes "
            f"end at {known}). Add a last pair for them, such as [1.0, 1]"
        )
    return tuple(
        next(as_written(weight) for border, weight in steps if border >= upper)
        for upper in (*limits, last)
    )
