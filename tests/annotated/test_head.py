"""Heads: integer scores against the probabilities of their model, optima, and measures."""

from functools import cache

from prelude import Any, NDArray, Path, assert_frame_equal, np, pl, pytest

from assets.annotated.classify.head import (
    Head,
    _fit_names,
    _fit_numbers,
    is_held_out,
    score_vectors,
    train_head,
)
from assets.annotated.classify.head_report import kappa, measure_head
from assets.annotated.kernels.word_vectors import normalise_rows

DIRECTION = np.random.default_rng(4).normal(size=256) / 16


def examples(count: int = 1500, labels: int = 6) -> tuple[NDArray[np.int8], pl.Series]:
    """Vectors, and labels by their product with a direction, with noise."""
    drawn = np.random.default_rng(5)
    vectors = normalise_rows((drawn.normal(size=(count, 256)) * 1e5).astype(np.int64))
    products = vectors / 512 @ DIRECTION * 16 + drawn.normal(0, 0.3, count)
    edges = np.quantile(products, (np.arange(1, labels) / labels) ** 2)
    return vectors, pl.Series(np.searchsorted(edges, products))


def test_numbered_scores_are_the_expected_labels_of_the_model() -> None:
    vectors, labels = examples()
    weights, thresholds = _fit_numbers(vectors / 512, labels.to_numpy(), 6, 0.1 / len(vectors))
    margins = vectors / 512 @ weights
    expected = (1 / (1 + np.exp(thresholds[:, None] - margins))).sum(axis=0)

    head = train_head(vectors, labels)
    scores = score_vectors(vectors, head)

    assert scores.dtype == pl.Int32
    assert np.abs(scores.to_numpy() / 1000 - expected).max() < 0.02
    assert np.corrcoef(scores.to_numpy(), labels.to_numpy())[0, 1] > 0.8
    assert (np.diff(head.scores) >= 0).all() and head.labels == ("0", "1", "2", "3", "4", "5")


@pytest.mark.parametrize("kind", ["numbers", "names"])
def test_training_is_at_a_minimum(kind: str) -> None:
    """No step in any direction makes the loss, written anew, less."""
    vectors, labels = examples(400, 4)
    points, numbers = vectors / 512, labels.to_numpy()
    drawn = np.random.default_rng(1)

    def loss_of_numbers(weights: Any, thresholds: Any) -> float:
        ends = np.concatenate([[-np.inf], thresholds, [np.inf]])
        below = 1 / (1 + np.exp(-(ends - (points @ weights)[:, None])))
        shares = np.diff(below, axis=1)[np.arange(400), numbers]
        return float(-np.log(shares).mean() + 5e-4 * (weights**2).sum())

    def loss_of_names(weights: Any, biases: Any) -> float:
        odds = np.exp(points @ weights.T + biases)
        shares = odds[np.arange(400), numbers] / odds.sum(axis=1)
        return float(-np.log(shares).mean() + 5e-4 * (weights**2).sum())

    fit, loss = (
        (_fit_numbers, loss_of_numbers) if kind == "numbers" else (_fit_names, loss_of_names)
    )
    weights, others = fit(points, numbers, 4, 1e-3)
    best = loss(weights, others)
    for _ in range(50):
        moved = weights + drawn.normal(0, 0.3, weights.shape), others
        assert loss(*moved) > best
        assert loss(weights, others + drawn.normal(0, 0.05, others.shape)) > best - 1e-6


def test_names_are_told_apart_and_two_numbers_are_probabilities() -> None:
    vectors, numbers = examples(2000, 2)
    names = numbers.replace_strict({0: "art", 1: "law"})

    by_name = score_vectors(vectors, train_head(vectors, names))
    by_number = score_vectors(vectors, train_head(vectors, numbers))

    assert (by_name == names).mean() > 0.85  # type: ignore[operator]
    assert 0 <= by_number.min() < 100 and 900 < by_number.max() <= 1000  # type: ignore[operator]
    assert by_number.mean() == pytest.approx(750, abs=5)


def test_vectors_of_zeros_have_no_score() -> None:
    vectors, numbers = examples(300, 3)
    head = train_head(vectors, numbers)
    vectors = np.append(vectors[:2], np.zeros((1, 256), np.int8), axis=0)

    assert score_vectors(vectors, head).is_null().to_list() == [False, False, True]
    names = train_head(*examples(300, 3)[:1], numbers.cast(pl.String))
    assert score_vectors(vectors, names)[2] is None
    assert score_vectors(vectors[:0], head).to_list() == []


