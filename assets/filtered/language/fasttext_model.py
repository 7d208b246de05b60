"""Parse a supervised fastText model, plain or quantised (.bin, .ftz), into numpy arrays.

Purpose: compiled code predicts from the arrays without fastText's C++ and the interpreter lock.
Trade-off: product-quantised rows are decoded to float32, 3.2 MB for lid.176 instead of 0.4, since
adding a decoded row costs a quarter of decoding it.
Source of the format: https://github.com/facebookresearch/fastText; docstrings name its functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from assets.filtered.kernels.fasttext import Lookup

_MAGIC, _VERSION = 793712314, 12  # fasttext.cc
# Args::save
_TRAINING = ("dim", "ws", "epoch", "min_count", "neg", "word_ngrams", "loss", "model")
_ARGS = (*_TRAINING, "bucket", "minn", "maxn", "update_rate")
_HIERARCHICAL_SOFTMAX, _SUPERVISED = 1, 3  # enums loss_name and model_name of args.h
_LABEL = 1  # enum entry_type of dictionary.h
_CENTROIDS = 256  # ProductQuantizer::ksub_

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class FasttextModel:
    """Words, labels and vectors; n-grams of `minn` to `maxn` code points fall into `bucket`s.

    `input_rows` is float32 [words + kept buckets, dim]; `buckets`, int32 [kept buckets], has the
    bucket of each row after the words; `output_rows` is float32 [labels, dim]; `label_counts`
    int64 [labels], descending, shapes the Huffman tree of the hierarchical softmax.
    """

    minn: int
    maxn: int
    bucket: int
    words: tuple[bytes, ...]
    labels: tuple[str, ...]
    label_counts: NDArray[np.int64]
    buckets: NDArray[np.int32]
    input_rows: Floats
    output_rows: Floats


class _Reader:
    """Reader of little-endian values from a file's content, in order."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.at = 0

    def array(self, dtype: str, size: int) -> NDArray[Any]:
        """Return the next `size` values."""
        values = np.frombuffer(self.content, dtype, size, self.at)
        self.at += values.nbytes
        return values

    def integer(self, num_bytes: int = 4) -> int:
        """Return the next integer; NumPy would take 40 ms for those of a dictionary."""
        start, self.at = self.at, self.at + num_bytes
        return int.from_bytes(self.content[start : self.at], "little", signed=True)

    def string(self) -> bytes:
        """Return the bytes before the next zero, and skip the zero."""
        start, self.at = self.at, self.content.index(b"\0", self.at) + 1
        return self.content[start : self.at - 1]


def parse_fasttext(content: bytes) -> FasttextModel:
    """Parse the content of a model file (`FastText::loadModel`).

    Raises ValueError unless it is a complete fastText model of version 12, supervised, with
    hierarchical softmax and without word n-grams (as lid.176 is).
    """
    reader = _Reader(content)
    header = (reader.integer(), reader.integer())
    if header != (_MAGIC, _VERSION):
        raise ValueError(
            f"not a fastText model of version 12: magic and version are {header}. "
            "Use lid.176.ftz or lid.176.bin."
        )
    args = dict(zip(_ARGS, reader.array("<i4", len(_ARGS)).tolist(), strict=True))
    reader.array("<f8", 1)  # sampling threshold, for training only
    training = (args["model"], args["loss"], args["word_ngrams"])
    if training != (_SUPERVISED, _HIERARCHICAL_SOFTMAX, 1):
        raise ValueError(
            f"fastText model of (model, loss, word n-grams) {training} is not supported, only "
            f"{(_SUPERVISED, _HIERARCHICAL_SOFTMAX, 1)}. Use lid.176.ftz or lid.176.bin."
        )
    words, labels, counts, pruned = _read_dictionary(reader)
    is_quantised = bool(reader.integer(1))
    input_rows = _read_matrix(reader, is_quantised)
    output_is_quantised = bool(reader.integer(1))
    output_rows = _read_matrix(reader, is_quantised and output_is_quantised)
    buckets = np.arange(args["bucket"], dtype=np.int32) if pruned is None else pruned
    return FasttextModel(
        minn=args["minn"],
        maxn=args["maxn"],
        bucket=args["bucket"],
        words=words,
        labels=labels,
        label_counts=counts,
        buckets=buckets,
        input_rows=input_rows,
        output_rows=output_rows,
    )


