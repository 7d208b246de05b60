"""Percentiles of a quality score within a source and language."""

from prelude import given, np, pl, pytest, st

from assets.filtered.classifier.classifier import (
    LEAST,
    STEPS,
    QualityScale,
    find_scale,
    percentiles,
)
from assets.text.document_ids import is_sampled
from corpus_loader.permutation import derive_key, mix64


def sample(scores: list[float | None], language: str | None = "en") -> pl.DataFrame:
    """A sample in one language."""
    schema = {"language": pl.String, "score": pl.Float64}
    return pl.DataFrame({"language": [language] * len(scores), "score": scores}, schema=schema)


def ranked(scores: list[float | None], scale: QualityScale, language: str | None = "en") -> list:
    """The percentiles of documents in one language."""
    languages = pl.Series([language] * len(scores), dtype=pl.String)
    return percentiles(pl.Series(scores, dtype=pl.Float64), languages, scale).to_list()


def test_a_percentile_is_the_share_below_and_ties_are_in_the_middle() -> None:
    scale = find_scale(sample([0.1, 0.2, 0.2, 0.4]))

    found = ranked([0.0, 0.1, 0.2, 0.3, 0.4, 0.9, None], scale)

    assert found == [0.0, 0.125, 0.5, 0.75, 0.875, 1.0, None]


def test_a_source_of_one_score_is_all_in_the_middle() -> None:
    assert ranked([0.7, 0.1, 0.8], find_scale(sample([0.7] * 500))) == [0.5, 0.0, 1.0]


def test_a_language_is_compared_with_itself_if_the_sample_has_enough_of_it() -> None:
    english, german = np.linspace(0.5, 1, LEAST).tolist(), np.linspace(0, 0.5, LEAST).tolist()
    few = [0.25] * (LEAST - 1)
    scale = find_scale(
        pl.concat([sample(english), sample(german, "de"), sample(few, "fr"), sample([0.9], None)])
    )

    assert list(scale.scores) == ["*", "de", "en"]
    assert ranked([0.5], scale, "de") == [pytest.approx(1, abs=0.01)]
    assert ranked([0.5], scale, "en") == [pytest.approx(0, abs=0.01)]
    everyone = pytest.approx(0.5, abs=0.17)
    assert ranked([0.26], scale, "fr") == ranked([0.26], scale, None) == [everyone]


def test_without_a_sample_there_is_no_percentile() -> None:
    assert ranked([0.5, None], find_scale(sample([None]))) == [None, None]
    assert ranked([0.5], QualityScale({})) == [None]
    assert ranked([], find_scale(sample([0.5]))) == []


@pytest.mark.parametrize("count", [150, STEPS, 7_777])
def test_percentiles_of_the_sample_itself_are_uniform(count: int) -> None:
    chance = mix64(np.arange(count, dtype=np.uint64) ^ np.uint64(derive_key(1, "scores")))
    scores = (chance / 2.0**64) ** 5  # most are near 0, as classifiers have it
    scale = find_scale(sample(scores.tolist()))

    found = np.sort(ranked(scores.tolist(), scale))

    expected = (np.arange(count) + 0.5) / count
    assert np.abs(found - expected).max() <= 1 / min(count, STEPS)
    assert scale.scores["en"].size == min(count, STEPS)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=300), st.randoms(use_true_random=False))
def test_order_changes_no_scale_and_percentiles_ascend_with_scores(
    scores: list[float], random: st.randoms
) -> None:
    scale = find_scale(sample(list(scores)))
    shuffled = random.sample(scores, len(scores))

    assert find_scale(sample(list(shuffled))).to_table().equals(scale.to_table())
    found = ranked(sorted(scores), scale)
    assert found == sorted(found)
    assert 0 <= found[0] <= found[-1] <= 1
    assert np.mean(found) == pytest.approx(0.5)


def test_a_scale_is_read_as_it_was_written() -> None:
    scale = find_scale(sample(np.linspace(0, 1, 250).tolist()))

    again = QualityScale.from_table(scale.to_table())

    assert again.to_table().equals(scale.to_table())
    assert ranked([0.123, 0.5], again) == ranked([0.123, 0.5], scale) == [0.124, 0.5]


def test_the_sample_is_golden_and_about_its_share() -> None:
    doc_ids = pl.Series([f"{number:016x}{0:016x}" for number in range(4_000)])

    taken = is_sampled(doc_ids, 0.1, 0, "quality scale")

    assert np.flatnonzero(taken)[:8].tolist() == GOLDEN
    assert 340 < taken.sum() < 460
    assert (
        is_sampled(doc_ids, 1, 0, "quality scale").all()
        and not is_sampled(doc_ids, 0, 0, "quality scale").any()
    )
    assert (is_sampled(doc_ids, 0.2, 0, "quality scale") | ~taken).all()


GOLDEN = [2, 9, 17, 19, 23, 51, 58, 70]  # another sample: the scales of all sources change
