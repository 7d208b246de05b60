"""A user's own fastText model, read from its file.

fastText's C++ believes the counts in a file: it allocates what a header asks for, reads beyond the
end, and follows indices outside of its arrays. Its structure is checked first.
"""

import mmap
import struct
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from resources.settings.named_files import check_named_file

MAGIC, VERSIONS = 793712314, (11, 12)  # fasttext.cc
SUPERVISED = 3  # enum model_name of args.h
MOST_DIMENSIONS = 10_000
MOST_NGRAM = 100  # characters or words: their number for a text is its length times this
CENTROIDS = 256  # ProductQuantizer::ksub_
FINITE_BLOCK = 1 << 20  # floats that are looked at together


class ModelError(ValueError):
    """A file that fastText cannot load safely; the message names it and its fault."""


@cache
def load_fasttext(path: str) -> Any:
    """Load a supervised fastText model, plain or quantised, once per process.

    Raises ValueError if the file cannot be opened or is no fastText model.
    """
    import fasttext

    check_fasttext(Path(path))
    return fasttext.load_model(path)


def check_fasttext(path: Path) -> None:
    """Raise ValueError unless a file is as long, and refers to as much, as its counts say."""
    check_named_file(path, sys.maxsize)
    if path.stat().st_size == 0:
        raise ModelError(f"{path}: empty. Name a fastText model (.bin or .ftz).")
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        try:
            _Walk(content).model()
        except (ModelError, struct.error) as error:
            reason = "cut short" if isinstance(error, struct.error) else error
            raise ModelError(
                f"{path}: no supervised fastText model, or a damaged one: {reason}. Name another "
                "file, or fetch it again."
            ) from None


class _Walk:
    """Position in a model file, moved over one structure after the other."""

    def __init__(self, content: mmap.mmap) -> None:
        self.content = content
        self.at = 0

    def numbers(self, form: str) -> tuple[int, ...]:
        """Return little-endian numbers, and step over them."""
        values = struct.unpack_from(f"<{form}", self.content, self.at)
        self.at += struct.calcsize(f"<{form}")
        return values

    def skip(self, count: int, size: int, what: str) -> int:
        """Step over `count` values; return where they began."""
        start = self.at
        if count < 0 or start + count * size > len(self.content):
            raise ModelError(f"{count:,} {what} do not fit in the file")
        self.at += count * size
        return start

    def model(self) -> None:
        """Step over a whole model (`FastText::loadModel`)."""
        magic, version = self.numbers("2i")
        if magic != MAGIC or version not in VERSIONS:
            raise ModelError(f"wrong file format: magic and version are {(magic, version)}")
        args = self.numbers("12i")  # Args::save
        self.numbers("d")
        dim, word_ngrams, model, bucket, longest = args[0], args[5], *args[7:9], args[10]
        if model != SUPERVISED or not 0 < dim <= MOST_DIMENSIONS or bucket < 0:
            raise ModelError(f"model type {model}, {dim:,} dimensions, {bucket:,} buckets")
        if max(word_ngrams, longest) > MOST_NGRAM:
            raise ModelError(f"n-grams of {max(word_ngrams, longest):,}, over {MOST_NGRAM}")
        words, labels, rows = self.dictionary()
        (is_quantised,) = self.numbers("?")
        self.matrix(words + (bucket if rows < 0 else rows), dim, bool(is_quantised))
        (is_output_quantised,) = self.numbers("?")
        self.matrix(labels, dim, bool(is_quantised and is_output_quantised))

    def dictionary(self) -> tuple[int, int, int]:
        """Return the numbers of words, labels and kept buckets, -1 for all (`Dictionary::load`)."""
        entries, words, labels, _, kept = self.numbers("3i2q")
        if min(words, labels - 1) < 0 or words + labels != entries or kept < -1:
            raise ModelError(f"{entries:,} entries, {words:,} words, {labels:,} labels")
        for number in range(entries):
            if (end := self.content.find(b"\0", self.at)) < 0:
                raise ModelError(f"entry {number:,} of {entries:,} does not end")
            self.at = end + 1
            _, kind = self.numbers("qb")
            if kind != (number >= words):  # words first, then labels
                raise ModelError(f"entry {number:,} is of kind {kind}")
        start = self.skip(max(kept, 0) * 2, 4, "kept buckets")
        pairs = np.frombuffer(self.content[start : self.at], "<i4").reshape(-1, 2)
        if ((pairs[:, 1] < 0) | (pairs[:, 1] >= max(kept, 0))).any():
            raise ModelError("a kept bucket has a row outside of the table")
        return words, labels, kept

    def matrix(self, rows: int, dim: int, is_quantised: bool) -> None:
        """Step over a matrix of that shape (`DenseMatrix::load`, `QuantMatrix::load`)."""
        has_norms = is_quantised and bool(self.numbers("?")[0])
        shape = self.numbers("2q")
        if shape != (rows, dim):
            raise ModelError(f"a matrix of {shape} where {(rows, dim)} follows from the counts")
        if not is_quantised:
            self.floats(rows * dim)
            return
        (codes,) = self.numbers("i")
        self.skip(codes, 1, "codes")
        parts = self.quantizer(dim)
        if codes != rows * parts:
            raise ModelError(f"{codes:,} codes for {rows:,} rows of {parts:,} parts")
        if has_norms:
            self.skip(rows, 1, "norms")
            self.quantizer(1)

    def quantizer(self, dim: int) -> int:
        """Step over a quantizer; return the parts of a row (`ProductQuantizer::load`)."""
        own_dim, parts, part_dim, last_dim = self.numbers("4i")
        is_split = parts > 0 and 0 < last_dim <= part_dim
        if own_dim != dim or not is_split or (parts - 1) * part_dim + last_dim != dim:
            raise ModelError(f"{own_dim:,} dimensions in {parts:,} parts of {part_dim:,}")
        self.floats(dim * CENTROIDS)
        return parts

    def floats(self, count: int) -> None:
        """Step over weights, each of which must be a number."""
        start = self.skip(count, 4, "weights")
        for first in range(start, self.at, 4 * FINITE_BLOCK):
            block = self.content[first : min(first + 4 * FINITE_BLOCK, self.at)]
            if not np.isfinite(np.frombuffer(block, "<f4")).all():
                raise ModelError("a weight is infinite or no number")
