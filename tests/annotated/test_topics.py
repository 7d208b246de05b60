"""Topics against plain Python: the nearest centre in two levels, shares, means and names."""

import math

from prelude import NDArray, Path, assert_frame_equal, given, np, pl, pytest, st

from assets.annotated.kernels.nearest_centres import nearest_centres
from assets.annotated.kernels.word_vectors import normalise_rows
from assets.annotated.topics.topics import (
    Topics,
    assign_topics,
    name_topics,
    train_topics,
    words_of_topics,
)


def vectors_near(
    centres: NDArray[np.float64], labels: NDArray[np.int64], seed: int = 0
) -> NDArray[np.int8]:
    """Vectors around the centre of each label."""
    noise = np.random.default_rng(seed).normal(0, 0.03, (len(labels), 256))
    return normalise_rows(np.round((centres[labels] + noise) * 1e6).astype(np.int64))


def directions(count: int) -> NDArray[np.float64]:
    drawn = np.random.default_rng(7).normal(size=(count, 256))
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def of_one_language(count: int) -> pl.Series:
    return pl.Series(["en"] * count, dtype=pl.String)


def nearest_slowly(vector: list[int], centres: list[list[int]]) -> int:
    """The first of the centres with the greatest inner product."""
    products = [sum(a * b for a, b in zip(vector, each, strict=True)) for each in centres]
    return products.index(max(products))


def distance_slowly(one: list[int], two: list[int]) -> int:
    inner = sum(a * b for a, b in zip(one, two, strict=True))
    length = math.isqrt(sum(a * a for a in one) * sum(b * b for b in two))
    return 1000 - 1000 * inner // max(length, 1)


@given(st.integers(0, 2**32), st.integers(1, 4), st.sampled_from([1, 2, 127]))
def test_the_nearest_centre_is_that_of_the_reference(seed: int, count: int, most: int) -> None:
    drawn = np.random.default_rng(seed)
    starts = np.cumsum([0, *drawn.integers(1, 4, count)]).astype(np.int32)
    # Of two values in four dimensions only: many products are equal.
    numbers = drawn.integers(-most, most + 1, (12 + count + starts[-1], 256), np.int8)
    numbers[:, 4:] = 0 if most < 127 else numbers[:, 4:]
    vectors, groups, centres = np.split(numbers, [12, 12 + count])

    found, distances = nearest_centres(vectors, groups, centres, starts)

    for row, vector in enumerate(vectors.tolist()):
        group = nearest_slowly(vector, groups.tolist())
        own = centres[starts[group] : starts[group + 1]].tolist()
        assert found[row] == starts[group] + nearest_slowly(vector, own)
        assert distances[row] == distance_slowly(vector, centres[found[row]].tolist())


def test_clusters_become_topics_from_large_to_small() -> None:
    labels = np.repeat([0, 1, 2, 3], [1200, 800, 400, 200])
    vectors = vectors_near(directions(4), labels)

    topics = train_topics(vectors, of_one_language(2600), most_topics=4, least_share=0.05)
    found = assign_topics(vectors, of_one_language(2600), topics)

    assert found["topic"].to_list() == labels.tolist()
    assert topics.names == ("0", "1", "2", "3")
    assert len(topics.centres) == 26
    far = found.filter(pl.col("distance") > topics.far)
    assert 0 < len(far) <= 26


def test_every_topic_has_its_share_of_the_sample() -> None:
    labels = np.random.default_rng(1).integers(0, 30, 5000) ** 2 // 30
    vectors = vectors_near(directions(30), labels)

    for most, least in ((8, 0.0), (30, 0.1), (30, 0.04), (1, 0.01)):
        topics = train_topics(vectors, of_one_language(5000), most, least)
        found = assign_topics(vectors, of_one_language(5000), topics)["topic"]
        shares = np.bincount(found.to_numpy()) / 5000
        assert len(shares) <= most and shares.min() >= least
        assert (np.diff(shares) <= 0).all()


