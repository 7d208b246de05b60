"""Which documents are held out of training: by a keyed hash of an id."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from corpus_loader.permutation import derive_key, mix64

HASH_RANGE = 1 << 64
ID_CHARS = 16  # hex digits of 64 bits


def is_below(doc_ids: pl.Series, share: float) -> NDArray[np.bool_]:
    """Return whether each document is among a share by its own id, bool [n].

    In: String, 32 hex digits. A document that is among a share is among every larger one.
    """
    first, last = (
        doc_ids.str.slice(start, ID_CHARS).str.to_integer(base=16, dtype=pl.UInt64).to_numpy()
        for start in (0, ID_CHARS)
    )
    hashes = mix64(mix64(first ^ np.uint64(derive_key("holdout"))) ^ last)
    is_among: NDArray[np.bool_] = hashes < np.uint64(int(share * HASH_RANGE))
    return is_among
