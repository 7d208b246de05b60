"""Topics of documents: clusters of their vectors, frozen to integers.

Spherical k-means finds fine centres, at most one for DOCUMENTS_A_CENTRE documents of a sample.
They are merged into topics that all have their share (Marin merged 33 of 200). A document gets the
topic of its nearest fine centre, found in two levels, so that a topic may have any form.
Trade-off: training is in floating point and its bytes may differ by processor: topics are a record
that is kept, and numbers of topics mean nothing across records. Assigning is integer arithmetic.
Vectors of words are nearest to those of their language: with the means of groups taken away first,
clusters of code and of other languages than English do not collapse (marin#6850, marin#6855).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.text.buffers import code_point_entries, text_buffers, texts_in

Floats = NDArray[np.float32]
Vectors = NDArray[np.int8]
Integers = NDArray[np.int32]

DOCUMENTS_A_CENTRE = 100
FEWEST_CENTRES = 2
MOST_CENTRES = 1024
ROUNDS = 20
FAR_SHARE = 0.01  # of the sample is beyond `far`
NAMING_CHARACTERS = 2_000  # of a text that are read for the name of its topic
LEAST_IN_GROUP = 100  # documents of a group with a mean of its own
EVERY_GROUP = "*"


@dataclass(frozen=True, eq=False)
class Topics:
    """Fine centres, int8 [c, d], the group and the topic of each, int32 [c], and topics' names.

    Groups have numbers from 0 in order. `means`, int8 [m, d], are taken from the vectors of the
    groups of documents that `mean_names` has; `*` stands for all others. Vectors farther from
    their centre than `far`, in 1/1,000, belong to none: 1 % of the sample does.
    """

    centres: Vectors
    group_of: Integers
    topic_of: Integers
    names: tuple[str, ...]
    means: Vectors
    mean_names: tuple[str, ...]
    far: int

    @cached_property
    def group_means(self) -> Vectors:
        """Return the sum of each group's centres, scaled: int8 [groups, d]."""
        from assets.annotated.kernels.word_vectors import normalise_rows

        sums = np.zeros((self.group_of[-1] + 1, self.centres.shape[1]), np.int64)
        np.add.at(sums, self.group_of, self.centres)
        means: Vectors = normalise_rows(sums)
        return means

    def to_table(self) -> pl.DataFrame:
        """Return topics as a table, a row a centre; then one a mean, whose `topic` is null."""
        num_means = len(self.means)
        return pl.DataFrame(
            {
                "name": [*(self.names[topic] for topic in self.topic_of), *self.mean_names],
                "topic": [*self.topic_of.tolist(), *[None] * num_means],
                "group": [*self.group_of.tolist(), *[None] * num_means],
                "vector": [row.tobytes() for row in (*self.centres, *self.means)],
            },
            schema={"name": pl.String, "topic": pl.Int32, "group": pl.Int32, "vector": pl.Binary},
        ).with_columns(far=pl.lit(self.far, pl.Int32))

    @classmethod
    def from_table(cls, table: pl.DataFrame) -> Self:
        """Return the topics that `to_table` wrote."""
        vectors = np.frombuffer(b"".join(table["vector"]), np.int8).reshape(len(table), -1)
        centres, means = table.drop_nulls("topic"), table.filter(pl.col("topic").is_null())
        names = centres.unique("topic", keep="first").sort("topic")["name"]
        return cls(
            centres=vectors[: len(centres)],
            group_of=centres["group"].to_numpy(),
            topic_of=centres["topic"].to_numpy(),
            names=tuple(names),
            means=vectors[len(centres) :],
            mean_names=tuple(means["name"]),
            far=table["far"][0],
        )


