"""Vectors of documents by their words: latent semantic analysis, frozen to integers.

Purpose: vectors that group, compare and classify documents, without a download or a GPU, equal on
every machine. Words are those of the classifier; characters of scripts written without spaces are
words, and so are each two of them. A word's hash selects a row of a table. The table is the
truncated singular value decomposition of a sample's windows by their rows, where a row weighs less
the more windows it is in (Deerwester and others 1990, "Indexing by latent semantic analysis").
Trade-off: training is in floating point, and its bytes may differ by processor: the model is a
record that is kept. Applying it is integer arithmetic. Words that the sample lacks count nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.text.buffers import code_point_entries, text_buffers

BITS = 16  # of a row's number: 16 MB
FEWEST_WINDOWS = 3  # with a row, for it to have a weight
STEPS, MORE = 2, 32  # power iterations, and dimensions that are found and dropped

Floats = NDArray[np.float32]
Vectors = NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class LexicalModel:
    """A table of rows, int8 [power of two, DIMENSIONS], and a weight for each, uint16."""

    table: Vectors
    weights: NDArray[np.uint16]

    def to_table(self) -> pl.DataFrame:
        """Return the model as a table, a row for each: `weight` and `row`, its bytes."""
        rows = pl.Series("row", [row.tobytes() for row in self.table], dtype=pl.Binary)
        return pl.DataFrame({"weight": self.weights, "row": rows})

    @classmethod
    def from_table(cls, table: pl.DataFrame) -> Self:
        """Return the model that `to_table` wrote."""
        rows = np.frombuffer(b"".join(table["row"]), np.int8).reshape(len(table), -1)
        return cls(rows, table["weight"].to_numpy())


def embed_lexical(texts: pl.Series, model: LexicalModel) -> Vectors:
    """Return the vectors of n texts (String, no nulls), int8 [n, DIMENSIONS].

    A vector's length is about 512; it is zeros for a text without words that the model knows.
    """
    from assets.annotated.kernels.word_vectors import embed_texts

    buffers = text_buffers(texts)
    vectors: Vectors = embed_texts(*buffers, code_point_entries(), model.table, model.weights)
    return vectors


def train_lexical(texts: pl.Series, seed: int = 0, bits: int = BITS) -> LexicalModel:
    """Learn the table from a sample of texts (String, no nulls), a row for each of 2**bits hashes.

    Takes about 60 bytes of memory per word. The sample should have the languages and kinds of the
    corpus; one of fewer windows than DIMENSIONS has as many. Raises ValueError if no words repeat.
    """
    from assets.annotated.kernels.word_vectors import DIMENSIONS, MOST_WEIGHT

    matrix, rarity = _weighted_windows(texts, bits)
    found = _find_directions(matrix, DIMENSIONS, seed)
    directions = np.pad(found, ((0, 0), (0, DIMENSIONS - found.shape[1])))
    # A rotation keeps all angles, and spreads what a few dimensions hold: the least error of int8.
    noise = np.random.default_rng(seed).standard_normal((DIMENSIONS, DIMENSIONS))
    rotated = directions @ np.linalg.qr(noise)[0].astype(np.float32)
    most = np.abs(rotated).max(axis=1)
    table = np.round(127 * rotated / np.maximum(most, 1e-30)[:, None]).astype(np.int8)
    strength = most * rarity
    weights = np.round(MOST_WEIGHT * strength / strength.max()).astype(np.uint16)
    return LexicalModel(table, weights)


def _weighted_windows(texts: pl.Series, bits: int) -> tuple[Any, Floats]:
    """Return windows by rows, a sparse float32 matrix with windows of length 1, and rarities."""
    import scipy.sparse

    from assets.annotated.kernels.word_vectors import find_rows

    rows, times, ends = find_rows(*text_buffers(texts), code_point_entries(), 1 << bits)
    num_windows = len(ends) - 1
    windows_with = np.bincount(rows, minlength=1 << bits)
    is_known = windows_with >= FEWEST_WINDOWS
    shares = np.where(is_known, windows_with / max(num_windows, 1), 1.0)
    rarity = -np.log(shares).astype(np.float32)
    if not rarity.any():
        raise ValueError(
            f"no word is in {FEWEST_WINDOWS} of {num_windows:,} windows of texts, and not in all: "
            "there is nothing to tell texts apart by. Add documents."
        )
    values = times * rarity[rows]
    lengths = np.sqrt(np.add.reduceat(np.append(values**2, 0), ends[:-1]) * (np.diff(ends) > 0))
    values /= np.maximum(np.repeat(lengths, np.diff(ends)), 1e-30).astype(np.float32)
    return scipy.sparse.csr_matrix((values, rows, ends), (num_windows, 1 << bits)), rarity


def _find_directions(matrix: Any, rank: int, seed: int) -> Floats:
    """Return the right singular vectors of the greatest values, float32 [columns, rank or fewer].

    Source: Halko, Martinsson and Tropp 2011, "Finding structure with randomness", algorithm 4.4.
    """
    generator = np.random.default_rng(seed)
    width = min(rank + MORE, *matrix.shape)
    guess = generator.standard_normal((matrix.shape[1], width), np.float32)
    basis = _orthonormal(matrix @ guess)
    for _ in range(STEPS):
        basis = _orthonormal(matrix @ _orthonormal(matrix.T @ basis))
    return np.ascontiguousarray(_orthonormal(matrix.T @ basis)[:, :rank])


def _orthonormal(columns: Floats) -> Floats:
    """Return the left singular vectors of the greatest values first, float32; zeros for values 0.

    By the eigenvectors of the columns' products in float64, which lose what is below 1e-6 of the
    first: LAPACK's QR and singular values took 25 of 31 CPU seconds for 16 MB, this 3 of 8.
    """
    exact = columns.astype(np.float64)
    squares, vectors = np.linalg.eigh(exact.T @ exact)
    is_there = squares > 1e-12 * squares[-1]
    scales = np.where(is_there, 1 / np.sqrt(np.where(is_there, squares, 1)), 0)
    return np.asarray((exact @ (vectors * scales))[:, ::-1], np.float32)
