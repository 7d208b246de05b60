"""Weights of classes by which a phase has the shares of its `lengths`, and those of its sources.

Of all mixes with both shares it is the one nearest to what the sources have (iterative proportional
fitting, Deming and Stephan 1940): a source gives more long documents if it has more of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import TypeVar

import numpy as np

from assets.mixed.budgets import Classes, MixError, Shares, shares_of
from corpus_loader.interleave import as_written
from resources.settings.phases import PhaseConfig

ROUNDS = 50_000  # a second; only shares that just can be together need more than a thousand
TOLERANCE = 1e-13
Key = TypeVar("Key", str, int)
Cells = dict[tuple[str, int], float]  # tokens of a source, or shares, by a key of `lengths`


def on_curve(config: PhaseConfig, available: Mapping[str, int], classes: Classes) -> Classes:
    """Return the classes with the weights at which a phase has the shares of its `lengths`.

    The greatest weight of a source is 1, that of the class that ends first. Classes of phases
    without `lengths` are returned as they are. Raises MixError for shares that no mix has.
    """
    if config.lengths is None or not classes:
        return classes
    sources = normalised(shares_of(config, available))
    lengths = normalised({key: as_written(share) for key, share in config.lengths.items() if share})
    tokens: Cells = {}
    for source in sources:
        for part in classes[source].values():
            if part.length in lengths:
                cell = (source, part.length)
                tokens[cell] = tokens.get(cell, 0) + part.available
    cells = possible_cells(config, tokens, sources, lengths)
    weights = {cell: share / tokens[cell] for cell, share in fit(cells, sources, lengths).items()}
    return {
        source: {
            name: replace(part, weight=of_digits(weights.get((source, part.length), 0) / greatest))
            for name, part in classes[source].items()
        }
        for source in sources
        for greatest in [max(weight for cell, weight in weights.items() if cell[0] == source)]
    }


def possible_cells(
    config: PhaseConfig, tokens: Cells, sources: Shares, lengths: Mapping[int, Fraction]
) -> Cells:
    """Return the cells that a mix with both shares can draw from.

    Raises MixError if there is none: if some lengths are to be more than the sources that have them
    (Hall's condition, of which every set of lengths is tried).
    """
    cells = tokens
    for some in (c for n in range(1, len(lengths) + 1) for c in combinations(lengths, n)):
        having = [name for name in sources if any((name, key) in cells for key in some)]
        wanted = sum((lengths[key] for key in some), Fraction())
        most = sum((sources[name] for name in having), Fraction())
        if wanted > most:
            asked = " and ".join(told(config, key) for key in some)
            raise MixError(
                f"phase {config.name!r} asks for {float(wanted):.4g} of its tokens from documents "
                f"of {asked} (`lengths`), but the sources that have some "
                f"({', '.join(having) or 'none'}) have a share of {float(most):.4g} together. "
                "Lower the share of these documents, or give other shares to the sources"
            )
        if wanted == most:  # these sources give no others
            cells = {c: n for c, n in cells.items() if c[0] not in having or c[1] in some}
    return cells


def fit(cells: Cells, sources: Shares, lengths: Mapping[int, Fraction]) -> Cells:
    """Return the shares nearest to these tokens that sum to those of sources and of lengths."""
    table = np.array([[cells.get((name, key), 0) for key in lengths] for name in sources], float)
    rows, columns = np.array([*sources.values()], float), np.array([*lengths.values()], float)
    for _ in range(ROUNDS):
        table *= columns / table.sum(axis=0)
        sums = table.sum(axis=1)
        if np.abs(sums - rows).max() < TOLERANCE:
            break
        table *= (rows / sums)[:, None]
    of_sources = dict(zip(sources, table.tolist(), strict=True))
    places = {key: place for place, key in enumerate(lengths)}
    return {(name, key): of_sources[name][places[key]] for name, key in cells}


def of_digits(number: float) -> Fraction:
    """Return twelve digits of a number: the last one of a sum may differ between processors."""
    return Fraction(f"{number:.12g}")


def told(config: PhaseConfig, low: int) -> str:
    """Describe the documents of a key of `lengths`: "8,192 to 32,767 tokens"."""
    high = next((key for key in config.lengths or () if key > low), None)
    return f"{low:,} tokens and more" if high is None else f"{low:,} to {high - 1:,} tokens"


def normalised(shares: Mapping[Key, Fraction]) -> dict[Key, Fraction]:
    """Return shares that sum to 1."""
    total = sum(shares.values(), Fraction())
    return {key: share / total for key, share in shares.items()}