def assign_topics(vectors: Vectors, groups: pl.Series, topics: Topics) -> pl.DataFrame:
    """Return `topic`, `centre` and `distance` (in 1/1,000, 0 to 2,000), Int32, of n vectors.

    `groups`, String [n], are what means were taken of. All are null for a vector of zeros; of
    equally near centres the first is taken.
    """
    from assets.annotated.kernels.nearest_centres import nearest_centres

    names = {name: row for row, name in enumerate(topics.mean_names)}
    rows = groups.replace_strict(names, default=names[EVERY_GROUP], return_dtype=pl.Int64)
    centred = _without_means(vectors, topics.means, rows.to_numpy())
    starts = np.searchsorted(topics.group_of, np.arange(len(topics.group_means) + 1))
    centre, distance = nearest_centres(
        centred, topics.group_means, topics.centres, starts.astype(np.int32)
    )
    found = {"topic": topics.topic_of[centre], "centre": centre, "distance": distance}
    has_words = pl.Series(vectors.any(axis=1), dtype=pl.Boolean)
    return pl.DataFrame(found).select(pl.when(has_words).then(pl.all()))


def train_topics(
    vectors: Vectors,
    groups: pl.Series,
    most_topics: int = 40,
    least_share: float = 0.01,
    seed: int = 0,
) -> Topics:
    """Find topics of a sample's vectors, int8 [n, d]; `groups`, String [n], of which means differ.

    At most `most_topics`, each with at least `least_share` of the sample. Names are numbers until
    `name_topics` finds better. Raises ValueError for fewer vectors with words than centres.
    """
    is_known = vectors.any(axis=1)
    vectors, groups = vectors[is_known], groups.filter(pl.Series(is_known))
    num_centres = min(max(len(vectors) // DOCUMENTS_A_CENTRE, FEWEST_CENTRES), MOST_CENTRES)
    if len(vectors) < num_centres:
        raise ValueError(f"{len(vectors)} documents with words have no topics. Add documents.")
    means, mean_names, rows = _find_means(vectors, groups)
    points = _unit(_without_means(vectors, means, rows))
    centres, _ = _spherical_kmeans(points, num_centres, seed)
    _, group_of = _spherical_kmeans(centres, max(1, round(num_centres**0.5)), seed)
    order = np.argsort(group_of, kind="stable")
    ordered: Integers = np.unique(group_of[order], return_inverse=True)[1].astype(np.int32)
    frozen = _frozen(centres[order])
    every = Topics(
        frozen, ordered, np.arange(num_centres, dtype=np.int32), (), means, mean_names, 2000
    )
    found = assign_topics(vectors, groups, every)
    sizes = np.bincount(found["centre"].to_numpy(), minlength=num_centres)
    topic_of = _merge(centres[order], sizes, most_topics, least_share)
    names = tuple(str(number) for number in range(topic_of.max() + 1))
    far = int(np.quantile(found["distance"].to_numpy(), 1 - FAR_SHARE, method="higher"))
    return Topics(frozen, ordered, topic_of, names, means, mean_names, far)


def words_of_topics(texts: pl.Series, topics: pl.Series) -> pl.DataFrame:
    """Return `topic` and `word` of each distinct word of n texts that may name their topic.

    Read are the first NAMING_CHARACTERS of texts with a topic (Int32; else null); numbers and words
    of ASCII below four letters are left out.
    """
    from assets.text.kernels.words import join_words

    known = topics.is_not_null()
    heads = texts.filter(known).str.head(NAMING_CHARACTERS)
    joined, starts, ends = join_words(*text_buffers(heads), code_point_entries())
    words = texts_in(joined, starts).str.strip_chars_end(" ")
    rows = np.repeat(np.arange(len(heads)), np.diff(ends))
    table = pl.DataFrame({"row": rows, "word": words}).unique()
    table = table.filter(~pl.col("word").str.contains(r"^([\x00-\x7f]{1,3}|[\d_]*)$"))
    return table.select(topics.filter(known).gather(table["row"]).alias("topic"), "word")


def name_topics(words: pl.DataFrame, topics: int, count: int = 4) -> tuple[str, ...]:
    """Return the names of so many topics: their numbers, and the words that set each apart.

    `words` has a row for each distinct word of each document: `topic` (Int32, from 0), `word`.
    Words are weighed by class TF-IDF (Grootendorst 2022, "BERTopic"), counted once a document.
    """
    counted = words.group_by("topic", "word").agg(n=pl.len())
    total, own = pl.col("n").sum().over("word"), pl.col("n").sum().over("topic")
    average = len(words) / max(words["topic"].n_unique(), 1)
    weight = pl.col("n") / own * (1 + average / total).log()
    best = counted.with_columns(weight=weight).sort("weight", "word", descending=[True, False])
    named = dict(best.group_by("topic").agg(pl.col("word").head(count).str.join(" ")).iter_rows())
    digits = len(str(topics - 1))
    return tuple(f"{topic:0{digits}} {named.get(topic, '')}".strip() for topic in range(topics))


def _without_means(vectors: Vectors, means: Vectors, rows: NDArray[np.int64]) -> Vectors:
    """Return vectors without the mean that `rows` has for each, at their full length."""
    from assets.annotated.kernels.word_vectors import normalise_rows

    centred: Vectors = normalise_rows(vectors.astype(np.int64) - means[rows])
    return centred


def _find_means(
    vectors: Vectors, groups: pl.Series
) -> tuple[Vectors, tuple[str, ...], NDArray[np.int64]]:
    """Return means, their groups' names, and the row of each vector's; the first is of all."""
    sizes = groups.drop_nulls().value_counts().filter(pl.col("count") >= LEAST_IN_GROUP)
    names = (EVERY_GROUP, *sorted(sizes[sizes.columns[0]]))
    number = {name: row for row, name in enumerate(names)}
    rows = groups.replace_strict(number, default=0, return_dtype=pl.Int64).to_numpy()
    own = [vectors[rows == row] if row else vectors for row in range(len(names))]
    return np.stack([np.round(each.mean(axis=0)) for each in own]).astype(np.int8), names, rows


def _spherical_kmeans(points: Floats, count: int, seed: int) -> tuple[Floats, NDArray[np.int64]]:
    """Return unit centres, float32 [count, d], and the nearest of each point of unit length.

    A centre without points moves to the point that is farthest from its own.
    """
    generator = np.random.default_rng(seed)
    centres = points[generator.choice(len(points), count, replace=False)]
    nearest = np.zeros(len(points), np.int64)
    for _ in range(ROUNDS):
        products = points @ centres.T
        nearest = products.argmax(axis=1)
        farthest = iter(np.argsort(products.max(axis=1), kind="stable"))
        sums = np.zeros_like(centres)
        np.add.at(sums, nearest, points)
        for empty in np.flatnonzero(np.bincount(nearest, minlength=count) == 0):
            sums[empty] = points[next(farthest)]
        centres = _unit(sums)
    return centres, (points @ centres.T).argmax(axis=1)


def _merge(centres: Floats, sizes: NDArray[np.int64], most: int, least_share: float) -> Integers:
    """Return the topic of each centre, numbered from the largest to the smallest.

    Ward's method makes `most` topics; then the smallest joins its nearest until all have their
    share.
    """
    from scipy.cluster.hierarchy import fcluster, linkage

    topic_of = fcluster(linkage(centres, "ward"), most, "maxclust") - 1
    weights = np.bincount(topic_of, sizes)
    sums = np.zeros((len(weights), centres.shape[1]))
    np.add.at(sums, topic_of, centres * np.maximum(sizes, 1)[:, None])
    left = np.ones(len(weights), np.bool_)
    while left.sum() > 1:
        smallest = int(np.where(left, weights, np.inf).argmin())
        if weights[smallest] >= least_share * sizes.sum():
            break
        left[smallest] = False
        means = _unit(sums)
        into = int(np.where(left, means @ means[smallest], -np.inf).argmax())
        topic_of[topic_of == smallest] = into
        sums[into] += sums[smallest]
        weights[into] += weights[smallest]
    ranks = np.empty(len(weights), np.int32)
    ranks[np.argsort(np.where(left, -weights, np.inf), kind="stable")] = np.arange(len(weights))
    return ranks[topic_of]


def _unit(rows: NDArray[np.generic]) -> Floats:
    values = rows.astype(np.float32)
    lengths = np.linalg.norm(values, axis=1, keepdims=True)
    return np.asarray(values / np.maximum(lengths, 1e-12), np.float32)


def _frozen(centres: Floats) -> Vectors:
    from assets.annotated.kernels.word_vectors import normalise_rows

    frozen: Vectors = normalise_rows(np.round(centres.astype(np.float64) * 2**20).astype(np.int64))
    return frozen
