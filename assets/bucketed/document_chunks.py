"""Cut documents into segments: whole, split, truncated, as one stream, or in powers of two.

A segment is a run of tokens of one document. Every function takes the tokens of each document,
int64 [n], and returns the segments in document order, first token first; a document without tokens
has none. Whole arrays are computed at once, without a loop over documents.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Int64s = NDArray[np.int64]


class Segments(NamedTuple):
    """Segments, all int64 [m]: row of the document, first token in it, number of tokens."""

    documents: Int64s
    starts: Int64s
    lengths: Int64s


def whole(num_tokens: Int64s) -> Segments:
    """Return every document as one segment."""
    documents = np.flatnonzero(num_tokens)
    return Segments(documents, np.zeros_like(documents), num_tokens[documents])


def truncate(num_tokens: Int64s, length: int) -> Segments:
    """Keep the first `length` tokens of every document."""
    return whole(np.minimum(num_tokens, length))


def split(num_tokens: Int64s, length: int, overlap: int = 0) -> Segments:
    """Cut documents into segments of `length` tokens and a shorter last one.

    Each segment begins with the last `overlap` tokens of the previous one.
    """
    step = length - overlap
    further = np.maximum(0, -(-(num_tokens - length) // step))
    documents, number = _numbered(np.where(num_tokens > 0, 1 + further, 0))
    starts = number * step
    return Segments(documents, starts, np.minimum(length, num_tokens[documents] - starts))


def cut_stream(num_tokens: Int64s, length: int) -> tuple[Segments, Int64s]:
    """Cut the stream of all documents every `length` tokens.

    Returns the segments and the cut that each belongs to, int64 [m], counted from 0.
    """
    ends = np.cumsum(num_tokens)
    begins = ends - num_tokens
    first = begins // length
    cuts = np.where(num_tokens > 0, (ends - 1) // length - first + 1, 0)
    documents, number = _numbered(cuts)
    cut = first[documents] + number
    start = np.maximum(begins[documents], cut * length)
    stop = np.minimum(ends[documents], (cut + 1) * length)
    return Segments(documents, start - begins[documents], stop - start), cut


def powers_of_two(num_tokens: Int64s, longest: int, shortest: int) -> Segments:
    """Cut documents into powers of two from `longest` down to `shortest`, and a shorter rest."""
    documents, number = _numbered(num_tokens // longest)
    cut = [Segments(documents, number * longest, np.full_like(documents, longest))]
    power = longest // 2
    while power >= shortest:
        documents = np.flatnonzero(num_tokens & power)
        starts = num_tokens[documents] & -(2 * power)
        cut.append(Segments(documents, starts, np.full_like(documents, power)))
        power //= 2
    rest = num_tokens & (shortest - 1)
    documents = np.flatnonzero(rest)
    cut.append(Segments(documents, num_tokens[documents] & -shortest, rest[documents]))
    segments = Segments(*(np.concatenate(column) for column in zip(*cut, strict=True)))
    order = np.argsort(segments.documents, kind="stable")  # smaller powers are later in a document
    return Segments(*(column[order] for column in segments))


def _numbered(counts: Int64s) -> tuple[Int64s, Int64s]:
    """Return (row, number of the segment in its row) where row i has counts[i] segments."""
    rows = np.repeat(np.arange(len(counts)), counts)
    firsts = np.cumsum(counts) - counts
    return rows, np.arange(len(rows)) - firsts[rows]