def _read_dictionary(
    reader: _Reader,
) -> tuple[tuple[bytes, ...], tuple[str, ...], NDArray[np.int64], NDArray[np.int32] | None]:
    """Read words, labels, label counts and kept buckets, None for all (`Dictionary::load`)."""
    num_entries, num_words, _ = (reader.integer() for _ in range(3))
    reader.integer(8)  # tokens seen in training
    num_kept = reader.integer(8)
    entries = [(reader.string(), reader.integer(8), reader.integer(1)) for _ in range(num_entries)]
    words, labelled = entries[:num_words], entries[num_words:]
    if any(entry_type != _LABEL for _, _, entry_type in labelled):
        raise ValueError(
            "fastText dictionary has words after its labels: the file is damaged. Replace it."
        )
    labels = tuple(name.decode().removeprefix("__label__") for name, _, _ in labelled)
    counts = np.array([count for _, count, _ in labelled], np.int64)
    kept = None
    if num_kept >= 0:
        bucket, row = reader.array("<i4", 2 * num_kept).reshape(-1, 2).T
        kept = np.empty(num_kept, np.int32)
        kept[row] = bucket
    return tuple(name for name, _, _ in words), labels, counts, kept


def _read_matrix(reader: _Reader, is_quantised: bool) -> Floats:
    """Read a matrix as float32 [rows, columns] (`DenseMatrix::load`, `QuantMatrix::load`)."""
    has_norms = is_quantised and bool(reader.integer(1))
    rows, columns = reader.integer(8), reader.integer(8)
    if not is_quantised:
        return reader.array("<f4", rows * columns).reshape(rows, columns)
    codes = reader.array("u1", reader.integer()).reshape(rows, -1)
    decoded = _decode(reader, codes)
    if has_norms:
        codes = reader.array("u1", rows).reshape(rows, 1)
        decoded *= _decode(reader, codes)
    return decoded


def _decode(reader: _Reader, codes: NDArray[np.uint8]) -> Floats:
    """Decode rows of codes, uint8 [rows, parts] (`ProductQuantizer::load`, `addcode`).

    Returns vectors, float32 [rows, dim]. A code is the number of one of 256 centroids of its part
    of the vector; the last part may be shorter.
    """
    dim, num_parts, part_dim, last_dim = reader.array("<i4", 4).tolist()
    centroids = reader.array("<f4", dim * _CENTROIDS)
    decoded = np.empty((len(codes), dim), np.float32)
    for part in range(num_parts):
        size = last_dim if part == num_parts - 1 else part_dim
        first = part * part_dim
        table = centroids[first * _CENTROIDS :][: size * _CENTROIDS].reshape(_CENTROIDS, size)
        decoded[:, first : first + size] = table[codes[:, part]]
    return decoded


def build_lookup(model: FasttextModel) -> Lookup:
    """Arrange a model in the arrays of `kernels.fasttext`.

    Raises ValueError unless it has the n-grams, buckets and dimensions of lid.176 (2 to 4;
    2,000,000; 16).
    """
    from assets.filtered.kernels.fasttext import DIM, NGRAM_CHARS, NUM_BUCKETS, Lookup, sum_words

    shape = (model.minn, model.maxn, model.bucket, model.input_rows.shape[1])
    if shape != (*NGRAM_CHARS, NUM_BUCKETS, DIM):
        raise ValueError(
            f"fastText model of (minn, maxn, bucket, dim) {shape} is not supported, only "
            f"{(*NGRAM_CHARS, NUM_BUCKETS, DIM)}. Use lid.176.ftz or lid.176.bin."
        )
    num_words = len(model.words)
    order = np.argsort(model.buckets)
    is_kept = np.zeros(NUM_BUCKETS, np.bool_)
    is_kept[model.buckets] = True
    num_kept = np.cumsum(is_kept.reshape(-1, 64).sum(axis=1))
    lookup = Lookup(
        letters=np.frombuffer(b"".join(model.words), np.uint8).copy(),
        starts=np.cumsum([0, *map(len, model.words)], dtype=np.int64),
        slots=np.empty(0, np.int32),
        hashes=np.empty(0, np.uint32),
        sizes=np.empty(0, np.int32),
        kept=np.packbits(is_kept, bitorder="little").view(np.uint64),
        ranks=np.concatenate([[0], num_kept[:-1]]).astype(np.int32) + np.int32(num_words),
        rows=np.concatenate([model.input_rows[:num_words], model.input_rows[num_words:][order]]),
        children=_huffman_tree(model.label_counts),
        output=model.output_rows.copy(),
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
