"""Which documents are alike, so that they are packed side by side (`buckets.neighbours`).

A document is told by the smallest hash among its tokens that are not common ones, as in MinHash:
two documents agree with a probability of the share of such tokens that they have in common. It
depends on the document alone: what else comes or goes, it stays near those that are like it.
In a sequence of documents alike a model learns to look across them (arXiv 2310.10638, 2312.17296).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.bucketed.packing import HIGH, LOW
from assets.text.list_columns import as_numpy, list_content
from corpus_loader.permutation import UInt64s, mix64

COMMON = 4096  # byte-level BPE learns what is frequent first: smaller ids are in most documents


def near_names(tables: Sequence[pl.DataFrame], names: UInt64s) -> UInt64s:
    """Return names of documents, uint64 [n], whose first 32 bits are equal for documents alike.

    In: their tokens, and names that tell them apart. A document of common tokens only keeps its
    name. Holds 4 bytes for each token of a table.
    """
    smallest = np.concatenate([np.empty(0, np.uint32), *map(smallest_hashes, tables)])
    alike = mix64(smallest.astype(np.uint64)) & HIGH | names & LOW
    return np.where(smallest == np.uint32(LOW), names, alike)


def smallest_hashes(table: pl.DataFrame) -> NDArray[np.uint32]:
    """Return the smallest hash of a token that is not common, by document; 2**32 - 1 for none."""
    items, edges = list_content(table["tokens"])
    tokens = as_numpy(items)
    hashes = (mix64(np.arange(int(tokens.max(initial=0)) + 1, dtype=np.uint64)) & LOW).astype("<u4")
    hashes[:COMMON] = LOW
    smallest = np.full(table.height, LOW, np.uint32)
    has_tokens = np.diff(edges) > 0
    if has_tokens.any():
        smallest[has_tokens] = np.minimum.reduceat(hashes[tokens], edges[:-1][has_tokens])
    return smallest
