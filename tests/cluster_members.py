"""Documents as `decide` takes them, and the candidate pairs that the index would give."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from resources.settings.dedup import DedupConfig

Pair = tuple[int, int]
VALUES, ROWS = 4, 2  # of a signature, of a band


@dataclass(frozen=True)
class Doc:
    """A document of a test: equal numbers are equal hashes."""

    ref: int
    doc_id: str
    text: int | None = None
    signature: tuple[int, ...] | None = None
    url: int | None = None
    group: int = 0
    generation: int = 0
    source: str = "web"
    num_chars: int = 10
    quality: float | None = None
    date: int | None = None


def doc(number: int, **values: Any) -> Doc:
    """A document whose ref and doc_id ascend with a number."""
    return Doc(ref=number, doc_id=f"{number:032x}", **values)


def config(**values: Any) -> DedupConfig:
    """Two bands of two values, one field; candidates are not verified, and have no texts."""
    given: dict[str, Any] = {
        **{"verify": "none", "clusters": "components"},
        "keep": ("priority", "ingested", "longest"),
    }
    return DedupConfig(bands=VALUES // ROWS, rows=ROWS, fields=("url",), **given | values)


def table(docs: Sequence[Doc]) -> pl.DataFrame:
    """Members of `decide`."""

    def hashes(values: Iterable[int | None]) -> pl.Series:
        return pl.Series([None if v is None else v.to_bytes(16) for v in values], dtype=pl.Binary)

    return pl.DataFrame(
        {
            "ref": pl.Series([d.ref for d in docs], dtype=pl.UInt64),
            "component": pl.Series([0] * len(docs), dtype=pl.UInt64),
            "source": pl.Series([d.source for d in docs], dtype=pl.String),
            "generation": pl.Series([d.generation for d in docs], dtype=pl.UInt32),
            "doc_id": pl.Series([d.doc_id for d in docs], dtype=pl.String),
            "num_chars": pl.Series([d.num_chars for d in docs], dtype=pl.UInt32),
            "num_words": pl.Series([d.num_chars for d in docs], dtype=pl.UInt32),
            "text_hash": hashes(d.text for d in docs),
            "field_00": hashes(d.url for d in docs),
            "group": pl.Series([d.group for d in docs], dtype=pl.UInt64),
            "quality": pl.Series([d.quality for d in docs], dtype=pl.Float64),
            "date": pl.Series([d.date for d in docs], dtype=pl.Int64),
            "signature": pl.Series([d.signature for d in docs], dtype=pl.Array(pl.UInt32, VALUES)),
        }
    )


def as_pairs(pairs: Iterable[Pair]) -> NDArray[np.uint64]:
    return np.array(list(pairs), np.uint64).reshape(-1, 2)


def candidates(docs: Sequence[Doc]) -> list[Pair]:
    """Each document with the first and the previous one of each of its keys, as the index does."""
    buckets: dict[object, list[int]] = {}
    pairs = []
    for d in sorted(docs, key=lambda d: d.ref):
        keys: list[object] = [("text", d.group, d.text)] if d.text is not None else []
        keys += [("url", d.group, d.url)] if d.url is not None else []
        bands = d.signature or ()
        keys += [(k, d.group, bands[k : k + ROWS]) for k in range(0, len(bands), ROWS)]
        for key in keys:
            bucket = buckets.setdefault(key, [])
            pairs += [(bucket[at], d.ref) for at in (0, -1) if bucket]
            bucket.append(d.ref)
    return pairs
