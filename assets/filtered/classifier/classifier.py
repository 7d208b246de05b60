"""A quality score that the user defines by example: a linear classifier over word n-grams.

Purpose: sources or labelled documents are the examples of good and bad; every document then gets
the probability that it is good, if good and bad were equally common. Words are those of `minhash`;
features are described in `kernels.word_features`.
Trade-off: no embeddings and no subwords, as a fastText classifier has: instead exact dual training
without a learning rate, whose bytes depend neither on the order of documents nor on threads, and
a model of 1 MB. Training takes 3 bytes of memory per byte of sample. The model learns topics and
style, and nothing else: trained on technical references against web pages it ranks unseen science
above web pages (AUC 0.98), but hardly novels (0.58). Give it examples of all that is wanted. A
user's own fastText model is the alternative.

A percentile p says that a share p of the source's documents in that language score less; equal
scores get the middle of their ranks. Documents are compared with a scale, the scores of a sample at
equal steps of rank, never with each other; a language with fewer than LEAST documents in the sample
with all languages of the source (the percentiles of 100 documents are off by 0.05 at worst).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import msgspec
import numpy as np
import polars as pl
import xxhash
from numpy.typing import NDArray

from assets.filtered.language.fasttext_model import load_fasttext
from assets.text.buffers import blocks, code_point_entries, text_buffers
from corpus_loader.permutation import derive_key, mix64
from resources.settings.filtering.classifier import ClassifierConfig

Booleans = NDArray[np.bool_]
LABELS = {"good": True, "bad": False, 1: True, 0: False}  # 1 == True and 0 == False in a dict
MOST_LINE_BYTES = 16 << 20
EVERY_LABEL = {"k": -1, "threshold": -1.0}  # 0.0 would leave out what is below 1e-5


@dataclass(frozen=True, eq=False)
class Classifier:
    """A trained classifier: a weight per bucket, float32 [buckets], and its features' settings."""

    weights: NDArray[np.float32]
    bias: float
    ngram_words: int
    max_document_bytes: int

    def to_table(self) -> pl.DataFrame:
        """Return the model as a table of `buckets` rows; only `weight` differs between them."""
        constants = {
            "bias": pl.lit(self.bias, pl.Float64),
            "ngram_words": pl.lit(self.ngram_words, pl.Int64),
            "max_document_bytes": pl.lit(self.max_document_bytes, pl.Int64),
        }
        return pl.DataFrame({"weight": self.weights}).with_columns(**constants)

    @classmethod
    def from_table(cls, table: pl.DataFrame) -> Self:
        """Return the model that `to_table` wrote."""
        constants = table.drop("weight").row(0, named=True)
        return cls(weights=table["weight"].to_numpy(), **constants)


@dataclass(frozen=True)
class _Features:
    """Buckets of all documents, the range of each in them, and a hash of each one's words."""

    buckets: NDArray[np.uint32]
    offsets: NDArray[np.int64]
    keys: NDArray[np.uint64]


def train_classifier(texts: pl.Series, labels: Booleans, config: ClassifierConfig) -> Classifier:
    """Train on the documents that are not held out; both sides weigh the same, however many.

    `labels`, bool [n], is true for good texts. Raises ValueError if one side has no document
    with words to train on. The same documents in another order give the same model.
    """
    from assets.filtered.kernels.word_features import fit_epoch

    features = _find_features(texts, config)
    is_used = ~_is_drawn(features.keys, config) & (np.diff(features.offsets) > 0)
    rows = np.flatnonzero(is_used)
    num_good = int(labels[rows].sum())
    num_bad = len(rows) - num_good
    if not (num_good and num_bad):
        raise ValueError(
            f"quality: {num_good} good and {num_bad} bad documents with words to train on; at "
            "least one of each is needed. Add examples, or hold out a smaller share."
        )
    caps = np.where(labels, len(rows) / num_good, len(rows) / num_bad) / (2 * config.l2)
    signs = np.where(labels, 1.0, -1.0)
    alphas, weights = np.zeros(len(labels)), np.zeros(config.buckets + 1)
    for epoch in range(config.epochs):
        keys = mix64(features.keys[rows] ^ np.uint64(derive_key(config.seed, "quality", epoch)))
        order = rows[np.lexsort((labels[rows], keys))]
        fit_epoch(features.buckets, features.offsets, signs, caps, order, alphas, weights)
    return Classifier(
        weights=weights[:-1].astype(np.float32),
        bias=float(weights[-1]),
        ngram_words=config.ngram_words,
        max_document_bytes=config.max_document_bytes,
    )


def is_held_out(texts: pl.Series, config: ClassifierConfig) -> Booleans:
    """Select the documents that measure the classifier, bool [n].

    A hash of the words decides, so that a copy of a training document is never held out.
    """
    features = _find_features(texts, config)
    return _is_drawn(features.keys, config) & (np.diff(features.offsets) > 0)


