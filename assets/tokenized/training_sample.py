"""Training sample of the tokenizer: the bytes to take of each source, and the documents.

A document is taken if its key, a hash of its id, is below a share. The share that gives the wanted
bytes is not known beforehand, since only the beginning of a document counts and no stage stores
lengths. It starts at wanted / available bytes, which is right if no document is long, and is
widened according to what was drawn. Each text is read once, usually in the first round.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from corpus_loader.permutation import derive_key, mix64

if TYPE_CHECKING:
    from resources.settings.tokenizer import TokenizerConfig

SAMPLED_CHARS = 200_000  # of one document: a book of 40 MB would be most of a sample of 10 MB
ENOUGH = 0.9  # of the bytes wanted; a hundred documents give a share to within about 10 %
WIDEST_STEP = 2.0  # if the first documents are tiny, they say little about the rest
SHORT = 0.8  # a source with less of what the config asks for is named in the log


def is_sampled(doc_ids: pl.Series, share: float, seed: int) -> pl.Series:
    """Mark the documents in the seeded sample of that share of all documents; Boolean.

    The mark depends on the document alone, so order and partitions do not change the sample. A
    larger share takes all that a smaller one does.
    """
    head = doc_ids.str.slice(0, 16).str.to_integer(base=16, dtype=pl.UInt64)
    keys = mix64(head.to_numpy() ^ np.uint64(derive_key(seed, "tokenizer sample")))
    return pl.Series("is_sampled", keys.astype(np.float64) < share * 2.0**64)


def wider_share(share: float, drawn: int, quota: int, available: int) -> float:
    """Return the share to draw next from a source that gave `drawn` of `quota` bytes at `share`.

    It stays the same once the source gave ENOUGH of its quota, or everything, and is at most 1.
    """
    if share >= 1 or drawn >= ENOUGH * quota:
        return share
    if share == 0:
        return min(1.0, quota / max(1, available))
    return min(1.0, share * min(WIDEST_STEP, quota / max(1, drawn)))


def sample_quotas(available: Mapping[str, int], config: TokenizerConfig) -> dict[str, int]:
    """Split the bytes of the sample over the sources, given the bytes `available` in each.

    Shares follow the weights, or the bytes if there are none; a source not named gives nothing. A
    source with less than its share gives all, and the others share the rest. The quotas add up to
    sample_bytes, or to all bytes of the sources if that is less.
    """
    weights: Mapping[str, float] = config.weights or available
    quotas = dict.fromkeys(available, 0)
    left, open_sources = config.sample_bytes, [s for s in available if weights.get(s, 0) > 0]
    while open_sources:
        total = sum(weights[source] for source in open_sources)
        wanted = {source: left * weights[source] / total for source in open_sources}
        short = [source for source in open_sources if available[source] <= wanted[source]]
        if not short:
            return quotas | {source: int(size) for source, size in wanted.items()}
        quotas |= {source: available[source] for source in short}
        left -= sum(available[source] for source in short)
        open_sources = [source for source in open_sources if source not in short]
    return quotas


def wanted_bytes(available: Mapping[str, int], config: TokenizerConfig) -> dict[str, int]:
    """Return the bytes of each source that the config asks for, even if the source has fewer."""
    if config.weights is None:
        return sample_quotas(available, config)
    weights = {source: config.weights.get(source, 0.0) for source in available}
    total = sum(weights.values()) or 1.0
    return {source: int(config.sample_bytes * weight / total) for source, weight in weights.items()}


def sample_warnings(wanted: Mapping[str, int], drawn: Mapping[str, int]) -> list[str]:
    """Write a sentence for each source that gave less than SHORT of what the config asks for."""
    return [
        f"source {source!r} gives {drawn[source]:,} bytes of the {size:,} of the tokenizer's "
        f"sample that the config asks of it, {drawn[source] / size:.0%}: it has no more (of a "
        f"document the first {SAMPLED_CHARS:,} characters count), and others take its place. Take "
        "a smaller tokenizer.sample_bytes, or weights that it can give."
        for source, size in wanted.items()
        if drawn[source] < SHORT * size
    ]
