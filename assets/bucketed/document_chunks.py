"""Cut documents into segments: whole, split, truncated, as one stream, or in powers of two.

A segment is a run of tokens of one document. Every function takes the tokens of each document,
int64 [n], and returns the segments in document order, first token first; a document without tokens
has none. Whole arrays are computed at once, without a loop over documents.

Conversations are fitted whole, or cut behind an answer, and never within a turn: a segment that
begins in an answer has lost the question, and one that ends before the answer teaches nothing. So a
conversation that is longer than a sequence keeps its first turns up to the last answer that fits,
or is left out (`buckets.long_conversations`). Every row then has a token to learn, since every
conversation has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from resources.settings.buckets import BucketConfig

Int64s = NDArray[np.int64]


class Segments(NamedTuple):
    """Segments, all int64 [m]: row of the document, first token in it, number of tokens."""

    documents: Int64s
    starts: Int64s
    lengths: Int64s


def padded(lengths: Int64s, multiple: int) -> Int64s:
    """Return lengths, int64 [n], rounded up to a multiple."""
    return lengths if multiple == 1 else -(-lengths // multiple) * multiple


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


LEFT_OUT, CUT = "left_out", "cut_between_turns"


def turns_of(tables: Sequence[pl.DataFrame], num_tokens: Int64s) -> Segments:
    """Return the conversations that end with each turn, of tables with `turns`; else documents."""
    if not tables or "turns" not in tables[0].columns:
        return Segments(np.arange(len(num_tokens)), np.zeros_like(num_tokens), num_tokens)
    turns = pl.concat([table["turns"] for table in tables])
    documents, number = _numbered(turns.list.len().to_numpy())
    lengths = turns.explode().to_numpy()
    starts = np.cumsum(lengths) - lengths
    starts -= starts[number == 0][documents]
    return Segments(documents, starts, np.where(num_tokens[documents], lengths, 0))


def are_conversations(tables: Sequence[pl.DataFrame]) -> bool:
    """Return True if the documents of all tables are conversations, which have loss masks."""
    return bool(tables) and "loss_mask" in tables[0].columns


def fit_conversations(
    tables: Sequence[pl.DataFrame], turns: Segments, config: BucketConfig
) -> Int64s:
    """Return the first tokens of each conversation that are kept, int64 [m]; 0: it is left out.

    In: tables with doc_id and loss_mask, and the conversations in them, as of `turns_of`. Raises
    ValueError if one is too long, and `long_conversations` is `error`.
    """
    kept, length = turns.lengths.copy(), config.sequence_length
    if config.mode == "buckets" or not (kept > length).any():  # a bucket for longer ones: whole
        return kept
    long = np.flatnonzero(kept > length)
    table = pl.concat([table.select("doc_id", "loss_mask") for table in tables])
    if config.long_conversations == "error":
        raise ValueError(
            f"{long.size:,} conversations have more than {length:,} tokens "
            f"(buckets.sequence_length), the first {table['doc_id'][int(turns.documents[long[0]])]}"
            ". Raise that one, or set buckets.long_conversations to cut_turns or drop"
        )
    for number in long.tolist():  # 10 us each, and only of those that are too long
        is_cut = config.long_conversations == "cut_turns"
        row, start, size = (int(column[number]) for column in turns)
        flags = table["loss_mask"][row].to_numpy()[start : start + size * is_cut].astype(np.bool_)
        kept[number] = last_answer_end(flags, length)
    return kept


def last_answer_end(flags: np.ndarray[tuple[int], np.dtype[np.bool_]], length: int) -> int:
    """Return the end of the last run of learned tokens within `length` tokens; 0 if none is.

    The first token is not counted: nothing predicts it.
    """
    is_end = flags[:length] & ~np.append(flags[1 : length + 1], np.False_)[:length]
    ends = np.flatnonzero(is_end) + 1
    return int(ends[-1]) if ends.size and flags[1 : ends[-1]].any() else 0


def count_long(num_tokens: Int64s, kept: Int64s) -> dict[str, int]:
    """Count the conversations that are left out, and those that are cut; {} if there are none."""
    counts = {
        LEFT_OUT: int(((kept == 0) & (num_tokens > 0)).sum()),
        CUT: int(((kept > 0) & (kept < num_tokens)).sum()),
    }
    return {name: count for name, count in counts.items() if count}