def score_quality(texts: pl.Series, model: Classifier) -> pl.Series:
    """Return the probability of being good, Float64 in [0, 1]; null for texts without words."""
    from assets.filtered.kernels.word_features import score_texts

    data, offsets = text_buffers(texts)
    bits = len(model.weights).bit_length() - 1
    shape = (model.ngram_words, bits, model.max_document_bytes)
    scores = score_texts(data, offsets, code_point_entries(), shape, model.weights, model.bias)
    return pl.Series("quality", scores).fill_nan(None)


def _find_features(texts: pl.Series, config: ClassifierConfig) -> _Features:
    from assets.filtered.kernels.word_features import find_features

    data, offsets = text_buffers(texts)
    by_block = [
        find_features(data, block, code_point_entries(), config.shape)
        for _, block in blocks(offsets)
    ]
    sizes = [np.diff(block_offsets) for _, block_offsets, _ in by_block]
    return _Features(
        np.concatenate([np.empty(0, np.uint32), *(buckets for buckets, _, _ in by_block)]),
        np.cumsum(np.concatenate([np.zeros(1, np.int64), *sizes]), dtype=np.int64),
        np.concatenate([np.empty(0, np.uint64), *(keys for _, _, keys in by_block)]),
    )


def _is_drawn(keys: NDArray[np.uint64], config: ClassifierConfig) -> Booleans:
    mixed = mix64(keys ^ np.uint64(derive_key(config.seed, "quality held out")))
    return np.asarray(mixed.astype(np.float64) < config.held_out * 2.0**64)


def take_sample(documents: pl.DataFrame, share: float, config: ClassifierConfig) -> pl.Series:
    """Return the texts, String, of a seeded sample: about `share` (0 to 1) of a part's documents.

    `documents` has `doc_id` (32 hex digits) and `text`. Each document is taken or left by its id
    and the seed alone, so that long ones and small parts have the same chance; texts stay whole.
    """
    heads = documents["doc_id"].str.slice(0, 16).str.to_integer(base=16, dtype=pl.UInt64)
    key = np.uint64(derive_key(config.seed, "quality sample"))
    chance = mix64(heads.to_numpy() ^ key).astype(np.float64)
    return documents["text"].filter(pl.Series(chance < share * 2.0**64, dtype=pl.Boolean))


def take_lines(
    lines: Iterable[bytes], share: float, config: ClassifierConfig
) -> Iterator[tuple[int, bytes]]:
    """Yield (number from 1, line) of a seeded sample of a file's lines: about `share` of its bytes.

    A hash of the line decides; blank lines are skipped. Raises ValueError for a line of more than
    16 MB.
    """
    seed = derive_key(config.seed, "quality lines")
    for number, line in enumerate(lines, 1):
        if len(line) > MOST_LINE_BYTES:
            raise ValueError(f"line {number}: over {MOST_LINE_BYTES:,} bytes; cut its text")
        if line.strip() and xxhash.xxh3_64_intdigest(line, seed) < share * 2.0**64:
            yield number, line


def read_labelled(lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[str, bool]]:
    """Yield (text, is good) of each numbered line of a labelled file.

    Raises ValueError that names the line unless it is a JSON object with `text` and `label`.
    """
    for number, line in lines:
        try:
            record: Any = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ValueError(f"line {number}: not JSON: {error}") from None
        text, label = (
            (record.get("text"), record.get("label")) if isinstance(record, dict) else (None, None)
        )
        if not isinstance(text, str):
            raise ValueError(f"line {number}: `text` must be a string (got {text!r:.80})")
        if not isinstance(label, str | int) or label not in LABELS:
            raise ValueError(
                f"line {number}: `label` must be 1 or 0, true or false, good or bad (got "
                f"{label!r:.80})"
            )
        yield text, LABELS[label]


def score_fasttext(texts: pl.Series, model_path: str, label: str) -> pl.Series:
    """Return the probability of `label`, Float64, by a fastText model.

    Line ends are read as blanks. Raises ValueError that lists the model's labels if `label` is not
    one of them. A Python loop: fastText itself takes nearly all of the time.
    """
    model = load_fasttext(model_path)
    labels, _ = model.predict("", **EVERY_LABEL)
    if label not in labels:
        raise ValueError(f"{model_path} has no label {label!r}; it has {sorted(labels)}")
    scores = np.empty(len(texts))
    for row, text in enumerate(texts):
        names, probabilities = model.predict(text.replace("\n", " "), **EVERY_LABEL)
        scores[row] = probabilities[names.index(label)]
    return pl.Series("fasttext", scores)


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
