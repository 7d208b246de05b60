"""The kernels of the language model and of the quality classifier against slow references."""

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assets.filtered.kernels.fasttext import NGRAM_CHARS, NUM_BUCKETS, Lookup, sum_words
from assets.filtered.kernels.word_features import find_features, fit_epoch, score_texts
from assets.text.buffers import code_point_entries, text_buffers

WORDS = ["a", "of", "über", "日本語", "🙂x", "longer", "é"]


def fnv_slowly(ngram: str | bytes) -> int:
    """FNV-1a over signed bytes, as fastText's `Dictionary::hash` computes it."""
    hashed = 2166136261
    for byte in ngram.encode() if isinstance(ngram, str) else ngram:
        signed = byte - 256 if byte >= 128 else byte
        hashed = ((hashed ^ (signed & 0xFFFFFFFF)) * 16777619) & 0xFFFFFFFF
    return hashed


def buckets_slowly(word: str) -> list[int]:
    bracketed = f"<{word}>"
    return [
        fnv_slowly(bracketed[first : first + size]) % NUM_BUCKETS
        for first in range(len(bracketed))
        for size in range(NGRAM_CHARS[0], NGRAM_CHARS[1] + 1)
        if first + size <= len(bracketed)
    ]


def lookup_of(words: list[str], kept: list[int], rows: np.ndarray[Any, Any]) -> Lookup:
    letters = [word.encode() for word in words]
    is_kept = np.zeros(NUM_BUCKETS, np.bool_)
    is_kept[kept] = True
    before = np.cumsum(is_kept.reshape(-1, 64).sum(axis=1)) - is_kept.reshape(-1, 64).sum(axis=1)
    return Lookup(
        letters=np.frombuffer(b"".join(letters), np.uint8).copy(),
        starts=np.cumsum([0, *map(len, letters)], dtype=np.int64),
        slots=np.empty(0, np.int32),
        hashes=np.empty(0, np.uint32),
        sizes=np.empty(0, np.int32),
        kept=np.packbits(is_kept, bitorder="little").view(np.uint64),
        ranks=(before + len(words)).astype(np.int32),
        rows=rows,
        children=np.empty((0, 2), np.int32),
        output=np.empty((0, rows.shape[1]), np.float32),
        end=0,
    )


def test_sum_words_adds_the_rows_of_the_kept_buckets() -> None:
    rng = np.random.default_rng(2)
    words = ["</s>", *WORDS]
    every = sorted({bucket for word in words for bucket in buckets_slowly(word)})
    kept = [bucket for bucket in every if rng.random() < 0.7]
    rows = rng.normal(size=(len(words) + len(kept), 3)).astype(np.float32)

    hashes, sizes, sums = sum_words(lookup_of(words, kept, rows))

    assert hashes.tolist() == [fnv_slowly(word) for word in words]
    for number, word in enumerate(words):
        own = [bucket for bucket in buckets_slowly(word) if number and bucket in kept]
        added = [number, *(len(words) + kept.index(bucket) for bucket in own)]
        assert sizes[number] == len(added)
        np.testing.assert_allclose(sums[number], rows[added].sum(axis=0), rtol=1e-5, atol=1e-5)


TEXTS = st.lists(st.text(st.sampled_from("ab é漢1 \n"), max_size=20), max_size=5)
SHAPE = (2, 10, 12)


@given(TEXTS, st.floats(-2, 2))
def test_score_texts_is_the_logistic_of_the_mean_weight(texts: list[str], bias: float) -> None:
    data, offsets = text_buffers(pl.Series(texts, dtype=pl.String))
    weights = np.random.default_rng(3).normal(size=1 << SHAPE[1]).astype(np.float32)
    buckets, ends, _ = find_features(data, offsets, code_point_entries(), SHAPE)

    scores = score_texts(data, offsets, code_point_entries(), SHAPE, weights, bias)

    for row, score in enumerate(scores):
        own = buckets[ends[row] : ends[row + 1]]
        margin = bias + weights[own].sum(dtype=np.float64) / math.sqrt(max(len(own), 1))
        expected = 1 / (1 + math.exp(-margin)) if len(own) else math.nan
        assert score == pytest.approx(expected, nan_ok=True)


def best_alpha_slowly(slope: float, cap: float, alpha: float, agreement: float) -> float:
    """Halve the bracket of u in u + slope * cap * sigmoid(u) = slope * alpha - agreement."""
    low, high = -200.0, 200.0
    for _ in range(200):
        u = (low + high) / 2
        value = u + slope * cap / (1 + math.exp(-u)) - (slope * alpha - agreement)
        low, high = (low, u) if value > 0 else (u, high)
    return cap / (1 + math.exp(-low))


def test_fit_epoch_takes_the_best_step_for_each_document_in_order() -> None:
    rng = np.random.default_rng(4)
    sizes = rng.integers(1, 6, 12)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    buckets = np.concatenate([rng.choice(8, size, replace=False) for size in sizes])
    signs, caps = np.where(rng.random(12) < 0.4, 1.0, -1.0), rng.uniform(0.1, 30, 12)
    alphas, weights = np.zeros(12), np.zeros(9)
    slow_alphas, slow_weights = np.zeros(12), np.zeros(9)

    for _ in range(3):
        order = rng.permutation(12)
        fit_epoch(buckets.astype(np.uint32), offsets, signs, caps, order, alphas, weights)
        for row in order:
            own = buckets[offsets[row] : offsets[row + 1]]
            features = np.zeros(9)
            features[own], features[8] = 1 / math.sqrt(len(own)), 1
            agreement = float(signs[row] * (features @ slow_weights))
            slope = float(features @ features)
            alpha = best_alpha_slowly(slope, float(caps[row]), float(slow_alphas[row]), agreement)
            slow_weights += signs[row] * (alpha - slow_alphas[row]) * features
            slow_alphas[row] = alpha

    np.testing.assert_allclose(alphas, slow_alphas, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(weights, slow_weights, rtol=1e-6, atol=1e-9)