def test_a_subject_in_two_languages_is_one_topic() -> None:
    """Without means the languages are the clusters."""
    drawn = np.random.default_rng(2)
    languages, subjects = drawn.integers(0, 2, 2000), drawn.integers(0, 2, 2000)
    axes = directions(4)
    noise = drawn.normal(0, 0.01, (2000, 256))
    sums = 2 * axes[languages] + axes[2 + subjects] + noise
    vectors = normalise_rows(np.round(sums * 1e6).astype(np.int64))
    groups = pl.Series(["en", "de"]).gather(languages)

    by_mean = assign_topics(vectors, groups, train_topics(vectors, groups, 2))["topic"]
    of_all = of_one_language(2000)
    without = assign_topics(vectors, of_all, train_topics(vectors, of_all, 2))["topic"]

    assert agreement(by_mean, subjects) == 1.0
    assert agreement(without, languages) == 1.0


def agreement(found: pl.Series, wanted: NDArray[np.int64]) -> float:
    share = float((found.to_numpy() == wanted).mean())
    return max(share, 1 - share)


def test_new_documents_are_far_and_those_without_words_have_no_topic() -> None:
    axes = directions(5)
    vectors = vectors_near(axes[:4], np.arange(2000) % 4)
    topics = train_topics(vectors, of_one_language(2000))
    strange = vectors_near(axes, np.full(50, 4))
    strange[-1] = 0

    found = assign_topics(strange, pl.Series([None, "xx"] * 25, dtype=pl.String), topics)

    assert (found["distance"].head(49) > topics.far).all()
    assert found.row(49) == (None, None, None)
    empty = assign_topics(strange[:0], pl.Series([], dtype=pl.String), topics)
    assert empty.schema == {"topic": pl.Int32, "centre": pl.Int32, "distance": pl.Int32}


def test_a_small_group_shares_the_mean_of_all() -> None:
    vectors = vectors_near(directions(2), np.arange(1000) % 2)
    groups = pl.Series(["en"] * 800 + ["de"] * 101 + ["fr"] * 99)

    topics = train_topics(vectors, groups)

    assert topics.mean_names == ("*", "de", "en")
    every = np.round(vectors.mean(axis=0))
    assert np.array_equal(topics.means[0], every)


def test_a_sample_of_few_documents_is_refused() -> None:
    vectors = vectors_near(directions(2), np.arange(250) % 2)
    vectors[1:] = 0
    with pytest.raises(ValueError, match="1 documents with words have no topics"):
        train_topics(vectors, of_one_language(250))


def test_topics_survive_their_table(tmp_path: Path) -> None:
    vectors = vectors_near(directions(9), np.arange(2000) % 9)
    groups = pl.Series(["en", "de"] * 1000)
    topics = train_topics(vectors, groups)

    topics.to_table().write_parquet(tmp_path / "topics.parquet")
    after = Topics.from_table(pl.read_parquet(tmp_path / "topics.parquet"))

    assert_frame_equal(after.to_table(), topics.to_table())
    assert (after.names, after.mean_names, after.far) == (
        topics.names,
        topics.mean_names,
        topics.far,
    )
    own = assign_topics(vectors, groups, topics)
    assert_frame_equal(assign_topics(vectors, groups, after), own)


def test_names_are_the_words_that_set_a_topic_apart() -> None:
    words = {0: "also cell cell membrane", 1: "also bolt steel", 2: "also cell"}
    rows = [
        (topic, word) for topic, text in words.items() for word in text.split() for _ in range(3)
    ]
    table = pl.DataFrame(rows, {"topic": pl.Int32, "word": pl.String}, orient="row")

    assert name_topics(table, 3, 2) == ("0 cell membrane", "1 bolt steel", "2 also cell")
    assert name_topics(table.filter(topic=1), 11, 1)[:3] == ("00", "01 also", "02")


def test_words_that_may_name_a_topic_are_distinct_and_no_numbers() -> None:
    texts = pl.Series(["Cells and CELLS, 1984 x_1", "bolt", "日本", "", "x " * 1000 + "beyond"])
    topics = pl.Series([1, None, 0, 0, 0], dtype=pl.Int32)

    words = words_of_topics(texts, topics)

    assert sorted(words.rows()) == [(0, "日"), (0, "本"), (1, "cells")]
    assert words.schema == {"topic": pl.Int32, "word": pl.String}
    assert words_of_topics(texts.head(0), topics.head(0)).is_empty()
