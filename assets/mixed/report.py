"""Chart a phase: its mix, and the share of every source over the course of training.

The shares are computed from the order: whole blocks at even distances are sampled, in all at most
262,144 samples, so that the cost does not grow with the phase.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from resources.charts import MOST_SHARES, Areas, as_markdown, share_bars

POINTS = 100
MOST_SAMPLES = 1 << 18
Shares = npt.NDArray[np.float64]  # [points, sources]
SourcesAt = Callable[[npt.NDArray[np.int64]], npt.NDArray[np.integer]]


@dataclass(frozen=True)
class Drawn:
    """Realised mix of a phase: tokens by source, and float64 shares [points, sources] along it.

    `is_estimated`: samples differ in length, and each counts as long as its source's mean.
    """

    tokens: Mapping[str, int]
    shares: Shares
    is_estimated: bool


def shares_over_position(
    sources_at: SourcesAt, num_samples: int, sample_tokens: Sequence[float], block: int
) -> Shares:
    """Return the token share of each source at up to 100 points of a phase; rows sum to 1.

    `sources_at` maps positions to sources, `sample_tokens` is the mean tokens of a sample by
    source, and `block` the samples of a block within which the mix holds.
    """
    points = max(1, min(POINTS, num_samples // block))
    span = max(block, min(num_samples // points, MOST_SAMPLES // points) // block * block)
    starts = [num_samples * point // points // block * block for point in range(points)]
    spans = [np.arange(start, min(start + span, num_samples)) for start in starts]
    # Sources are looked up at once: for each point by itself it took ten times as long.
    number = np.repeat(np.arange(points), [len(positions) for positions in spans])
    number = number * len(sample_tokens) + sources_at(np.concatenate(spans))
    counts = np.bincount(number, minlength=points * len(sample_tokens))
    shares = counts.reshape(points, -1) * np.asarray(sample_tokens, np.float64)
    normalized: Shares = shares / shares.sum(axis=1, keepdims=True).clip(min=1)
    return normalized


def area_chart(title: str, names: Sequence[str], shares: Shares) -> Areas:
    """Chart shares as stacked areas, the largest at the bottom."""
    ranked, stacked = largest_first(names, shares)
    return Areas(title, tuple(ranked), tuple(map(tuple, stacked.round(4).tolist())))


def largest_first(names: Sequence[str], shares: Shares) -> tuple[list[str], Shares]:
    """Order names and columns by mean share; sum those beyond the palette as "others"."""
    means = shares.mean(axis=0)
    order = sorted(range(len(names)), key=lambda i: (-round(means[i], 3), names[i]))
    kept, rest = order[:MOST_SHARES], order[MOST_SHARES:]
    if not rest:
        return [names[i] for i in kept], shares[:, kept]
    others = shares[:, rest].sum(axis=1, keepdims=True)
    return [*(names[i] for i in kept), "others"], np.hstack([shares[:, kept], others])


def phase_markdown(phase: str, drawn: Drawn) -> dict[str, str]:
    """Return the charts of a phase as Markdown: `mix_chart` and `mix_over_position`."""
    return {
        "mix_chart": as_markdown(share_bars(f"tokens of phase {phase}", drawn.tokens), "mix"),
        "mix_over_position": as_markdown(
            shares_chart(f"share of tokens over phase {phase}", drawn), "shares"
        ),
    }


def shares_chart(title: str, drawn: Drawn) -> Areas:
    """Chart the shares over a phase; the title says if they are estimated."""
    estimated = ", estimated from mean lengths" if drawn.is_estimated else ""
    return area_chart(f"{title}{estimated}", list(drawn.tokens), drawn.shares)