def test_equal_names_are_the_first_and_products_beyond_the_table_its_ends() -> None:
    weights = np.zeros((3, 256), np.int16)
    weights[1:, 0] = 5
    named = Head(weights, np.zeros(3, np.int64), np.empty(0, np.int32), 0, ("a", "b", "c"))
    vectors = np.zeros((2, 256), np.int8)
    vectors[:, 0] = (127, -127)
    assert score_vectors(vectors, named).to_list() == ["b", "a"]

    numbered = Head(weights[1:2] * 6000, np.zeros(1, np.int64), np.arange(1024, dtype="i4"), 3, ())
    assert score_vectors(vectors, numbered).to_list() == [1023, 0]
    small = np.where(vectors, vectors // 127, 0).astype(np.int8)
    assert score_vectors(small, Head(weights[1:2], *_rest(numbered))).to_list() == [512, 511]


def _rest(head: Head) -> tuple[Any, ...]:
    return head.biases, head.scores, head.shift, head.labels


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1, 1, 1], r"1 label \(\[1\]\) on 3 documents with words; at least two"),
        ([0, 2, 2], r"labels \[0, 2\]; numbers must be 0, 1 and so on"),
        (["a", "a", "a"], r"1 label \(\['a'\]\)"),
    ],
)
def test_labels_that_teach_nothing_are_refused(labels: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        train_head(examples(3)[0], pl.Series(labels))


def test_a_head_survives_its_table(tmp_path: Path) -> None:
    vectors, numbers = examples(300, 3)
    for labels in (numbers, numbers.cast(pl.String)):
        head = train_head(vectors, labels)
        head.to_table().write_parquet(tmp_path / "head.parquet")
        after = Head.from_table(pl.read_parquet(tmp_path / "head.parquet"))
        assert_frame_equal(after.to_table(), head.to_table())
        assert score_vectors(vectors, after).equals(score_vectors(vectors, head))


def test_equal_vectors_are_held_out_together() -> None:
    vectors, _ = examples(2000)
    held = is_held_out(np.concatenate([vectors, vectors]))
    assert np.array_equal(held[:2000], held[2000:])
    assert 0.17 < held.mean() < 0.23
    assert (is_held_out(vectors, 1) != held[:2000]).any()


def test_kappa_is_that_of_the_literature() -> None:
    """Cohen 1960's form by hand: 0.7 observed, 0.5 by chance; squares weigh far errors more."""
    counts = np.array([[[20, 5], [10, 15]]])
    assert kappa(counts, is_ordered=False) == pytest.approx(0.4)
    near = np.array([[[8, 2, 0], [2, 8, 2], [0, 2, 8]]])
    far = np.array([[[8, 0, 2], [2, 8, 2], [2, 0, 8]]])
    assert (kappa(near, is_ordered=True) or 0) > (kappa(far, is_ordered=True) or 0)
    assert kappa(np.array([[[5, 0], [0, 0]]]), is_ordered=True) is None


def held_out(scores: list[int], labels: list[int], sources: list[str]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "score": pl.Series(scores, dtype=pl.Int32),
            "label": labels,
            "language": ["en", "de"] * (len(scores) // 2),
            "source": sources,
        }
    )


@cache
def numbered_head() -> Head:
    return train_head(*examples(300, 3))


def test_a_report_counts_answers_calibration_and_languages() -> None:
    scores, labels = [100, 900, 1500, 2000] * 20, [0, 1, 1, 2] * 20

    report = measure_head(held_out(scores, labels, ["a"] * 80), numbered_head())

    assert report.confusion == ((20, 0, 0), (0, 20, 20), (0, 0, 20))
    assert report.accuracy == 0.75
    assert report.kappa_by_language == {"de": 1.0, "en": 1 - 20 / 60}
    assert report.kappa == report.kappa_within_sources == pytest.approx(0.8)
    assert [bin_.documents for bin_ in report.calibration] == [20, 20, 20, 20]
    assert report.calibration[2] == report.calibration[2].__class__(20, 1.5, 1.0)
    assert report.warnings == ()


def test_suspect_scores_are_warned_of() -> None:
    constant = measure_head(held_out([1000] * 99 + [0], [0, 1] * 50, ["a"] * 100), numbered_head())
    assert "nearly constant: 90 % are from 1.00 to 1.00" in constant.warnings[0]

    sources = ["good"] * 100 + ["bad"] * 100
    labels = [2] * 80 + [0] * 20 + [0] * 80 + [2] * 20
    sorting = measure_head(held_out([1900] * 100 + [100] * 100, labels, sources), numbered_head())
    assert sorting.kappa == pytest.approx(0.6) and sorting.kappa_within_sources == 0
    assert sorting.warnings[0].startswith("answers only sort sources: kappa is 0.60")

    names = train_head(examples(300, 3)[0], examples(300, 3)[1].cast(pl.String))
    same = held_out([0] * 100, [0] * 99 + [1], ["a"] * 100).with_columns(score=pl.lit("0"))
    assert "over 98 % of documents have the same" in measure_head(same, names).warnings[0]


def test_without_scores_there_is_no_report() -> None:
    table = held_out([0, 0], [0, 1], ["a", "a"]).with_columns(score=pl.lit(None, pl.Int32))
    with pytest.raises(ValueError, match="no held-out document has a score"):
        measure_head(table, numbered_head())
