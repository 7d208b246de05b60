"""Percentiles of a quality score among the documents of its source in the same language.

A score of 0.7 means nothing by itself: it depends on the model, and on the language and style of a
source. Its percentile p says that a share p of the source's documents in that language score less,
so that "the best tenth" is p >= 0.9 everywhere. Shares from 0 to 1, as all shares here; equal
scores get the middle of their ranks, so that the mean percentile of a source's sample is 0.5.

A scale holds the scores of a sample at equal steps of rank: documents are compared with it, never
with each other. A language with fewer than LEAST documents in the sample is compared with all
languages of the source: the percentiles of 100 documents are off by 0.05 at worst, typically.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from corpus_loader.permutation import derive_key, mix64

STEPS = 1_000  # of rank: a percentile is exact to 0.001, as a sample of 10,000 is at best
LEAST = 100  # documents of a language with a scale of its own
SAMPLE_DOCUMENTS = 10_000  # of a source; the error of a percentile is 0.005
EVERY_LANGUAGE = "*"

Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class QualityScale:
    """Ascending scores of a source's sample, float64, by language; `*`: of all languages."""

    scores: Mapping[str, Doubles]

    def to_table(self) -> pl.DataFrame:
        """Return the scale as a table: language, and its scores in order."""
        return pl.DataFrame(
            {
                "language": list(self.scores),
                "scores": [values.tolist() for values in self.scores.values()],
            },
            schema={"language": pl.String, "scores": pl.List(pl.Float64)},
        )

    @classmethod
    def from_table(cls, table: pl.DataFrame) -> Self:
        """Return the scale that `to_table` wrote."""
        return cls({lang: np.array(values, np.float64) for lang, values in table.iter_rows()})


def is_in_scale(doc_ids: pl.Series, share: float) -> NDArray[np.bool_]:
    """Select a seeded sample of documents by their ids, bool [n]: about `share` (0 to 1)."""
    heads = doc_ids.str.slice(0, 16).str.to_integer(base=16, dtype=pl.UInt64).to_numpy()
    chance = mix64(heads ^ np.uint64(derive_key(0, "quality scale"))).astype(np.float64)
    return chance < share * 2.0**64


def find_scale(sample: pl.DataFrame) -> QualityScale:
    """Return the scale of a sample: `language` (String) and `score` (Float64); nulls are skipped.

    The order of the rows does not matter.
    """
    known = sample.drop_nulls("score")
    groups = known.drop_nulls("language").partition_by("language", as_dict=True)
    named = sorted((str(key[0]), group["score"]) for key, group in groups.items())
    scores = {language: at_steps(each) for language, each in named if len(each) >= LEAST}
    return QualityScale({EVERY_LANGUAGE: at_steps(known["score"])} | scores)


def at_steps(scores: pl.Series) -> Doubles:
    """Return the scores at the middle of STEPS equal steps of rank; fewer scores are all taken."""
    ordered = np.sort(scores.to_numpy())
    if len(ordered) <= STEPS:
        return ordered
    return ordered[((np.arange(STEPS) + 0.5) * len(ordered) / STEPS).astype(np.int64)]


def percentiles(scores: pl.Series, languages: pl.Series, scale: QualityScale) -> pl.Series:
    """Return the percentile of each score in its language, Float64 in [0, 1]; null for null."""
    found = np.full(len(scores), np.nan)
    values = scores.to_numpy()
    own = languages.fill_null(EVERY_LANGUAGE).to_list()
    names = np.array([each if each in scale.scores else EVERY_LANGUAGE for each in own], object)
    for name, known in scale.scores.items():
        rows = np.flatnonzero((names == name) & ~np.isnan(values))
        if len(rows) and len(known):
            ranks = [np.searchsorted(known, values[rows], side) for side in ("left", "right")]
            found[rows] = (ranks[0] + ranks[1]) / (2 * len(known))
    return pl.Series("quality_percentile", found).fill_nan(None)
